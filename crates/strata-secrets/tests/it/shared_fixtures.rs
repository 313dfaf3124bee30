//! Files that the real programs made, kept beside the workspace. Nothing is tested where they are absent.

use std::path::{Path, PathBuf};

use strata_secret::SecretString;
use strata_secrets::Identities;
use strata_secrets::sops::{Format, SopsFile};

fn fixtures() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixtures = workspace.join("../shared/secrets-fixtures");
    fixtures.is_dir().then_some(fixtures)
}

fn identities(fixtures: &Path, names: &[&str]) -> Identities {
    let keys: String =
        names.iter().map(|name| std::fs::read_to_string(fixtures.join(name)).expect("a key file")).collect();
    Identities::parse(&SecretString::new(keys)).expect("identities")
}

#[test]
fn every_sops_file_opens() {
    let Some(fixtures) = fixtures() else { return };
    let identities = identities(&fixtures, &["key.txt", "key2.txt"]);
    for entry in std::fs::read_dir(fixtures.join("enc")).expect("a directory") {
        let path = entry.expect("an entry").path();
        let file = SopsFile::parse(&std::fs::read(&path).expect("a file"), Format::of(&path));
        let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let open = file.open(&identities).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let plain = open.plaintext().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        println!("== {}\n{}", path.display(), String::from_utf8_lossy(plain.expose()));
    }
}
