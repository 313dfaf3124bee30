//! Parser events become JSON values; what a hostile or careless file can do here is bounded.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};

use super::ManifestError;
use super::scalar::resolve;

/// Schemas of custom resources are the deepest things in manifests, and stay far below. Everything after may recurse.
const DEEPEST: usize = 100;
const MOST_VALUES: usize = 2_000_000;
const MOST_BYTES: usize = 64 << 20;

/// The documents that hold something, each with its first line.
pub(super) fn read(text: &str) -> Result<Vec<(usize, Value)>, ManifestError> {
    if text.len() > MOST_BYTES {
        return Err(ManifestError::TooLarge { bytes: text.len(), most: MOST_BYTES });
    }
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| ManifestError::Syntax {
            line: error.marker().line().max(1),
            reason: error.info().to_owned(),
        })?;
        reader.take(event, span.start.line().max(1))?;
    }
    reader.documents.retain(|(_, document)| !document.is_null());
    Ok(reader.documents)
}

#[derive(Default)]
struct Reader {
    documents: Vec<(usize, Value)>,
    open: Vec<Open>,
    /// Each anchored value, and how many values it is.
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
}

/// A list or mapping whose end has not come yet.
struct Open {
    line: usize,
    anchor: usize,
    /// How many values had been read when it began.
    before: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Value>),
    Map { entries: Map<String, Value>, key: Option<Key>, merged: Vec<Value> },
}

enum Key {
    Name(String),
    Merge,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), ManifestError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor) else {
                    let reason = "an alias of something that is not there".to_owned();
                    return Err(ManifestError::Syntax { line, reason });
                };
                // Counted before it is copied.
                self.values += size;
                self.check_count()?;
                self.add(value.clone(), false, line)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !forced_text(tag.as_deref(), line)?;
                let merge = plain && text == "<<";
                let value = if plain { resolve(&text) } else { Value::String(text.into_owned()) };
                self.values += 1;
                self.check_count()?;
                if anchor != 0 {
                    self.anchors.insert(anchor, (value.clone(), 1));
                }
                self.add(value, merge, line)
            }
            Event::SequenceStart(anchor, tag) => {
                forced_text(tag.as_deref(), line)?;
                self.start(line, anchor, OpenKind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                forced_text(tag.as_deref(), line)?;
                let kind = OpenKind::Map { entries: Map::new(), key: None, merged: Vec::new() };
                self.start(line, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line),
        }
    }

    fn check_count(&self) -> Result<(), ManifestError> {
        if self.values > MOST_VALUES {
            return Err(ManifestError::TooManyValues { most: MOST_VALUES });
        }
        Ok(())
    }

    fn start(&mut self, line: usize, anchor: usize, kind: OpenKind) -> Result<(), ManifestError> {
        if self.open.len() >= DEEPEST {
            return Err(ManifestError::TooDeep { line, deepest: DEEPEST });
        }
        if matches!(self.open.last(), Some(Open { kind: OpenKind::Map { key: None, .. }, .. })) {
            return Err(key_not_text(line));
        }
        self.open.push(Open { line, anchor, before: self.values, kind });
        self.values += 1;
        self.check_count()
    }

    fn end(&mut self, line: usize) -> Result<(), ManifestError> {
        let Some(open) = self.open.pop() else {
            return Err(ManifestError::Syntax { line, reason: "an end without a beginning".to_owned() });
        };
        let value = match open.kind {
            OpenKind::List(items) => Value::Array(items),
            OpenKind::Map { mut entries, merged, .. } => {
                // What a merge key brings never wins over what is written out, and an earlier source wins over a later.
                for source in merged {
                    let Value::Object(source) = source else {
                        let reason = "`<<` takes a mapping or a list of mappings".to_owned();
                        return Err(ManifestError::Syntax { line: open.line, reason });
                    };
                    for (key, value) in source {
                        entries.entry(key).or_insert(value);
                    }
                }
                Value::Object(entries)
            }
        };
        if open.anchor != 0 {
            self.anchors.insert(open.anchor, (value.clone(), self.values - open.before));
        }
        self.add(value, false, open.line)
    }

    fn add(&mut self, value: Value, merge: bool, line: usize) -> Result<(), ManifestError> {
        let Some(open) = self.open.last_mut() else {
            self.documents.push((line, value));
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::List(items) => items.push(value),
            OpenKind::Map { entries, key, merged } => match key.take() {
                None if merge => *key = Some(Key::Merge),
                None => {
                    let name = match value {
                        Value::String(text) => text,
                        Value::Number(number) => number.to_string(),
                        Value::Bool(truth) => truth.to_string(),
                        _ => return Err(key_not_text(line)),
                    };
                    if entries.contains_key(&name) {
                        return Err(ManifestError::DuplicateKey { line, key: name });
                    }
                    *key = Some(Key::Name(name));
                }
                Some(Key::Merge) => match value {
                    Value::Array(sources) => merged.extend(sources),
                    value => merged.push(value),
                },
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
            },
        }
        Ok(())
    }
}

fn key_not_text(line: usize) -> ManifestError {
    ManifestError::Syntax { line, reason: "a key must be text".to_owned() }
}

/// Whether a tag makes text of what it stands at. Of the others, those that say what is there anyway are let through.
fn forced_text(tag: Option<&Tag>, line: usize) -> Result<bool, ManifestError> {
    let Some(tag) = tag else { return Ok(false) };
    if tag.is_yaml_core_schema() {
        match tag.suffix.as_str() {
            "str" => return Ok(true),
            "int" | "bool" | "float" | "null" | "map" | "seq" => return Ok(false),
            _ => {}
        }
    }
    let name = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    Err(ManifestError::Tag { line, tag: name })
}
