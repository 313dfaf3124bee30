//! A key that nothing reads does not exist: each key of each record is changed, and something must come of it.
//!
//! The keys, what they take and what they need are found from the records themselves. What a key does is seen in the resources, the
//! outputs, the remarks about the source and the order of the stacks; of a key that says how a server is reached or how a run goes
//! about its work, the code that reads it is named in `elsewhere`.

mod elsewhere;
mod samples;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use strata_yaml::{FieldSpec, RecordSpec, Shape};

use elsewhere::{ELSEWHERE, REFUSED};
use sources::{File, files, outcome};

/// The name of a record, and one of its keys.
type Key = (String, String);

struct Walker {
    files: Vec<File>,
    /// What comes of the files as they are, for a change of each of them.
    before: BTreeMap<usize, String>,
    /// Keys that do something.
    work: BTreeSet<Key>,
    /// Keys that do nothing, and what was tried.
    idle: BTreeMap<Key, String>,
    records: BTreeSet<&'static str>,
    /// Fields of resources that no rule is there for.
    no_rule: BTreeSet<String>,
    visited: BTreeSet<(usize, String)>,
}

impl Walker {
    fn outcome(&mut self, file: usize) -> Result<String, String> {
        outcome(&self.files, file, &mut self.no_rule)
    }

    /// Walks what is below a place; whether a change there does something.
    fn walk(&mut self, file: usize, shape: &Shape, place: &[String], look: bool) -> bool {
        match shape {
            Shape::Record(spec) => self.record(file, spec(), place, look),
            Shape::Partial(shape) | Shape::Reference(shape) => self.walk(file, shape, place, look),
            Shape::AnyOf(shapes) => shapes
                .iter()
                .fold(false, |found, shape| self.walk(file, shape, place, look && !found) || found),
            Shape::Map(_, item) | Shape::List(item) => {
                let steps: Vec<String> = match at(&self.files[file].content, place) {
                    Some(Json::Object(map)) => map.keys().cloned().collect(),
                    Some(Json::Array(list)) => (0..list.len()).map(|index| index.to_string()).collect(),
                    _ => Vec::new(),
                };
                steps.iter().fold(false, |found, step| {
                    self.walk(file, item, &[place, std::slice::from_ref(step)].concat(), look && !found)
                        || found
                })
            }
            _ => false,
        }
    }

    /// Tries the keys that nothing is known of; with `look` all of them, until one does something here.
    fn record(&mut self, file: usize, spec: &'static RecordSpec, place: &[String], look: bool) -> bool {
        // A short form has no place for the other keys.
        if place.len() > 9 || at(&self.files[file].content, place).is_some_and(|own| !own.is_object()) {
            return false;
        }
        self.records.insert(spec.name);
        let mut found = false;
        for field in &spec.fields {
            let key = (spec.name.to_owned(), field.key.to_owned());
            let own = [place, &[field.key.to_owned()]].concat();
            let known = self.work.contains(&key);
            if is_elsewhere(&key) {
                self.idle.entry(key.clone()).or_default();
            }
            let wanted = !known || (look && !found);
            let there = at(&self.files[file].content, &own).is_some();
            let mut works = false;
            if leads_on(&field.shape) && (wanted || (there && self.visited.insert((file, own.join("/"))))) {
                works = self.below(file, spec, field, &own, wanted);
            }
            if !works && wanted && !is_elsewhere(&key) {
                works = self.change(file, spec, field, place);
            }
            if works {
                found = true;
                if !is_elsewhere(&key) {
                    self.idle.remove(&key);
                    self.work.insert(key);
                }
            }
        }
        found
    }

    /// What is in a field, with the first value that is accepted where there is none yet.
    fn below(
        &mut self,
        file: usize,
        spec: &RecordSpec,
        field: &FieldSpec,
        place: &[String],
        look: bool,
    ) -> bool {
        if at(&self.files[file].content, place).is_some_and(|own| !own.is_null()) {
            return self.walk(file, &field.shape, place, look);
        }
        let kept = self.files[file].content.clone();
        for value in samples::of_key(spec.name, field)
            .into_iter()
            .filter(|value| value.is_object() || value.is_array())
        {
            put(&mut self.files[file].content, place, value);
            if let Ok(now) = self.outcome(file) {
                let before = self.before.insert(file, now);
                let works = self.walk(file, &field.shape, place, look);
                before.map(|before| self.before.insert(file, before));
                self.files[file].content = kept;
                return works;
            }
            self.files[file].content = kept.clone();
        }
        false
    }

    /// Whether another value of a key makes a difference: to none, or to the one before.
    fn change(&mut self, file: usize, spec: &RecordSpec, field: &FieldSpec, place: &[String]) -> bool {
        let key = (spec.name.to_owned(), field.key.to_owned());
        let own = [place, &[field.key.to_owned()]].concat();
        let kept = self.files[file].content.clone();
        let groups = spec.exactly_one.iter().chain(&spec.at_most_one);
        let others: Vec<&str> = groups
            .filter(|keys| keys.contains(&field.key))
            .flat_map(|keys| keys.iter().copied())
            .filter(|other| *other != field.key)
            .collect();
        let mut apart = false;
        if let Some(Json::Object(map)) = at_mut(&mut self.files[file].content, place) {
            for other in others {
                apart |= map.remove(other).is_some();
            }
        }
        let mut seen = match apart {
            true => self.outcome(file).ok(),
            false => self.before.get(&file).cloned(),
        };
        let base = self.files[file].content.clone();
        let (mut taken, mut refused) = (None, String::new());
        let mut works = false;
        for value in samples::of_key(spec.name, field) {
            put(&mut self.files[file].content, &own, value.clone());
            let now = self.outcome(file);
            self.files[file].content = base.clone();
            match (now, &seen) {
                (Ok(now), Some(before)) if now != *before => works = true,
                (Ok(now), None) => seen = Some(now),
                (Ok(_), Some(_)) => taken = Some(value),
                (Err(error), _) => {
                    let code = error.split(':').next().unwrap_or_default();
                    works |= REFUSED.contains(&(spec.name, field.key, code));
                    refused = error;
                }
            }
            if works {
                break;
            }
        }
        self.files[file].content = kept;
        let place = format!("{}: {}", self.files[file].name, own.join("."));
        let told = match taken {
            Some(value) => format!("{place} takes {value}, and nothing comes of it"),
            None => format!("{place} takes none of the values: {refused}"),
        };
        if !works && !self.work.contains(&key) {
            self.idle.insert(key, told);
        }
        works
    }
}

