//! Imports write keys of the source as constants of its records: no literal in their code is one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use strata_source::cluster::Cluster;
use strata_source::cluster::topology::NodesFile;
use strata_source::hypervisor::Hypervisor;
use strata_source::settings::Settings;
use strata_source::stack::Stack;
use strata_yaml::{Record, RecordSpec, Shape};

/// What takes a key of a document that is written.
const WRITES: [&str; 10] = [
    "json!({\"",
    "json!([{\"",
    ".insert(\"",
    ".entry(\"",
    ".contains_key(\"",
    ".shift_remove(\"",
    ".get_mut(\"",
    ".put(\"",
    ".put_full(\"",
    "document[\"",
];

/// Where such a word is another one's: a reference to a secret, a document of Talos, the name of a stack.
const NOT_OURS: [(&str, &str); 6] = [
    ("", "secret"),
    ("flat.rs", "kubernetes"),
    ("flat.rs", "serial"),
    ("patches.rs", "slot"),
    ("patches.rs", "state"),
    ("talconfig.rs", "kind"),
];

#[test]
fn no_key_of_the_source_is_a_literal() {
    let mut keys = BTreeSet::new();
    for spec in [Settings::spec(), Stack::spec(), Cluster::spec(), Hypervisor::spec(), NodesFile::spec()] {
        keys_of(spec, &mut keys, &mut BTreeSet::new());
    }
    assert!(keys.len() > 200, "{}", keys.len());
    let mut found = Vec::new();
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (line, text) in code.lines().enumerate() {
            for word in WRITES.iter().flat_map(|write| words_behind(text, write)) {
                let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let theirs = NOT_OURS.iter().any(|(end, own)| file.ends_with(end) && *own == word);
                if keys.contains(word) && !theirs {
                    found.push(format!("{}:{}: \"{word}\"", path.display(), line + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "use the constants of the records instead:\n{}", found.join("\n"));
}

/// The words between quotes that follow a call.
fn words_behind<'t>(text: &'t str, write: &str) -> Vec<&'t str> {
    text.split(write).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

fn keys_of(spec: &RecordSpec, keys: &mut BTreeSet<&'static str>, seen: &mut BTreeSet<&'static str>) {
    if !seen.insert(spec.name) {
        return;
    }
    for field in &spec.fields {
        keys.insert(field.key);
        keys_below(&field.shape, keys, seen);
    }
}

fn keys_below(shape: &Shape, keys: &mut BTreeSet<&'static str>, seen: &mut BTreeSet<&'static str>) {
    match shape {
        Shape::Record(spec) => keys_of(spec(), keys, seen),
        Shape::List(inner) | Shape::Map(_, inner) | Shape::Reference(inner) | Shape::Partial(inner) => {
            keys_below(inner, keys, seen);
        }
        Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| keys_below(shape, keys, seen)),
        _ => {}
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
