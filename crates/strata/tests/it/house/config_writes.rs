//! A node gets its configuration from one place, which reads the node and compares before it sends.

use super::{crates, product, rust_files};

const ONE_PLACE: &str = "strata-cluster/src/config_write.rs";
/// Where the call itself is.
const CLIENT: &str = "strata-talos-client/src/machine.rs";

#[test]
fn a_configuration_is_sent_from_one_place() {
    let mut found = Vec::new();
    for owner in std::fs::read_dir(crates()).unwrap() {
        let source = owner.unwrap().path().join("src");
        for path in rust_files(&source).iter().filter(|path| product(path).contains("apply_configuration(")) {
            found.push(path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    assert_eq!(found, [ONE_PLACE, CLIENT]);
}
