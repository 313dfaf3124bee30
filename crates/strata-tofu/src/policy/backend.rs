//! Each stack has a state of its own.

use std::collections::BTreeMap;

use hcl_edit::Span as _;
use hcl_edit::structure::Block;
use strata_diagnostics::{Diagnostic, Span};

use super::{Check, Folder};

/// What tells one state from another, by kind of backend.
const KEYS: [(&str, &[&str]); 4] = [
    ("s3", &["bucket", "key"]),
    ("http", &["address"]),
    ("pg", &["schema_name"]),
    ("gcs", &["bucket", "prefix"]),
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
                let Some(key) = key(block) else { continue };
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

fn key(block: &Block) -> Option<String> {
    let kind = block.labels.first()?.as_str().to_owned();
    let (_, names) = KEYS.iter().find(|(known, _)| *known == kind)?;
    let values: Option<Vec<&str>> = names
        .iter()
        .map(|name| block.body.get_attribute(name).and_then(|found| found.value.as_str()))
        .collect();
    Some(format!("{kind} {}", values?.join("/")))
}
