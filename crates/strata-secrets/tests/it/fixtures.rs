//! Files that `sops` 3.13.3 and `ansible-vault` 2.19 made, for throw-away keys.

use std::path::Path;

use strata_secret::SecretString;
use strata_secrets::Identities;
use strata_secrets::sops::{Format, OpenFile, SopsFile};
use strata_secrets::vault::{self, Passwords, VaultPassword};

use crate::keys::{FIRST, SECOND, SSH};

pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn all_keys() -> Identities {
    let text = format!("{}\n{}\n", FIRST.secret, SECOND.secret);
    Identities::parse(&SecretString::new(text)).expect("two keys")
}

pub(crate) fn passwords() -> Passwords {
    let password = |id, text: &str| VaultPassword::new(id, SecretString::from(text)).expect("a good id");
    Passwords::given(vec![password(None, "first password"), password(Some("prod"), "second password")])
}

fn open(name: &str) -> OpenFile {
    let file =
        SopsFile::parse(&read(name), Format::of(name.as_ref())).and_then(|file| file.open(&all_keys()));
    file.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn plaintext(name: &str) -> String {
    let plain = open(name).plaintext().unwrap_or_else(|error| panic!("{name}: {error}"));
    plain.into_string().ok().expect("text").expose().to_owned()
}

#[test]
fn yaml_with_every_kind_of_value_and_comment() {
    assert_eq!(
        plaintext("sops/all.sops.yaml"),
        "\
# Every kind of value
text: plain text
quoted: 's3cret: with # odd \"chars\" and ünïcode'
multi: |
    line one
      indented

    line three
empty: \"\"
none: null
numbers:
    int: 12345678901234
    negative: -7
    float: 0.25
    \"yes\": true
    date: 2026-01-02T00:00:00Z
list:
    - a
    - 1
    - b: c
commented:
    # above
    # beside
    - x
    # below
name_unencrypted: stays
'odd: key': \"y\"
"
    );
    let open = open("sops/all.sops.yaml");
    let opened: Vec<_> = open.values().into_iter().map(|(path, _)| path).collect();
    let mut listed = open.source().names();
    assert!(listed.contains(&vec!["commented".to_owned(), "0".to_owned()]));
    listed.retain(|path| path != &["none"]);
    assert_eq!(listed, opened, "names are the same with and without the key");
    assert!(!open.source().encrypted_names().contains(&vec!["name_unencrypted".to_owned()]));
    assert_eq!(open.get(&["list", "2", "b"]).expect("there").expose(), "c");
    assert_eq!(open.get(&["commented", "0"]).expect("there").expose(), "x");
    assert!(open.get(&["none"]).is_none());
}

#[test]
fn several_documents_with_a_regex_and_a_mac_over_encrypted_values() {
    assert_eq!(
        plaintext("sops/k8s.sops.yaml"),
        "apiVersion: v1\nkind: Secret\nstringData:\n    apiKey: 1-abcdef\n---\n\
         apiVersion: v1\nkind: Secret\nstringData:\n    token: xyz\n"
    );
}

#[test]
fn json_dotenv_ini_and_binary() {
    assert_eq!(
        plaintext("sops/app.sops.json"),
        "{\n\t\"a\": \"text\",\n\t\"n\": 5,\n\t\"f\": 1.5,\n\t\"t\": true,\n\t\"z\": null,\n\t\"o\": {\n\t\t\"k\": [\n\t\t\t\
         \"x\",\n\t\t\t{\n\t\t\t\t\"y\": \"\"\n\t\t\t}\n\t\t]\n\t}\n}\n"
    );
    assert_eq!(plaintext("sops/app.sops.env"), "KEY=value\n# comment\nMULTI=one\\ntwo\nEMPTY=\n");
    let ini = open("sops/app.sops.ini");
    assert_eq!(ini.get(&["section", "hash"]).expect("there").expose(), "a#b");
    assert!(plaintext("sops/app.sops.ini").contains("; about\n[section]\n"));
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(open("sops/blob.sops.bin").plaintext().expect("bytes").expose(), bytes);
}

#[test]
fn a_shared_key_needs_both_and_an_ssh_key_is_a_key() {
    assert_eq!(plaintext("sops/shamir.sops.yaml"), "a: shared\nb: 2\n");
    let one = SopsFile::parse(&read("sops/shamir.sops.yaml"), Format::Yaml)
        .expect("a file")
        .open(&FIRST.identities());
    let error = one.err().expect("one of two").to_string();
    assert!(error.contains("1 of 2 keys could be opened"), "{error}");
    let ssh =
        SopsFile::parse(&read("sops/ssh.sops.yaml"), Format::Yaml).expect("a file").open(&SSH.identities());
    assert_eq!(ssh.expect("its key").get(&["key"]).expect("there").expose(), "for ssh");
}

#[test]
fn vaults_of_both_versions_and_single_values() {
    let opened = vault::open(&read("vault/whole.vault.yaml"), &passwords()).expect("opened");
    assert_eq!(opened.plaintext().expose(), b"db:\n  password: \"0123\"\n  user: admin\n");
    let opened = vault::open(&read("vault/secrets.tfvars"), &passwords()).expect("opened");
    assert_eq!(opened.id(), Some("prod"));
    assert_eq!(opened.plaintext().expose(), b"proxmox = {\n  token = \"tf\"\n}\n");
    let inline = String::from_utf8(read("vault/inline.yaml")).expect("UTF-8");
    let clear = vault::decrypt_values(&inline, &passwords()).expect("opened");
    assert_eq!(clear.expose(), "host: db\npassword: \"in line\"\nlast: 1\n");
}
