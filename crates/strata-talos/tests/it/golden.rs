//! Configurations that `talosctl gen config` made, letter for letter.

use std::path::Path;

use strata_secret::SecretString;
use strata_talos::{GenConfigArgs, GeneratedFiles, gen_config};

use crate::world::{beside_workspace, now, read, seeded, with_flags};

fn file<'f>(files: &'f GeneratedFiles, name: &str) -> &'f str {
    files.files.iter().find(|file| file.name == name).expect("the file").content.expose()
}

/// One case: a directory with the inputs and what came of them.
fn check(secrets: &str, case: &Path) {
    let inputs: serde_json::Value = serde_json::from_str(&read(&case.join("inputs.json"))).expect("inputs");
    let text = |key: &str| inputs[key].as_str().expect("a text").to_owned();
    let contract = text("talosVersion").parse().unwrap_or_else(|error| panic!("{error}"));
    let mut args =
        GenConfigArgs::new(SecretString::from(secrets), contract, text("clusterName"), text("endpoint"));
    let flags = inputs["arguments"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|flag| flag.as_str().expect("a text").to_owned());
    args = with_flags(args, &flags.collect::<Vec<_>>());
    for (name, flag) in [
        ("patch-all.yaml", "--config-patch"),
        ("patch-cp.yaml", "--config-patch-control-plane"),
        ("patch-worker.yaml", "--config-patch-worker"),
    ] {
        let path = case.join(name);
        if path.is_file() {
            args = with_flags(args, &[flag.to_owned(), format!("@{}", path.display())]);
        }
    }
    let files = gen_config(&args, now(), &mut seeded(1))
        .unwrap_or_else(|error| panic!("{}: {error}", case.display()));
    for name in ["controlplane.yaml", "worker.yaml"] {
        let (made, expected) = (file(&files, name), read(&case.join(name)));
        for (line, (made, expected)) in made.lines().zip(expected.lines()).enumerate() {
            assert_eq!(made, expected, "{}/{name}:{}", case.display(), line + 1);
        }
        assert_eq!(made, expected, "{}/{name}", case.display());
    }
}

fn check_all(directory: &Path) -> usize {
    let secrets = read(&directory.join("secrets.yaml"));
    let entries = |path: &Path| {
        let mut entries: Vec<_> = std::fs::read_dir(path)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_dir())
            .collect();
        entries.sort();
        entries
    };
    let cases: Vec<_> = entries(directory).iter().flat_map(|contract| entries(contract)).collect();
    cases.iter().for_each(|case| check(&secrets, case));
    cases.len()
}

#[test]
fn shared_cases_are_equal() {
    if let Some(directory) = beside_workspace("shared/talos") {
        assert!(check_all(&directory) > 0);
    }
}

/// Made with throw-away keys by talosctl 1.14.1; each case passes `talosctl validate --mode metal`.
#[test]
fn committed_cases_are_equal() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    assert_eq!(check_all(&directory), 8);
}

/// Between the contracts of 1.10 and 1.11 Talos only moves the encryption of disks, which neither of them has unless it is asked for.
#[test]
fn talos_1_10_is_written_as_1_11_is() {
    let secrets = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/secrets.yaml"));
    let written = |contract: &str| {
        let contract = contract.parse().unwrap_or_else(|error| panic!("{error}"));
        let args = GenConfigArgs::new(
            SecretString::from(secrets.as_str()),
            contract,
            "demo".to_owned(),
            "https://192.0.2.40:6443".to_owned(),
        );
        let args = with_flags(args, &["--kubernetes-version".to_owned(), "1.33.0".to_owned()]);
        let files = gen_config(&args, now(), &mut seeded(1)).unwrap_or_else(|error| panic!("{error}"));
        ["controlplane.yaml", "worker.yaml"].map(|name| file(&files, name).to_owned())
    };
    assert_eq!(written("v1.10"), written("v1.11"));
}
