//! Changes of a file that a person wrote: one value is set, inserted or removed, and the rest stays byte for byte.
//!
//! Comments, order, quotes, indentation, flow style and line ends of what is not touched are kept, and what is new is written in the
//! style around it. Text goes in and text comes out. Every edit is checked before it is handed out: the new text is parsed again, and if it
//! does not say exactly what was asked for, the edit is refused instead.

mod layout;
mod place;
mod render;
mod splice;

use std::fmt;

use serde_json::{Map, Value as Json};

use layout::{Kind, Layout};

/// One step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    /// Of a list, counted from zero.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for Step {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// A path as people write it: `vms.web.network[0].vlan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPath(String);

impl EditPath {
    fn of(path: &[Step]) -> Self {
        let mut text = String::new();
        for step in path {
            match step {
                Step::Key(key) if text.is_empty() => text.push_str(key),
                Step::Key(key) => text.extend([".", key]),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        Self(text)
    }
}

impl fmt::Display for EditPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the document") } else { write!(f, "`{}`", self.0) }
    }
}

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("line {line}: {message}")]
    Syntax { line: usize, message: String },
    #[error("the file holds more than one document")]
    SecondDocument,
    #[error("{0} is not a mapping")]
    NotAMapping(EditPath),
    #[error("{0} is not a list")]
    NotAList(EditPath),
    #[error("{0} is not in the file")]
    Missing(EditPath),
    #[error("{0} is in the file already")]
    Exists(EditPath),
    #[error("{0} is an alias of a value that stands elsewhere in the file")]
    Aliased(EditPath),
    #[error("{0} cannot be edited as it is written")]
    NotEditable(EditPath),
}

/// The text with a value at a path; what is missing on the way is made. Of a mapping or list that is there only what differs is
/// touched. A list grows by the index after its last one.
pub fn set(text: &str, path: &[Step], value: &Json) -> Result<String, EditError> {
    let mut wanted = Layout::read(text)?.value();
    *reach(&mut wanted, path)? = value.clone();
    let edited = put(text, path, value)?;
    checked(edited, &wanted, path)
}

/// The text with a new key, or with a new item before the one that has this index now.
pub fn insert(text: &str, path: &[Step], value: &Json) -> Result<String, EditError> {
    let Some((last, parent)) = path.split_last() else { return Err(EditError::Exists(EditPath::of(path))) };
    let layout = Layout::read(text)?;
    let mut wanted = layout.value();
    match (reach(&mut wanted, parent)?, last) {
        (Json::Object(map), Step::Key(key)) => {
            if map.insert(key.clone(), value.clone()).is_some() {
                return Err(EditError::Exists(EditPath::of(path)));
            }
        }
        (Json::Array(items), Step::Index(index)) if *index < items.len() => {
            items.insert(*index, value.clone());
            let edited = splice::insert_item(&layout, parent, *index, value)?;
            return checked(edited, &wanted, path);
        }
        _ => return set(text, path, value),
    }
    let edited = put(text, path, value)?;
    checked(edited, &wanted, path)
}

/// The text with several new keys in the mapping at a path, which is made where it is not there.
pub fn insert_all(text: &str, path: &[Step], entries: &Map<String, Json>) -> Result<String, EditError> {
    let layout = Layout::read(text)?;
    let mut wanted = layout.value();
    let below = |key: &String| path.iter().cloned().chain([Step::Key(key.clone())]).collect::<Vec<Step>>();
    let place = reach(&mut wanted, path)?;
    if place.is_null() {
        *place = Json::Object(Map::new());
    }
    let map = place.as_object_mut().ok_or_else(|| EditError::NotAMapping(EditPath::of(path)))?;
    let is_empty = map.is_empty();
    for (key, value) in entries {
        if map.insert(key.clone(), value.clone()).is_some() {
            return Err(EditError::Exists(EditPath::of(&below(key))));
        }
    }
    let all = Json::Object(entries.clone());
    let edited = match layout.find(path)? {
        Some(found) if is_empty => splice::replace(&layout, &found, path, &all, 2)?,
        None => splice::insert(&layout, path, &all, 1)?,
        Some(_) => {
            entries.iter().try_fold(text.to_owned(), |text, (key, value)| put(&text, &below(key), value))?
        }
    };
    checked(edited, &wanted, path)
}

