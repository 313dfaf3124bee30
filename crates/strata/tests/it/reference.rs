//! The reference in docs/ says what the program knows.

use std::path::Path;

use crate::world::BINARY;

const KINDS: [&str; 6] = ["strata", "stack", "cluster", "nodes", "environment", "hypervisor"];

#[test]
fn the_reference_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let repo = strata_testkit::Repo::empty();
    for kind in KINDS {
        let known =
            strata_testkit::Strata::new(BINARY, &repo).run(&["schema", kind, "--markdown"]).ok().stdout;
        let path = folder.join(format!("{kind}.md"));
        if std::env::var_os("STRATA_UPDATE_REFERENCE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &known).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == known,
            "docs/reference/{kind}.md is old: run the tests with STRATA_UPDATE_REFERENCE=1"
        );
    }
}
