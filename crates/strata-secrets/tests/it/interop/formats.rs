//! The other formats, and every rule for what is encrypted.

use strata_secrets::sops::{Format, RuleSetting, Settings};

use super::{World, open, seal, settings};
use crate::keys::FIRST;

const JSON: &str = "{\"a\": \"te<x>t\", \"n\": 5, \"big\": 9007199254740993, \"f\": 1.5, \"t\": true, \"z\": null,\n \
                    \"o\": {\"k\": [\"x\", 1, false, {\"y\": \"\"}], \"ü \\\"q\\\"\": \"\\u0001\"}}\n";
const DOTENV: &str =
    "KEY=value\n# comment\n\nOTHER=\"quoted value\"\nEMPTY=\nMULTI=one\\ntwo\nEQ=a=b\n#last\n";
const INI: &str = "top = 1\n\n; about it\n# in two lines\n[section]\nkey = value ; inline\nquoted = \"  x \"\nhash = `a#b`\n\
                   empty =\nmulti = \"\"\"one\ntwo\"\"\"\n\n[other]\n; of k\nk = v\n";

#[test]
#[ignore = "needs sops: just interop sops"]
fn every_format_goes_both_ways() {
    for (name, plain) in [("a.json", JSON), ("a.env", DOTENV), ("a.ini", INI), ("a.bin", "any\u{1}thing\n")] {
        let world = World::new();
        let format = Format::of(name.as_ref());
        let plain_file = world.write(name, plain.as_bytes());
        let theirs = world.sops(&["encrypt", "--age", FIRST.recipient], &plain_file).expect(name);
        let theirs_file = world.write(&format!("theirs-{name}"), &theirs);
        let ours_file = world.write(&format!("ours-{name}"), &seal(plain.as_bytes(), format, &settings()));
        // The same file, opened by either program, from either program.
        let by_them = world.sops(&["decrypt"], &ours_file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(by_them, world.sops(&["decrypt"], &theirs_file).expect(name), "{name}");
        let values = |sealed: &[u8]| {
            let values = open(sealed, format).values().into_iter();
            values.map(|(path, value)| (path, value.expose().to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(values(&theirs), values(&world.read(&format!("ours-{name}"))), "{name}");
        let ours_opened = open(&world.read(&format!("ours-{name}")), format).plaintext().expect(name);
        if format != Format::Ini {
            assert_eq!(String::from_utf8_lossy(ours_opened.expose()), plain, "{name}");
        }
        let theirs_opened = open(&theirs, format).plaintext().expect(name);
        let again = world.write(&format!("again-{name}"), &seal(theirs_opened.expose(), format, &settings()));
        assert_eq!(world.sops(&["decrypt"], &again).expect(name), by_them, "{name}");
    }
}

#[test]
#[ignore = "needs sops: just interop sops"]
fn binary_files_hold_any_bytes() {
    let world = World::new();
    let plain: Vec<u8> = (0..=255).cycle().take(1000).collect();
    let ours = world.write("ours.bin", &seal(&plain, Format::Binary, &settings()));
    assert_eq!(world.sops(&["decrypt"], &ours).expect("opened"), plain);
    let file = world.write("plain.bin", &plain);
    let theirs = world.sops(&["encrypt", "--age", FIRST.recipient], &file).expect("encrypted");
    assert_eq!(open(&theirs, Format::Binary).plaintext().expect("opened").expose(), plain);
}

const YAML: &str = "\
name: plain
# sops:encrypt
db_password: one # inline
token_unencrypted: two
nested:
    secret_a: three
    # sops:encrypt
    # and this
    b: [1, x]
    c: plain
list:
    # sops:encrypt
    - four
    - five
";

#[test]
#[ignore = "needs sops: just interop sops"]
fn every_rule_goes_both_ways() {
    let rules = [
        ("unencrypted_suffix", RuleSetting::UnencryptedSuffix("_password".into())),
        ("encrypted_suffix", RuleSetting::EncryptedSuffix("_password".into())),
        ("unencrypted_regex", RuleSetting::UnencryptedRegex("^(name|nested)$".into())),
        ("encrypted_regex", RuleSetting::EncryptedRegex("(password|secret|^list$)".into())),
        ("unencrypted_comment_regex", RuleSetting::UnencryptedCommentRegex("sops:encrypt".into())),
        ("encrypted_comment_regex", RuleSetting::EncryptedCommentRegex("sops:encrypt".into())),
    ];
    for (option, rule) in rules {
        for mac_only in [false, true] {
            let world = World::new();
            let plain = world.write("plain.yaml", YAML.as_bytes());
            let value = match &rule {
                RuleSetting::UnencryptedSuffix(value)
                | RuleSetting::EncryptedSuffix(value)
                | RuleSetting::UnencryptedRegex(value)
                | RuleSetting::EncryptedRegex(value)
                | RuleSetting::UnencryptedCommentRegex(value)
                | RuleSetting::EncryptedCommentRegex(value) => value.clone(),
            };
            let age = FIRST.recipient;
            let config = format!(
                "creation_rules:\n  - {option}: {value}\n    mac_only_encrypted: {mac_only}\n    age: {age}\n"
            );
            let config = world.write(".sops.yaml", config.as_bytes());
            let arguments = ["--config", config.to_str().expect("UTF-8"), "encrypt"];
            let theirs = world.sops(&arguments, &plain).unwrap_or_else(|error| panic!("{option}: {error}"));
            let opened = open(&theirs, Format::Yaml);
            let settings = Settings { rule: rule.clone(), mac_only_encrypted: mac_only, ..settings() };
            assert_eq!(opened.source().settings(), settings, "{option}");
            let ours = seal(YAML.as_bytes(), Format::Yaml, &settings);
            let file = world.write("ours.yaml", &ours);
            let by_them = world.sops(&["decrypt"], &file).unwrap_or_else(|error| panic!("{option}: {error}"));
            let theirs_file = world.write("theirs.yaml", &theirs);
            assert_eq!(by_them, world.sops(&["decrypt"], &theirs_file).expect("their own"), "{option}");
            assert!(!String::from_utf8_lossy(&by_them).contains("ENC["), "{option}");
            assert_eq!(
                String::from_utf8_lossy(open(&ours, Format::Yaml).plaintext().expect("opened").expose()),
                YAML
            );
            // The two encrypt the same values.
            let encrypted = |text: &[u8]| {
                let text = String::from_utf8_lossy(text).into_owned();
                let data = text.split("\nsops:").next().unwrap_or_default().to_owned();
                data.matches("ENC[").count()
            };
            assert_eq!(
                encrypted(&ours),
                encrypted(&theirs),
                "{option}\n{}",
                String::from_utf8_lossy(&theirs)
            );
        }
    }
}
