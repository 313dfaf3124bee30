//! Secrets and files that the source refers to: that they are there.

use strata_diagnostics::{Diagnostic, Diagnostics, Severity, SourceMap};
use strata_yaml::{Node, Parsed, Reference, Source, parse};

use super::suggestion;
use crate::repository::Repository;
use crate::world::{World, find};

pub(super) fn check(repository: &Repository, world: &dyn World, diagnostics: &mut Diagnostics) {
    let known = Known::read(repository, world, diagnostics);
    for reference in repository.references() {
        known.check(reference, diagnostics);
    }
    for stack in repository.effective() {
        for reference in &stack.references {
            known.check(reference, diagnostics);
            // What the decoder fetched is there; the rest is needed later.
            if let Source::File(path) = &reference.source
                && !reference.fetched
                && let Err(problem) = find(world, &stack.folder, path)
            {
                // A key may lie only where it is used, which need not be where the source is checked.
                let severity = if reference.sensitive { Severity::Warning } else { Severity::Error };
                diagnostics.push(Diagnostic::new(severity, "missing-file", problem).at(reference.span));
            }
        }
    }
}

/// The names in the encrypted files, as far as they can be read without a key.
struct Known {
    trees: Vec<Node>,
    /// A file hides its names, or could not be read: nothing can be said to be missing.
    hidden: bool,
    any: bool,
}

impl Known {
    fn read(repository: &Repository, world: &dyn World, diagnostics: &mut Diagnostics) -> Self {
        let sources = &repository.settings.secrets;
        let mut known = Self { trees: Vec::new(), hidden: false, any: !sources.is_empty() };
        for source in sources {
            let path = source.path();
            let Ok(content) = world.read(path) else {
                let problem =
                    Diagnostic::error("missing-file", format!("there is no file `{path}`")).at(path.span);
                diagnostics.push(problem.hint("`strata secrets edit` makes it"));
                known.hidden = true;
                continue;
            };
            match names(&content) {
                Some(tree) if source.sops.is_some() => known.trees.push(tree),
                _ => known.hidden = true,
            }
        }
        known
    }

    fn check(&self, reference: &Reference, diagnostics: &mut Diagnostics) {
        let Source::Secret(path) = &reference.source else { return };
        if self.hidden || self.trees.iter().any(|tree| has(tree, path)) {
            return;
        }
        let problem =
            Diagnostic::error("unknown-secret", format!("there is no secret `{path}`")).at(reference.span);
        if !self.any {
            diagnostics.push(problem.hint("name a file of secrets under `secrets` in strata.yaml"));
            return;
        }
        let mut all = Vec::new();
        self.trees.iter().for_each(|tree| leaves(tree, String::new(), &mut all));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let hint = suggestion(path, &all).unwrap_or_else(|| "add it with `strata secrets edit`".to_owned());
        diagnostics.push(problem.hint(hint));
    }
}

/// The tree of a SOPS file: its keys are in the clear, whatever its values are.
fn names(content: &[u8]) -> Option<Node> {
    let text = std::str::from_utf8(content).ok()?;
    let mut sources = SourceMap::new();
    let file = sources.add("secrets", text);
    match parse(&sources, file, &mut Diagnostics::new()) {
        Parsed::Document(node) => node.as_mapping().is_some().then_some(node),
        Parsed::Empty | Parsed::Broken => None,
    }
}

fn has(tree: &Node, path: &str) -> bool {
    path != "sops" && !path.starts_with("sops.") && leads_to_value(tree, path)
}

/// Whether names joined by points lead to a value. A name may have points itself.
fn leads_to_value(node: &Node, path: &str) -> bool {
    if let Some(items) = node.as_list() {
        let (index, rest) = path.split_once('.').map_or((path, None), |(index, rest)| (index, Some(rest)));
        let mut items = items.iter().filter(|item| !is_sealed_comment(item));
        let item = index.parse::<usize>().ok().and_then(|index| items.nth(index));
        return item.is_some_and(|item| match rest {
            Some(rest) => leads_to_value(item, rest),
            None => item.as_scalar().is_some(),
        });
    }
    let entries = node.as_mapping().map(|mapping| mapping.entries.as_slice()).unwrap_or_default();
    entries.iter().any(|entry| match path.strip_prefix(entry.key.value.as_str()) {
        Some("") => entry.value.as_scalar().is_some(),
        Some(rest) => rest.strip_prefix('.').is_some_and(|rest| leads_to_value(&entry.value, rest)),
        None => false,
    })
}

/// `sops` writes a comment in some lists as an item, which has no number.
fn is_sealed_comment(item: &Node) -> bool {
    item.as_scalar()
        .is_some_and(|scalar| scalar.text.starts_with("ENC[") && scalar.text.ends_with(",type:comment]"))
}

fn leaves(node: &Node, path: String, all: &mut Vec<String>) {
    match node.as_mapping() {
        Some(mapping) => {
            for entry in
                mapping.entries.iter().filter(|entry| !(path.is_empty() && entry.key.value == "sops"))
            {
                let below =
                    if path.is_empty() { entry.key.value.clone() } else { format!("{path}.{}", entry.key) };
                leaves(&entry.value, below, all);
            }
        }
        None => match node.as_list() {
            Some(items) => {
                for (index, item) in items.iter().filter(|item| !is_sealed_comment(item)).enumerate() {
                    leaves(item, format!("{path}.{index}"), all);
                }
            }
            None => all.push(path),
        },
    }
}
