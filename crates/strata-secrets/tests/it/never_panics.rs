//! Anything can be in a file, and none of it is a reason to panic.

use proptest::prelude::*;
use strata_secret::SecretBytes;
use strata_secrets::sops::{self, CreationRules, Format, Settings, SopsFile};
use strata_secrets::tfvars;
use strata_secrets::vault::{self, Passwords};

use crate::fixtures::read;
use crate::generate::Generator;
use crate::keys::{FIRST, NOW, random};

const FORMATS: [Format; 4] = [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini];

fn read_as_everything(text: &str) {
    let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
    for format in FORMATS {
        let _ = SopsFile::parse(text.as_bytes(), format);
        if let Ok(sealed) = sops::encrypt(&SecretBytes::new(text), format, &settings, NOW, &mut random(1)) {
            let open = SopsFile::parse(&sealed, format)
                .and_then(|file| file.open(&FIRST.identities()))
                .expect("just made");
            // What we encrypt, we can give back.
            let plain = open.plaintext().unwrap_or_else(|error| panic!("{format:?}: {error}\n{text}"));
            let again =
                sops::encrypt(&plain, format, &settings, NOW, &mut random(1)).expect("encrypted before");
            let reopened = SopsFile::parse(&again, format)
                .and_then(|file| file.open(&FIRST.identities()))
                .expect("just made");
            let values = |open: &sops::OpenFile| {
                open.values()
                    .into_iter()
                    .map(|(path, value)| (path, value.expose().to_vec()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(values(&open), values(&reopened), "{format:?}\n{text}");
        }
    }
    let _ = CreationRules::parse(text);
    let _ = tfvars::values(text);
    let _ = vault::open(text.as_bytes(), &Passwords::none());
    let _ = vault::encrypted_names(text);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn on_text(text in "\\PC{0,60}") {
        read_as_everything(&text);
    }

    #[test]
    fn on_text_that_looks_like_yaml(text in "([a-c]{0,2}|[-:?#&*!|>'\"%@`{}\\[\\], \n\t]|  |\n|- |: |\\u{e9}){0,40}") {
        read_as_everything(&text);
    }

    #[test]
    fn on_generated_yaml_with_holes(seed: u64, start in 0usize..1000, length in 0usize..30) {
        let mut text = Generator::new(seed).yaml();
        let boundary = |at: usize, text: &str| (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        let (from, to) = (boundary(start, &text), boundary(start + length, &text));
        text.replace_range(from..to, "");
        read_as_everything(&text);
    }

    #[test]
    fn on_damaged_files(index in 0usize..4000, byte: u8, insert: bool) {
        for name in ["sops/all.sops.yaml", "sops/app.sops.ini", "sops/app.sops.json", "vault/inline.yaml"] {
            let mut content = read(name);
            let at = index % content.len();
            if insert { content.insert(at, byte) } else { content[at] = byte }
            for format in FORMATS {
                let _ = SopsFile::parse(&content, format).and_then(|file| file.open(&FIRST.identities()));
            }
            let _ = vault::encrypted_names(&String::from_utf8_lossy(&content));
        }
    }
}
