//! The result is loaded as Strata loads any repository: what that refuses is left out, and reported.

mod drawing;

use std::collections::BTreeSet;

use serde_json::Value as Json;
use strata_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use strata_source::Repository;
use strata_source::world::Memory;
use strata_yaml::{Key, Node, Parsed};

use super::records::{ClusterNode, Container, Flux, Guest, ProxmoxTarget};
use super::tree::SourceLine;
use super::{Import, Note, STANDS_IN};
use strata_yaml::plain;

/// Each round leaves out at least one value.
const MAX_ROUNDS: usize = 60;

/// The keys that something may stand in for.
const STANDING_IN: [Key; 5] =
    [Guest::vm_id, ClusterNode::address, ProxmoxTarget::endpoint, Container::image, Flux::repository];

enum Step {
    Key(String),
    Index(usize),
}

/// What Strata refuses of a document.
struct Refused {
    file: String,
    span: Span,
    line: usize,
    message: String,
}

pub(super) fn leave_out_refused(import: &mut Import<'_>) {
    for _ in 0..MAX_ROUNDS {
        let refused = refused(import);
        let mut changed = false;
        let mut told: BTreeSet<(String, usize)> = BTreeSet::new();
        for found in refused {
            // The lines of a document that was changed are others now.
            if told.iter().any(|(file, _)| *file == found.file) {
                continue;
            }
            if import.model.documents.contains_key(&found.file) && leave_out(import, &found) {
                told.insert((found.file, found.line));
                changed = true;
            } else {
                let place = SourceLine::new(&found.file, found.line);
                import.note(Some(&place), format!("Strata refuses this: {}", found.message));
            }
        }
        if !changed {
            break;
        }
    }
    configurations(import);
    for (path, (document, _)) in std::mem::take(&mut import.model.documents) {
        import.imported.files.insert(path, commented(&plain::write(&document), &import.model.stood_in));
    }
}

/// Marks what stands in for something that nobody wrote down.
fn commented(text: &str, stood_in: &BTreeSet<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line);
        let value = line.trim_start().split_once(": ");
        if value.is_some_and(|(key, value)| {
            STANDING_IN.iter().any(|known| known.name() == key) && stood_in.contains(value.trim_matches('"'))
        }) {
            out.push_str(" # ");
            out.push_str(STANDS_IN);
        }
        out.push('\n');
    }
    out
}

/// Tells what a plan would refuse of the configurations of machines; patches stay, for whoever wrote them knows what they are for.
fn configurations(import: &mut Import<'_>) {
    let (repository, diagnostics) = Repository::load(&world(import));
    if diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let mut told: BTreeSet<String> = BTreeSet::new();
    for (stack, problem) in drawing::configurations(&repository, &import.imported.files) {
        // A version is told where it stands.
        if problem.code == "talos-version" || !told.insert(problem.message.clone()) {
            continue;
        }
        let at = problem.primary.as_ref().map(|label| repository.sources.location(label.span));
        let document = at.map(|at| (at.file.to_string(), at.line));
        let place = document.as_ref().and_then(|(file, _)| import.model.documents.get(file));
        let place = place.map(|(_, place)| place.clone());
        let place = place.or_else(|| document.map(|(file, line)| SourceLine::new(&file, line)));
        let message = format!("`strata plan {stack}` refuses this for now: {}", problem.message);
        import.note(place.as_ref(), message);
    }
}

fn refused(import: &Import<'_>) -> Vec<Refused> {
    let world = world(import);
    let (repository, diagnostics) = Repository::load(&world);
    let errors: Vec<Diagnostic> = diagnostics.iter().filter(|problem| problem.is_error()).cloned().collect();
    // What cannot be read cannot be drawn.
    let errors =
        if errors.is_empty() { drawing::problems(&repository, &import.imported.files) } else { errors };
    let mut found: Vec<Refused> = errors
        .iter()
        .filter_map(|problem| {
            let span = problem.primary.as_ref()?.span;
            let at = repository.sources.location(span);
            Some(Refused { file: at.file.to_string(), span, line: at.line, message: problem.message.clone() })
        })
        .collect();
    // Of two that cannot both be, the later one goes.
    found.sort_by_key(|refused| (refused.file.clone(), std::cmp::Reverse(refused.line)));
    found
}

