//! Which stacks there are, in which environments, and in which order.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, Span, nearest};
use strata_yaml::{Node, Spanned};

use super::discover::{EnvironmentFile, StackFile};
use super::{DEFAULT_ENVIRONMENT, EffectiveStack, StackEntry, StackKind};
use crate::environment::STACKS;
use crate::stack::Layer;
use crate::value::name::is_name;

/// Stacks that environments leave out with `null`, and where they do.
pub(super) type LeftOut = BTreeMap<(String, String), Span>;

/// Every stack with the environments that it is part of; two of one name are reported.
pub(super) fn entries(
    files: &[StackFile],
    environments: &[EnvironmentFile],
    diagnostics: &mut Diagnostics,
) -> (Vec<StackEntry>, LeftOut) {
    let mut entries: Vec<StackEntry> = Vec::new();
    let mut left_out = LeftOut::new();
    for file in files {
        let entry = entry(file, environments);
        for environment in environments {
            let Some(span) = environment.tree.as_ref().and_then(|tree| left_out_at(tree, &entry)) else {
                continue;
            };
            if let Some(problem) = pointless(&entry, environment, span) {
                diagnostics.push(problem);
            }
            if environment.name != entry.default_environment {
                left_out.insert((entry.name.value.clone(), environment.name.clone()), span);
            }
        }
        // A name that the file says is checked where the file is read.
        if entry.name.value == file.name && !is_name(&file.name) {
            let message = format!("`{}` cannot be the name of a stack", file.name);
            let problem = Diagnostic::error("invalid-name", message).at(entry.name.span);
            diagnostics.push(problem.hint("give it another: `metadata: {name: …}`"));
        }
        if let Some(first) = entries.iter().find(|other| other.name == entry.name) {
            let message = format!("two stacks are called `{}`", entry.name);
            let problem = Diagnostic::error("name-collision", message).at_with(entry.name.span, "this one");
            let hint = "give one of them another `metadata.name`";
            diagnostics.push(problem.also(first.name.span, "and this one").hint(hint));
        }
        entries.push(entry);
    }
    (entries, left_out)
}

/// A stack that is left out of where it is at home, or of where it would not be.
fn pointless(entry: &StackEntry, environment: &EnvironmentFile, span: Span) -> Option<Diagnostic> {
    let name = &environment.name;
    if *name == entry.default_environment {
        let message = format!(
            "`{}` is in `{name}` unless `-e` says otherwise, and cannot be left out of it",
            entry.name
        );
        let problem = Diagnostic::error("own-environment", message).at(span);
        return Some(problem.hint("give it another `metadata.environment`, or remove the line"));
    }
    let included = environment.tree.as_ref().is_some_and(|tree| includes(tree, entry.kind));
    (!included).then(|| {
        let message = format!("`{}` is left out of `{name}`, which it would not be part of", entry.name);
        let problem = Diagnostic::warning("unused", message).at(span);
        problem.hint(format!("to make it part of `{name}`, write `{}: {{}}`", entry.name))
    })
}

fn entry(file: &StackFile, environments: &[EnvironmentFile]) -> StackEntry {
    let metadata = |key: &str| {
        let node = file.tree.as_ref()?.at(&["metadata", key])?;
        node.as_scalar().map(|scalar| Spanned::new(scalar.text.clone(), node.span))
    };
    let name = metadata("name").unwrap_or_else(|| Spanned::new(file.name.clone(), Span::start_of(file.file)));
    let default_environment = metadata("environment").map_or(DEFAULT_ENVIRONMENT.to_owned(), |env| env.value);
    let layer = metadata("layer").and_then(|layer| {
        <Layer as strata_yaml::Choice>::ALL.iter().copied().find(|known| known.as_str() == layer.value)
    });
    let mut all = vec![default_environment.clone()];
    for environment in environments {
        let named = environment.tree.as_ref().is_some_and(|tree| has_stack(tree, file.kind, &name));
        if named && environment.name != default_environment {
            all.push(environment.name.clone());
        }
    }
    StackEntry {
        name,
        layer: layer.unwrap_or(file.layer),
        kind: file.kind,
        path: file.path.clone(),
        folder: file.folder.clone(),
        default_environment,
        environments: all,
    }
}

