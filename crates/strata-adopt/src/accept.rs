//! From a field that somebody else changed to the edits of a file that say it.
//!
//! A live value has no one place in YAML: a key may be written short, in a list or by slot, under another spelling, or not at all. So
//! the ways to write it are listed here, the plainest first, and whoever accepts draws each of them and takes the first that says
//! what is live and changes nothing else.

mod form;

use serde_json::{Map, Value as Json};
use strata_resource::{FieldChange, Spec, Value};
use strata_yaml::Shape;
use strata_yaml::edit::{self, EditError, Step};

use crate::fields::size;
use form::{expanded, place};

/// An entry of a file, and what it may look like.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The keys that lead to it from the top of the file.
    pub path: Vec<String>,
    /// Of the whole file.
    pub shape: Shape,
}

/// A key below an entry that would say something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// From the entry down, devices by slot.
    pub path: Vec<String>,
    /// None where the key goes.
    pub value: Option<Json>,
}

/// One edit of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    path: Vec<Step>,
    /// None where the key goes.
    value: Option<Json>,
}

impl Edit {
    /// The text with it.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        match &self.value {
            Some(value) => edit::set(text, &self.path, value),
            None => edit::remove(text, &self.path),
        }
    }
}

/// A guest as `stack.yaml` would say it, before and after a change of its spec: the keys that differ, and all that it says after it.
pub fn key_changes(shape: &Shape, before: &Json, after: &Json) -> (Vec<KeyChange>, Json) {
    let (before, after) = (expanded(shape, before), expanded(shape, after));
    let mut found = Vec::new();
    compare(&mut Vec::new(), Some(&before), Some(&after), &mut found);
    (found, after)
}

fn compare(path: &mut Vec<String>, before: Option<&Json>, after: Option<&Json>, found: &mut Vec<KeyChange>) {
    if before == after {
        return;
    }
    if let (Some(Json::Object(old)), Some(Json::Object(new))) = (before, after) {
        let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
        for key in keys {
            path.push(key.clone());
            compare(path, old.get(key), new.get(key), found);
            path.pop();
        }
        return;
    }
    found.push(KeyChange { path: path.clone(), value: after.cloned() });
}

/// The ways to have a file say a key of an entry, the plainest first. `live` is the value of the spec behind it.
pub fn ways(file: &Json, entry: &Entry, change: &KeyChange, after: &Json, live: &FieldChange) -> Vec<Edit> {
    let mut ways = Vec::new();
    let mut set = |path: &[String], value: &Json| {
        let full: Vec<String> = entry.path.iter().chain(path).cloned().collect();
        ways.extend(
            place(&entry.shape, file, &full, value).map(|(path, value)| Edit { path, value: Some(value) }),
        );
    };
    if let Some(short) = short_address(&change.path)
        && at(file, &[entry.path.as_slice(), &short].concat()).is_some()
        && let Some(value) = &change.value
    {
        set(&short, value);
    }
    match &change.value {
        Some(value) => set(&change.path, value),
        None => {
            for value in explicit(live) {
                set(&change.path, &value);
            }
        }
    }
    if change.value.is_none() {
        let full: Vec<String> = entry.path.iter().chain(&change.path).cloned().collect();
        let steps = place(&entry.shape, file, &full, &Json::Null).map(|(path, _)| path);
        if let Some(path) = steps {
            ways.push(Edit { path: path.clone(), value: None });
            ways.push(Edit { path, value: Some(Json::Null) });
        }
    }
    // What stands around it: a disk that only its template has, a list whose end is missing.
    for length in (1..change.path.len()).rev() {
        let above = &change.path[..length];
        let full: Vec<String> = entry.path.iter().chain(above).cloned().collect();
        if let Some(value) = at(after, above) {
            ways.extend(
                place(&entry.shape, file, &full, value)
                    .map(|(path, value)| Edit { path, value: Some(value) }),
            );
        }
    }
    ways
}