fn is_elsewhere(key: &Key) -> bool {
    ELSEWHERE.iter().any(|(record, keys, ..)| *record == key.0 && keys.split(' ').any(|own| own == key.1))
}

fn leads_on(shape: &Shape) -> bool {
    match shape {
        Shape::Record(_) => true,
        Shape::List(shape) | Shape::Map(_, shape) | Shape::Partial(shape) | Shape::Reference(shape) => {
            leads_on(shape)
        }
        Shape::AnyOf(shapes) => shapes.iter().any(leads_on),
        _ => false,
    }
}

fn at<'j>(value: &'j Json, place: &[String]) -> Option<&'j Json> {
    place.iter().try_fold(value, |value, step| match value {
        Json::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

fn at_mut<'j>(value: &'j mut Json, place: &[String]) -> Option<&'j mut Json> {
    place.iter().try_fold(value, |value, step| match value {
        Json::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        other => other.get_mut(step),
    })
}

fn put(value: &mut Json, place: &[String], new: Json) {
    let Some((first, rest)) = place.split_first() else {
        *value = new;
        return;
    };
    let below = match value {
        Json::Array(items) => &mut items[first.parse::<usize>().unwrap()],
        other => {
            if !other.is_object() {
                *other = json!({});
            }
            &mut other[first]
        }
    };
    put(below, rest, new);
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The records that the crate of the source declares, without those that are only parts of others.
fn declared(folder: &Path, records: &mut BTreeSet<String>, parts: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, records, parts);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("record! {").skip(1) {
            let name = block.split("pub struct ").nth(1).unwrap().split([' ', '{']).next().unwrap();
            records.insert(name.to_owned());
            let end = block.find("\n}").unwrap_or(block.len());
            let flattened = block[..end].lines().filter_map(|line| line.trim().strip_prefix(".."));
            parts.extend(
                flattened.filter_map(|line| Some(line.split(": ").nth(1)?.trim_end_matches(';').to_owned())),
            );
        }
    }
}

/// Every key of every record, walked once for all tests.
fn walked() -> &'static Walker {
    static WALKED: OnceLock<Walker> = OnceLock::new();
    WALKED.get_or_init(|| {
        let mut walker = Walker {
            files: files(),
            before: BTreeMap::new(),
            work: BTreeSet::new(),
            idle: BTreeMap::new(),
            records: BTreeSet::new(),
            no_rule: BTreeSet::new(),
            visited: BTreeSet::new(),
        };
        for file in 0..walker.files.len() {
            let before = walker.outcome(file);
            let before = before.unwrap_or_else(|error| panic!("the repository is wrong: {error}"));
            walker.before.insert(file, before);
        }
        for file in 0..walker.files.len() {
            let shape = walker.files[file].shape.clone();
            walker.walk(file, &shape, &[], false);
        }
        walker
    })
}

/// Whatever the source can say of a resource, the plan knows what a change of it means.
#[test]
fn a15_every_field_that_the_source_makes_has_a_rule() {
    let missing = &walked().no_rule;
    assert!(
        missing.is_empty(),
        "say in strata-resource/src/kinds what a change of these means: {missing:#?}"
    );
}

#[test]
fn e5_a_key_that_nothing_reads_does_not_exist() {
    let walker = walked();
    let mut wrong = Vec::new();
    for (key, told) in walker.idle.iter().filter(|(key, _)| !is_elsewhere(key)) {
        wrong.push(format!("{}.{}: {told}", key.0, key.1));
    }
    for (record, keys, file, code) in ELSEWHERE {
        for key in keys.split(' ') {
            if !walker.idle.contains_key(&(record.to_string(), key.to_owned())) {
                wrong.push(format!("{record}.{key} is not in the schema, or has an effect"));
            }
            let text = std::fs::read_to_string(source(file)).unwrap_or_default();
            let code = code.replace("KEY", &snake(key));
            if !text.contains(&code) {
                wrong.push(format!("{record}.{key}: `{file}` does not say `{code}`"));
            }
        }
    }
    let (mut records, mut parts) = (BTreeSet::new(), BTreeSet::new());
    declared(&source("strata-source/src"), &mut records, &mut parts);
    assert!(records.len() > 80, "{records:?}");
    for record in records.iter().filter(|own| !parts.contains(*own) && !walker.records.contains(own.as_str()))
    {
        wrong.push(format!("the walk does not come to the record `{record}`"));
    }
    println!("{} keys of {} records have an effect", walker.work.len(), walker.records.len());
    assert!(wrong.is_empty(), "{} keys\n{}", wrong.len(), wrong.join("\n"));
}

/// The name of a key in the code.
fn snake(key: &str) -> String {
    key.chars().fold(String::new(), |mut name, letter| {
        if letter.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        name
    })
}
