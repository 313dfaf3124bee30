//! Changing files: what was not touched stays as it was, to the byte.

use strata_secret::SecretBytes;
use strata_secrets::sops::{self, ForeignKeys, Format, OpenFile, RuleSetting, Settings, SopsFile};

use crate::fixtures::{all_keys, read};
use crate::generate::Generator;
use crate::keys::{FIRST, NOW, SECOND, random};

fn open(content: &[u8], format: Format) -> OpenFile {
    SopsFile::parse(content, format)
        .and_then(|file| file.open(&all_keys()))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn seal(plain: &str, format: Format) -> Vec<u8> {
    let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
    sops::encrypt(&SecretBytes::new(plain), format, &settings, NOW, &mut random(1))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn plaintext(open: &OpenFile) -> String {
    open.plaintext().expect("readable").into_string().ok().expect("text").expose().to_owned()
}

const YAML: &str = "\
# Infrastructure credentials

\"quoted\":   'single'   # beside
proxmox:   {token: \"a, b\", ports: [8006, 3128]}

multi: |  # a block
   line one

   line two
list:
- a
-   b:  c   # deep

  # inside
# the end
";

#[test]
fn layout_and_comments_survive_a_round_trip() {
    let sealed = seal(YAML, Format::Yaml);
    let text = String::from_utf8(sealed.clone()).expect("UTF-8");
    assert!(
        !text.contains("credentials") && !text.contains("single") && !text.contains("line one"),
        "{text}"
    );
    let expected = YAML.replace("'single'", "single").replace("\"a, b\"", "'a, b'");
    let expected = expected.replace(
        "multi: |  # a block\n   line one\n\n   line two\n",
        "multi: |  # a block\n    line one\n\n    line two\n",
    );
    assert_eq!(plaintext(&open(&sealed, Format::Yaml)), expected);
}

#[test]
fn an_edit_of_one_value_changes_one_line_and_the_metadata() {
    for (name, from, to) in [
        ("sops/all.sops.yaml", "int: 12345678901234", "int: 5"),
        ("sops/app.sops.json", "\"n\": 5", "\"n\": 6"),
        ("sops/app.sops.env", "KEY=value", "KEY=other"),
        ("sops/app.sops.ini", "= value", "= other"),
    ] {
        let format = Format::of(name.as_ref());
        let before = read(name);
        let opened = open(&before, format);
        let plain = plaintext(&opened);
        assert!(
            opened.edit(&SecretBytes::new(plain.clone()), NOW, &mut random(2)).expect(name).is_none(),
            "{name}"
        );
        let edited = plain.replace(from, to);
        assert_ne!(edited, plain, "{name}: {plain}");
        let after = opened
            .edit(&SecretBytes::new(edited.clone()), NOW, &mut random(2))
            .expect(name)
            .expect("a change");
        assert_eq!(plaintext(&open(&after, format)), edited);
        let (before, after) =
            (String::from_utf8(before).expect("UTF-8"), String::from_utf8(after).expect("UTF-8"));
        let changed = before.lines().filter(|line| !after.lines().any(|other| other == *line));
        let changed: Vec<&str> = changed.filter(|line| !line.contains("type:comment")).collect();
        assert_eq!(changed.len(), 3, "{name}: the value, the MAC and the time, but not {changed:#?}");
    }
}

/// The metadata of a file that can also be opened with PGP and with a cloud service.
fn with_foreign_keys() -> Vec<u8> {
    let text = String::from_utf8(read("sops/all.sops.yaml")).expect("UTF-8");
    let kms = "    kms:\n        - arn: arn:aws:kms:eu-west-1:1:key/2\n          created_at: \"2026-01-02T03:04:05Z\"\n          enc: AQICAHg=\n          aws_profile: \"\"\n";
    let pgp = "    pgp:\n        - created_at: \"2026-01-02T03:04:05Z\"\n          enc: |-\n            -----BEGIN PGP MESSAGE-----\n\n            hQIMA\n            -----END PGP MESSAGE-----\n          fp: ABCDEF0123456789\n";
    let text = text.replace("    lastmodified:", &format!("{kms}    lastmodified:"));
    text.replace("    unencrypted_suffix:", &format!("{pgp}    unencrypted_suffix:")).into_bytes()
}

fn foreign_parts(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text).into_owned();
    let part =
        |from: &str| text[text.find(from).expect(from)..].lines().take(5).collect::<Vec<_>>().join("\n");
    vec![part("    kms:"), part("    pgp:")]
}

#[test]
fn keys_of_pgp_and_kms_survive_what_age_can_do() {
    let before = with_foreign_keys();
    let opened = open(&before, Format::Yaml);
    assert_eq!(opened.source().foreign_keys(), 2);
    let edited = SecretBytes::new(plaintext(&opened).replace("plain text", "other text"));
    let after = opened.edit(&edited, NOW, &mut random(2)).expect("edited").expect("a change");
    assert_eq!(foreign_parts(&before), foreign_parts(&after));
    let both = vec![vec![FIRST.recipient.to_owned(), SECOND.recipient.to_owned()]];
    let shared = opened.update_keys(&both, None, &mut random(3)).expect("updated").expect("a change");
    assert_eq!(foreign_parts(&before), foreign_parts(&shared));
    open(&shared, Format::Yaml);
}

#[test]
fn a_new_data_key_is_refused_to_keys_that_cannot_have_it() {
    let opened = open(&with_foreign_keys(), Format::Yaml);
    let error = opened
        .rotate(None, ForeignKeys::Keep, NOW, &mut random(4))
        .expect_err("PGP cannot be asked")
        .to_string();
    assert!(error.contains("`kms`, `pgp`"), "{error}");
    let rotated = opened.rotate(None, ForeignKeys::Drop, NOW, &mut random(4)).expect("rotated");
    assert_eq!(open(&rotated, Format::Yaml).source().foreign_keys(), 0);
}

#[test]
fn recipients_come_and_go_without_touching_the_values() {
    let sealed = seal(YAML, Format::Yaml);
    let groups = |keys: &[&str]| vec![keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()];
    let same = open(&sealed, Format::Yaml).update_keys(&groups(&[FIRST.recipient]), None, &mut random(5));
    assert!(same.expect("fine").is_none());
    let both = groups(&[FIRST.recipient, SECOND.recipient]);
    let shared = open(&sealed, Format::Yaml)
        .update_keys(&both, None, &mut random(5))
        .expect("updated")
        .expect("a change");
    let data = |content: &[u8]| {
        String::from_utf8_lossy(content).split("\nsops:").next().unwrap_or_default().to_owned()
    };
    assert_eq!(data(&shared), data(&sealed));
    let second =
        SopsFile::parse(&shared, Format::Yaml).expect("a file").open(&SECOND.identities()).expect("its key");
    let alone = second
        .update_keys(&groups(&[SECOND.recipient]), None, &mut random(6))
        .expect("updated")
        .expect("a change");
    let error = SopsFile::parse(&alone, Format::Yaml)
        .expect("a file")
        .open(&FIRST.identities())
        .err()
        .expect("taken out");
    assert!(error.to_string().contains(SECOND.recipient), "{error}");
    assert!(second.update_keys(&[vec![]], None, &mut random(6)).is_err());
}

#[test]
fn a_rotated_file_has_another_ciphertext_for_every_value() {
    let sealed = seal(YAML, Format::Yaml);
    let only = [vec![SECOND.recipient.to_owned()]];
    let rotated =
        open(&sealed, Format::Yaml).rotate(Some((&only, None)), ForeignKeys::Keep, NOW, &mut random(7));
    let rotated = rotated.expect("rotated");
    let tokens = |content: &[u8]| {
        let text = String::from_utf8_lossy(content).into_owned();
        text.split("ENC[")
            .skip(1)
            .map(|rest| rest.split(']').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert!(!tokens(&rotated).iter().any(|token| tokens(&sealed).contains(token)));
    assert_eq!(plaintext(&open(&rotated, Format::Yaml)), plaintext(&open(&sealed, Format::Yaml)));
    assert!(SopsFile::parse(&rotated, Format::Yaml).expect("a file").open(&FIRST.identities()).is_err());
}

#[test]
fn groups_become_one_and_one_becomes_groups() {
    let sealed = seal(YAML, Format::Yaml);
    let two = [vec![FIRST.recipient.to_owned()], vec![SECOND.recipient.to_owned()]];
    let shared = open(&sealed, Format::Yaml)
        .update_keys(&two, Some(2), &mut random(8))
        .expect("updated")
        .expect("a change");
    assert!(SopsFile::parse(&shared, Format::Yaml).expect("a file").open(&FIRST.identities()).is_err());
    let one = [vec![FIRST.recipient.to_owned()]];
    let single = open(&shared, Format::Yaml)
        .update_keys(&one, None, &mut random(9))
        .expect("updated")
        .expect("a change");
    SopsFile::parse(&single, Format::Yaml)
        .expect("a file")
        .open(&FIRST.identities())
        .expect("one key is enough");
    let error =
        open(&sealed, Format::Yaml).update_keys(&two, Some(3), &mut random(8)).expect_err("impossible");
    assert_eq!(error.to_string(), "2 groups of keys cannot have a threshold of 3");
}

#[test]
fn what_cannot_be_encrypted_is_refused_and_nothing_is_quoted() {
    let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
    for (plain, format) in [
        ("", Format::Yaml),
        ("- hunter2\n", Format::Yaml),
        ("hunter2\n", Format::Yaml),
        ("1: hunter2\n", Format::Yaml),
        ("a: hunter2\na: hunter2\n", Format::Yaml),
        ("a: 18446744073709551615\n", Format::Yaml),
        ("a: \"hunter2\n", Format::Yaml),
        ("sops: hunter2\n", Format::Yaml),
        ("[\"hunter2\"]", Format::Json),
        ("{\"hunter2", Format::Json),
        ("hunter2\n", Format::Dotenv),
        ("[hunter2\n", Format::Ini),
    ] {
        let error = sops::encrypt(&SecretBytes::new(plain), format, &settings, NOW, &mut random(1)).err();
        let error = error.unwrap_or_else(|| panic!("{plain}")).to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
    let sealed = seal("a: 1\n", Format::Yaml);
    let again = sops::encrypt(&SecretBytes::new(sealed), Format::Yaml, &settings, NOW, &mut random(1)).err();
    assert_eq!(again.expect("refused").to_string(), "already encrypted with `sops`");
    let confusing = Settings { rule: RuleSetting::UnencryptedCommentRegex("ENC".to_owned()), ..settings };
    assert!(
        sops::encrypt(&SecretBytes::new("# x\na: 1\n"), Format::Yaml, &confusing, NOW, &mut random(1))
            .is_err()
    );
}

#[test]
fn nothing_stays_in_the_clear() {
    // Comments are numbered.
    let comment = regex::Regex::new("#\\s*c[0-9]+ ").expect("a pattern");
    for seed in 0..100 {
        let plain = Generator::new(seed).yaml();
        let text = String::from_utf8(seal(&plain, Format::Yaml)).expect("UTF-8");
        let values = [
            "two words",
            "root@pam",
            "☃",
            "anchored",
            "tagged",
            "indented",
            "not a comment",
            "aGVsbG8",
            "first",
        ];
        for marker in values {
            assert!(!text.contains(marker), "seed {seed}: `{marker}`\n{plain}\n{text}");
        }
        assert!(!comment.is_match(&text), "seed {seed}: a comment\n{plain}\n{text}");
    }
    let ini = "; note one\n[s] ; note two\nk = v1 # note three\n; note four\nl = \"\"\"a\nnote five\"\"\" ; note six\n; note seven\n";
    assert!(!String::from_utf8(seal(ini, Format::Ini)).expect("UTF-8").contains("note"));
    let env = "# note one\nA=note two\n#note three\n";
    assert!(!String::from_utf8(seal(env, Format::Dotenv)).expect("UTF-8").contains("note"));
}

#[test]
fn a_plain_value_in_an_encrypted_file_is_found_and_refused() {
    let sealed = String::from_utf8(seal("a: 1\n", Format::Yaml)).expect("UTF-8");
    let changed = sealed.replacen("a: ", "added: hunter2\na: ", 1);
    let file = SopsFile::parse(changed.as_bytes(), Format::Yaml).expect("a file");
    assert_eq!(file.plain_values(), ["added"]);
    let error = file.open(&all_keys()).err().expect("refused").to_string();
    assert_eq!(error, "`added` should be encrypted and is not");
}

#[test]
fn values_become_a_file() {
    let values = [("token", "root@pam!x=1"), ("odd: key", "two\nlines\n"), ("number", "0123")];
    let values = values.map(|(name, value)| (name, strata_secret::SecretString::from(value)));
    let plain = sops::plain_yaml(&values.each_ref().map(|(name, value)| (*name, value)));
    let opened = open(&seal(std::str::from_utf8(plain.expose()).expect("UTF-8"), Format::Yaml), Format::Yaml);
    for (name, value) in &values {
        assert!(opened.get(&[name]).expect("there") == *value, "{name}");
    }
}

#[test]
fn aliases_are_written_out_where_their_values_are_encrypted() {
    let plain = "base: &b {k: v, l: [1]}\ncopy: *b\nname: &n x\nsame: *n\n";
    let opened = open(&seal(plain, Format::Yaml), Format::Yaml);
    assert_eq!(opened.get(&["copy", "k"]).expect("there").expose(), "v");
    assert_eq!(opened.get(&["copy", "l", "0"]).expect("there").expose(), "1");
    assert_eq!(opened.get(&["same"]).expect("there").expose(), "x");
    assert_eq!(
        plaintext(&opened),
        "base: &b {k: v, l: [1]}\ncopy: {\"k\": v, \"l\": [1]}\nname: &n x\nsame: x\n"
    );
    let bomb: String =
        (1..30).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1)).collect();
    let bomb = format!("a0: &a0 [x]\n{bomb}");
    let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
    let error = sops::encrypt(&SecretBytes::new(bomb), Format::Yaml, &settings, NOW, &mut random(1)).err();
    assert!(error.expect("refused").to_string().contains("values, with every alias written out"));
}
