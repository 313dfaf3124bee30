//! A file that somebody names is read by one function, which opens nothing but files and reads no more than it was asked for.

use super::{crates, product, product_files};

/// Who reads otherwise, and why it may.
const ALLOWED: [(&str, &str); 11] = [
    ("strata-diagnostics/src/read_file.rs", "the function itself"),
    ("strata-review/src/audit.rs", "the folder of the log, to make its entries durable"),
    ("strata-secrets/src/memory_file.rs", "a file in memory that this run made"),
    ("strata-secrets/src/replace_file.rs", "its own new files beside the one it replaces"),
    ("strata-server/src/access/file.rs", "the server's own folder, to make its entries durable"),
    ("strata-server/src/backup.rs", "the server's own folder"),
    ("strata-state/src/local.rs", "the store's own folder"),
    ("strata-state/src/local/durable.rs", "the store's own folder, to make its entries durable"),
    ("strata-state/src/owner.rs", "what the kernel says of a process"),
    ("strata/src/commands/demo.rs", "the folder that the demonstration made"),
    ("strata/src/commands/tofu/terminal.rs", "the first bytes of a plan that it checked before"),
];

#[test]
fn files_are_read_by_one_function() {
    let mut found = std::collections::BTreeSet::new();
    for path in product_files() {
        let text = product(&path);
        if ["fs::read(", "fs::read_to_string(", "File::open(", "OpenOptions::new().read("]
            .iter()
            .any(|call| text.contains(call))
        {
            found.insert(path.strip_prefix(crates()).unwrap().to_string_lossy().into_owned());
        }
    }
    let allowed = |file: &String| ALLOWED.iter().any(|(name, _)| file == name);
    let more: Vec<_> = found.iter().filter(|file| !allowed(file)).collect();
    assert!(more.is_empty(), "read it with `strata_diagnostics::read_file`, or say here why not: {more:?}");
    let gone: Vec<_> = ALLOWED.iter().filter(|(name, _)| !found.contains(*name)).collect();
    assert!(gone.is_empty(), "no longer needed: {gone:?}");
}
