//! Each stack has a state of its own.

use std::collections::BTreeMap;

use hcl_edit::Span as _;
use hcl_edit::structure::Block;
use strata_diagnostics::{Diagnostic, Span};

use super::{Check, Folder};
use crate::path::resolve;

/// What tells one state from another, by kind of backend.
const KEYS: [(&str, &[&str]); 9] = [
    ("s3", &["bucket", "key"]),
    ("http", &["address"]),
    ("pg", &["schema_name"]),
    ("gcs", &["bucket", "prefix"]),
    ("azurerm", &["storage_account_name", "container_name", "key"]),
    ("oss", &["bucket", "prefix", "key"]),
    ("cos", &["bucket", "prefix", "key"]),
    ("consul", &["path"]),
    ("kubernetes", &["namespace", "secret_suffix"]),
];

pub(super) fn unique(check: &mut Check<'_>, folders: &BTreeMap<String, Folder>) {
    let mut known: BTreeMap<String, (String, Span)> = BTreeMap::new();
    for (path, folder) in folders {
        for file in &folder.code {
            let terraform = file.body.blocks().filter(|block| block.ident.as_str() == "terraform");
            for block in terraform
                .flat_map(|block| block.body.blocks())
                .filter(|block| block.ident.as_str() == "backend")
            {
                let Some(key) = key(path, block) else { continue };
                let span = block.span().map_or(Span::start_of(file.id), |range| {
                    Span::new(file.id, range.start, range.start + 1)
                });
                if let Some((other, first)) = known.get(&key) {
                    let message = format!("`{path}` and `{other}` share one state: {key}");
                    let problem = Diagnostic::error("backend-key", message).at_with(span, "this one");
                    check
                        .found
                        .push(problem.also(*first, "and this one").hint("give each stack a key of its own"));
                } else {
                    known.insert(key, (path.clone(), span));
                }
            }
        }
    }
}

fn key(folder: &str, block: &Block) -> Option<String> {
    let kind = block.labels.first()?.as_str().to_owned();
    // What is left empty is said by a file or on the command line.
    let said = |name: &str| {
        let found = block.body.get_attribute(name).and_then(|found| found.value.as_str());
        found.filter(|found| !found.is_empty())
    };
    if kind == "local" {
        // Beside the code, unless it says another place.
        return Some(format!("local {}", resolve(folder, said("path")?)?));
    }
    let (_, names) = KEYS.iter().find(|(known, _)| *known == kind)?;
    // Where it is kept may be said elsewhere, for all stacks; under which name must be said here.
    said(names.last()?)?;
    let values: Vec<&str> = names.iter().map(|name| said(name).unwrap_or("…")).collect();
    Some(format!("{kind} {}", values.join("/")))
}