/// The text without a value. Comments above it stay; one at the end of its line, and those inside it, go with it.
pub fn remove(text: &str, path: &[Step]) -> Result<String, EditError> {
    let missing = || EditError::Missing(EditPath::of(path));
    let layout = Layout::read(text)?;
    let mut wanted = layout.value();
    let (last, parent) = path.split_last().ok_or_else(missing)?;
    // Looks first: `reach` would make what is missing.
    layout.find(path)?.ok_or_else(missing)?;
    match (reach(&mut wanted, parent)?, last) {
        (Json::Object(map), Step::Key(key)) => drop(map.remove(key)),
        (Json::Array(items), Step::Index(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => return Err(missing()),
    }
    let edited = splice::remove(&layout, path)?;
    checked(edited, &wanted, path)
}

/// What a text says, as JSON. A file with nothing in it is `null`.
pub fn value_of(text: &str) -> Result<Json, EditError> {
    Ok(Layout::read(text)?.value())
}

/// The way to what stands at a byte of a text: as far down as keys and items lead.
pub fn path_at(text: &str, byte: usize) -> Result<Vec<Step>, EditError> {
    let layout = Layout::read(text)?;
    let mut path = Vec::new();
    let mut here = layout.root.as_ref();
    while let Some(node) = here {
        let keys = layout.own_entries(node).into_iter().map(|(key, value)| {
            (key.at.start, Step::Key(key.text.clone()), (value.at.start >= key.at.end).then_some(value))
        });
        let items = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => &[],
        };
        let items =
            items.iter().enumerate().map(|(index, item)| (item.at.start, Step::Index(index), Some(item)));
        let Some((_, step, below)) = keys.chain(items).take_while(|(start, ..)| *start <= byte).last() else {
            break;
        };
        path.push(step);
        here = below;
    }
    Ok(path)
}

/// The place of a path, with what is missing made on the way.
fn reach<'j>(value: &'j mut Json, path: &[Step]) -> Result<&'j mut Json, EditError> {
    let mut here = value;
    for (depth, step) in path.iter().enumerate() {
        let so_far = || EditPath::of(&path[..depth]);
        here = match step {
            Step::Key(key) => {
                if here.is_null() {
                    *here = Json::Object(Map::new());
                }
                let map = here.as_object_mut().ok_or_else(|| EditError::NotAMapping(so_far()))?;
                map.entry(key.clone()).or_insert(Json::Null)
            }
            Step::Index(index) => {
                if here.is_null() {
                    *here = Json::Array(Vec::new());
                }
                let items = here.as_array_mut().ok_or_else(|| EditError::NotAList(so_far()))?;
                if *index == items.len() {
                    items.push(Json::Null);
                }
                items.get_mut(*index).ok_or_else(|| EditError::Missing(EditPath::of(&path[..=depth])))?
            }
        };
    }
    Ok(here)
}

/// One value, by as few splices as possible; each is made on the text that the one before left.
fn put(text: &str, path: &[Step], value: &Json) -> Result<String, EditError> {
    let layout = Layout::read(text)?;
    let Some(found) = layout.find(path)? else {
        return splice::insert(&layout, path, value, 0);
    };
    let old = found.node.value();
    if old == *value {
        return Ok(text.to_owned());
    }
    let child = |step: Step| path.iter().cloned().chain([step]).collect::<Vec<Step>>();
    match (&old, value) {
        (Json::Object(old), Json::Object(new)) if !old.is_empty() && !new.is_empty() => {
            let mut text = text.to_owned();
            for (key, value) in new {
                text = put(&text, &child(Step::Key(key.clone())), value)?;
            }
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                let layout = Layout::read(&text)?;
                text = splice::remove(&layout, &child(Step::Key(key.clone())))?;
            }
            Ok(text)
        }
        (Json::Array(old), Json::Array(new)) if !old.is_empty() && !new.is_empty() => {
            put_list(text, path, old, new)
        }
        _ => splice::replace(&layout, &found, path, value, 1),
    }
}

/// What both lists begin and end with stays where it is.
fn put_list(text: &str, path: &[Step], old: &[Json], new: &[Json]) -> Result<String, EditError> {
    let begin = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (gone, come) = (old_rest.len() - end, new_rest.len() - end);
    let item = |index: usize| path.iter().cloned().chain([Step::Index(index)]).collect::<Vec<Step>>();
    let mut text = text.to_owned();
    for (index, value) in new.iter().enumerate().skip(begin).take(come) {
        if index < begin + gone {
            text = put(&text, &item(index), value)?;
        } else {
            let layout = Layout::read(&text)?;
            text = splice::insert_item(&layout, path, index, value)?;
        }
    }
    for index in (begin + come..begin + gone).rev() {
        let layout = Layout::read(&text)?;
        text = splice::remove(&layout, &item(index))?;
    }
    Ok(text)
}

/// A text is handed out only if it says what was asked for, and nothing else changed.
fn checked(text: String, wanted: &Json, path: &[Step]) -> Result<String, EditError> {
    match Layout::read(&text) {
        Ok(layout) if layout.value() == *wanted => Ok(text),
        _ => Err(EditError::NotEditable(EditPath::of(path))),
    }
}