/// The ways for an entry of which nobody knows what key its fields have: those that have a name like it or the value that was
/// applied, then every key that it could have.
pub fn guesses(file: &Json, entry: &Entry, change: &FieldChange) -> Vec<Edit> {
    let Some(record) = form::record_at(&entry.shape, &entry.path) else { return Vec::new() };
    let name = |part: &str| camel_case(part);
    let mut paths: Vec<Vec<String>> = vec![change.path.keys().iter().map(|key| name(key)).collect()];
    paths.extend(change.path.last().map(|last| vec![name(last)]));
    let values = said(change.after.as_ref());
    let was = said(change.before.as_ref());
    if let Some(own) = at(file, &entry.path) {
        let mut leaves = Vec::new();
        same_leaves(own, &was, &mut Vec::new(), &mut leaves);
        paths.extend(leaves);
    }
    paths.extend(record.fields.iter().map(|field| vec![field.key.to_owned()]));
    let mut tried: Vec<Vec<String>> = Vec::new();
    let mut ways = Vec::new();
    for path in paths {
        if tried.contains(&path) {
            continue;
        }
        let full: Vec<String> = entry.path.iter().chain(&path).cloned().collect();
        for value in &values {
            ways.extend(
                place(&entry.shape, file, &full, value)
                    .map(|(path, value)| Edit { path, value: Some(value) }),
            );
        }
        if change.after.is_none() && at(file, &full).is_some() {
            ways.extend(
                place(&entry.shape, file, &full, &Json::Null).map(|(path, _)| Edit { path, value: None }),
            );
        }
        tried.push(path);
    }
    ways
}

/// A spec with a field as it is live.
#[must_use]
pub fn with_live(spec: &Spec, changes: &[FieldChange]) -> Spec {
    let mut live = spec.clone();
    for change in changes {
        put(&mut live, change.path.keys(), change.after.as_ref());
    }
    live
}

/// Entries with this name, anywhere in a file.
pub fn entries_named(file: &Json, name: &str) -> Vec<Vec<String>> {
    fn look(here: &Json, name: &str, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        for (key, value) in here.as_object().into_iter().flatten() {
            path.push(key.clone());
            if key == name {
                found.push(path.clone());
            }
            look(value, name, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    look(file, name, &mut Vec::new(), &mut found);
    found
}

/// `ip` of a guest is short for the address of its first network device.
fn short_address(path: &[String]) -> Option<Vec<String>> {
    use strata_source::machine::guest::Guest;
    use strata_source::machine::hardware::Hardware;
    use strata_source::machine::network::Nic;
    let long = [Hardware::network.name(), "net0", Nic::ip.name()];
    (path == long).then(|| vec![Guest::ip.name().to_owned()])
}

/// What a key that would go back to its default can say instead.
fn explicit(live: &FieldChange) -> Vec<Json> {
    match (&live.after, &live.before) {
        (Some(_), _) => said(live.after.as_ref()),
        (None, Some(Value::Bool(was))) => vec![(!was).into()],
        _ => Vec::new(),
    }
}

/// A value of a spec as a file could say it.
fn said(value: Option<&Value>) -> Vec<Json> {
    match value {
        Some(Value::Bool(value)) => vec![(*value).into(), (!value).into()],
        Some(Value::Int(number)) => {
            let mut all: Vec<Json> = vec![(*number).into(), number.to_string().into()];
            // Sizes are bytes in a spec.
            all.extend(size(*number));
            all
        }
        Some(Value::Text(text)) => {
            let mut all: Vec<Json> = vec![text.as_str().into()];
            all.extend(text.parse::<i64>().ok().map(Json::from));
            let split = |by: char| text.split(by).map(Json::from).collect::<Vec<Json>>();
            all.extend(
                [',', ';', ' '].into_iter().filter(|by| text.contains(*by)).map(|by| split(by).into()),
            );
            all
        }
        Some(Value::List(items)) if items.iter().all(|item| item.as_text().is_some()) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            vec![texts.clone().into(), texts.join(",").into()]
        }
        _ => Vec::new(),
    }
}

fn same_leaves(here: &Json, was: &[Json], path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    for (key, value) in here.as_object().into_iter().flatten() {
        path.push(key.clone());
        if was.contains(value) {
            found.push(path.clone());
        }
        same_leaves(value, was, path, found);
        path.pop();
    }
}

fn at<'j>(value: &'j Json, path: &[String]) -> Option<&'j Json> {
    path.iter().try_fold(value, |here, key| here.as_object()?.get(key))
}

fn put(spec: &mut Spec, path: &[String], value: Option<&Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        match value {
            Some(value) => spec.insert(first.clone(), value.clone()),
            None => spec.remove(first),
        };
        return;
    }
    let inner = spec.entry(first.clone()).or_insert_with(|| Value::Map(Spec::new()));
    if let Value::Map(inner) = inner {
        put(inner, rest, value);
    }
}

/// `max_restart` and `keep-daily` as the source spells its keys.
fn camel_case(name: &str) -> String {
    let mut parts = name.split(['_', '-']);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        let mut letters = part.chars();
        text.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        text.push_str(letters.as_str());
        text
    })
}

/// An object of one key.
fn single(key: &str, value: Json) -> Json {
    Json::Object(Map::from_iter([(key.to_owned(), value)]))
}

#[cfg(test)]
mod tests;