/// The result as it is so far.
fn world(import: &Import<'_>) -> Memory {
    let mut world = Memory::new();
    for (path, text) in &import.imported.files {
        world = world.file(path, text.as_str());
    }
    for (path, (document, _)) in &import.model.documents {
        world = world.file(path, plain::write(document));
    }
    let names: String = import.imported.secrets.keys().map(|name| format!("{name}: ENC[x]\n")).collect();
    world.file(&import.imported.secrets_file, format!("{names}sops: {{version: 3.9.0}}\n"))
}

/// Takes the smallest entry out that the problem lies in; false if there is none.
fn leave_out(import: &mut Import<'_>, found: &Refused) -> bool {
    let Some((document, place)) = import.model.documents.get(&found.file) else { return false };
    let text = plain::write(document);
    let mut sources = SourceMap::new();
    let id = sources.add(&found.file, text.as_str());
    let Parsed::Document(root) = strata_yaml::parse(&sources, id, &mut Diagnostics::new()) else {
        return false;
    };
    let mut path = Vec::new();
    descend(&root, found.span, &mut path);
    let place = origin(import, &found.file, &path).unwrap_or_else(|| place.clone());
    // A document without its first part is none.
    if path.len() < 2 {
        import.model.documents.remove(&found.file);
        import.note(Some(&place), format!("`{}` was left out: {}", found.file, found.message));
        return true;
    }
    let Some((document, _)) = import.model.documents.get_mut(&found.file) else { return false };
    let Some(removed) = remove(document, &path) else { return false };
    let what = words(&path);
    let value = match removed {
        Json::String(text) if !text.contains('\n') => format!(": {text}"),
        Json::Number(number) => format!(": {number}"),
        Json::Bool(value) => format!(": {value}"),
        _ => String::new(),
    };
    let message = format!("`{what}{value}` was left out of `{}`: {}", found.file, found.message);
    import.imported.notes.push(Note { place: Some(place), message });
    true
}

fn descend(node: &Node, span: Span, path: &mut Vec<Step>) {
    let holds = |outer: Span| outer.start <= span.start && span.start < outer.end.max(outer.start + 1);
    if let Some(mapping) = node.as_mapping() {
        for entry in &mapping.entries {
            if holds(entry.key.span.to(entry.value.span)) {
                path.push(Step::Key(entry.key.value.clone()));
                if !holds(entry.key.span) {
                    descend(&entry.value, span, path);
                }
                return;
            }
        }
    } else if let Some(items) = node.as_list() {
        for (index, item) in items.iter().enumerate() {
            if holds(item.span) {
                path.push(Step::Index(index));
                descend(item, span, path);
                return;
            }
        }
    }
}

fn remove(document: &mut Json, path: &[Step]) -> Option<Json> {
    let (last, above) = path.split_last()?;
    let mut at = document;
    for step in above {
        at = match step {
            Step::Key(key) => at.get_mut(key)?,
            Step::Index(index) => at.get_mut(*index)?,
        };
    }
    match last {
        Step::Key(key) => at.as_object_mut()?.remove(key),
        Step::Index(index) => {
            let list = at.as_array_mut()?;
            (*index < list.len()).then(|| list.remove(*index))
        }
    }
}

/// Where the machine that a path leads into came from.
fn origin(import: &Import<'_>, file: &str, path: &[Step]) -> Option<SourceLine> {
    path.windows(2).find_map(|pair| match pair {
        [Step::Key(section), Step::Key(own)] => {
            import.model.origins.get(&(file.to_owned(), section.clone(), own.clone())).cloned()
        }
        _ => None,
    })
}

fn words(path: &[Step]) -> String {
    let mut words = String::new();
    for step in path {
        match step {
            Step::Key(key) if words.is_empty() => words.push_str(key),
            Step::Key(key) => words.push_str(&format!(".{key}")),
            Step::Index(index) => words.push_str(&format!("[{index}]")),
        }
    }
    words
}
