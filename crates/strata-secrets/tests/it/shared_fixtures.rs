//! Files that the real programs made, kept beside the workspace. Nothing is tested where they are absent.

use std::path::{Path, PathBuf};

use strata_secret::{SecretBytes, SecretString};
use strata_secrets::Identities;
use strata_secrets::sops::{self, Format, Settings, SopsFile};
use strata_secrets::vault::{self, Passwords, VaultPassword};

use crate::keys::{FIRST, NOW, random};

fn fixtures() -> Option<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/secrets-fixtures");
    fixtures.is_dir().then_some(fixtures)
}

fn text(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names and values of a plain file, as it would have them once encrypted.
fn values_of_plain(path: &Path) -> Vec<(Vec<String>, Vec<u8>)> {
    let settings = Settings { groups: vec![vec![FIRST.recipient.to_owned()]], ..Settings::default() };
    let plain = SecretBytes::new(std::fs::read(path).expect("a plain file"));
    let sealed = sops::encrypt(&plain, Format::of(path), &settings, NOW, &mut random(1)).expect("encrypted");
    values(&sealed, Format::of(path), &FIRST.identities())
}

fn values(sealed: &[u8], format: Format, identities: &Identities) -> Vec<(Vec<String>, Vec<u8>)> {
    let open = SopsFile::parse(sealed, format).and_then(|file| file.open(identities));
    let open = open.unwrap_or_else(|error| panic!("{error}"));
    open.values().into_iter().map(|(path, value)| (path, value.expose().to_vec())).collect()
}

#[test]
fn every_sops_file_has_the_values_of_its_plain_file() {
    let Some(fixtures) = fixtures() else { return };
    let keys = ["key.txt", "key2.txt"].map(|name| text(fixtures.join(name))).concat();
    let identities = Identities::parse(&SecretString::new(keys)).expect("identities");
    for (encrypted, plain) in [
        ("infra.sops.yaml", "infra.yaml"),
        ("infra.two-recipients.sops.yaml", "infra.yaml"),
        ("infra.shamir.sops.yaml", "infra.yaml"),
        ("infra.mac-only.sops.yaml", "infra.yaml"),
        ("infra.unencrypted-suffix.sops.yaml", "infra.yaml"),
        ("k8s.regex.sops.yaml", "k8s.yaml"),
        ("app.sops.json", "app.json"),
        ("app.sops.env", "app.env"),
        ("blob.sops.bin", "blob.bin"),
    ] {
        let sealed = std::fs::read(fixtures.join("enc").join(encrypted)).expect(encrypted);
        let found = values(&sealed, Format::of(encrypted.as_ref()), &identities);
        assert_eq!(found, values_of_plain(&fixtures.join("plain").join(plain)), "{encrypted}");
    }
}

#[test]
fn every_vault_opens() {
    let Some(fixtures) = fixtures() else { return };
    let password = |id, file: &str| {
        VaultPassword::new(id, SecretString::from(text(fixtures.join(file)).trim())).expect("a good id")
    };
    let passwords = Passwords::given(vec![
        password(None, "vault-pass.txt"),
        password(Some("prod"), "vault-pass-prod.txt"),
    ]);
    let open =
        |name: &str| vault::open(text(fixtures.join("vault").join(name)).as_bytes(), &passwords).expect(name);
    assert_eq!(
        open("secrets.vault.yaml").plaintext().expose(),
        text(fixtures.join("plain/infra.yaml")).as_bytes()
    );
    let tfvars = open("secrets.tfvars");
    assert_eq!(tfvars.id(), Some("prod"));
    let variables =
        strata_secrets::tfvars::values(std::str::from_utf8(tfvars.plaintext().expose()).expect("UTF-8"));
    assert!(!variables.expect("literals").is_empty());
    let inline =
        vault::decrypt_values(&text(fixtures.join("vault/inline.yaml")), &passwords).expect("opened");
    assert!(inline.expose().starts_with("db_password: \""));
}