/// The section of an environment that holds stacks of a kind.
fn section(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Machines | StackKind::Tofu => "stacks",
        StackKind::Cluster => "clusters",
        StackKind::Hypervisor => "hypervisors",
    }
}

/// Whether an environment names a stack, or takes its folder whole and does not leave it out.
fn has_stack(environment: &Node, kind: StackKind, name: &str) -> bool {
    match environment.at(&[section(kind), name]) {
        Some(node) => !is_null_word(node),
        None => includes(environment, kind),
    }
}

/// Code that was written by hand does not know of environments: it is part of one only where it is named.
fn includes(environment: &Node, kind: StackKind) -> bool {
    let folders = environment.get("include").and_then(Node::as_list).unwrap_or_default();
    let named = |node: &Node| node.as_scalar().is_some_and(|scalar| scalar.text == section(kind));
    kind != StackKind::Tofu && folders.iter().any(named)
}

/// `null` in so many letters; nothing at all says that a stack is there as it is.
fn is_null_word(node: &Node) -> bool {
    node.is_null() && node.as_scalar().is_some_and(|scalar| !scalar.text.is_empty())
}

fn left_out_at(environment: &Node, stack: &StackEntry) -> Option<Span> {
    let node = environment.at(&[section(stack.kind), &stack.name])?;
    is_null_word(node).then_some(node.span)
}

/// What an environment lays over a stack.
pub(super) fn overlay_of<'a>(
    environments: &'a [EnvironmentFile],
    name: &str,
    entry: &StackEntry,
) -> Option<&'a Node> {
    let environment = environments.iter().find(|environment| environment.name == name)?;
    environment
        .tree
        .as_ref()?
        .at(&[section(entry.kind), &entry.name])
        .filter(|node| node.as_mapping().is_some())
}

/// Names in environments that no stack has.
pub(super) fn unknown_stacks(
    stacks: &[StackEntry],
    environments: &[EnvironmentFile],
    diagnostics: &mut Diagnostics,
) {
    for tree in environments.iter().filter_map(|environment| environment.tree.as_ref()) {
        for key in STACKS {
            let Some(named) = tree.get(key).and_then(Node::as_mapping) else { continue };
            let known: Vec<&str> = stacks
                .iter()
                .filter(|entry| section(entry.kind) == key)
                .map(|entry| entry.name.value.as_str())
                .collect();
            for entry in named.entries.iter().filter(|entry| !known.contains(&entry.key.value.as_str())) {
                let message = format!("there is no stack `{}` in `{key}/`", entry.key);
                let meant =
                    nearest(&entry.key, known.iter().copied()).map(|name| format!("did you mean `{name}`?"));
                let problem =
                    Diagnostic::error("unknown-stack", message).at(entry.key.span).maybe_hint(meant);
                diagnostics.push(if known.is_empty() {
                    problem
                } else {
                    problem.note(format!("known: {}", known.join(", ")))
                });
            }
        }
    }
}

/// Lower layers first, then what others depend on, then by name.
pub(super) fn order(stacks: &mut [StackEntry], effective: &BTreeMap<(String, String), EffectiveStack>) {
    stacks.sort_by(|a, b| (a.layer, &a.name.value).cmp(&(b.layer, &b.name.value)));
    let needs: BTreeMap<String, Vec<String>> = stacks
        .iter()
        .map(|entry| {
            let of = |environment: &String| effective.get(&(entry.name.value.clone(), environment.clone()));
            let needed = entry.environments.iter().filter_map(of).flat_map(EffectiveStack::needed);
            (entry.name.value.clone(), needed.map(str::to_owned).collect())
        })
        .collect();
    // A stack's rank is one more than the highest it needs; the bound ends cycles, which are reported elsewhere.
    let mut rank: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..=stacks.len() {
        for (name, needed) in &needs {
            let highest = needed.iter().filter_map(|other| rank.get(other).map(|rank| rank + 1)).max();
            let own = highest.unwrap_or(0).min(stacks.len());
            rank.insert(name.clone(), own);
        }
    }
    stacks.sort_by_key(|entry| (entry.layer, rank.get(&entry.name.value).copied().unwrap_or(0)));
}
