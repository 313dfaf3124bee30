//! How a value is written: short or whole, in a list or by slot, under which spelling.

use serde_json::{Map, Value as Json};
use strata_source::machine::hardware::Hardware;
use strata_yaml::edit::Step;
use strata_yaml::{Key, RecordSpec, Shape};

use super::single;

/// Keys whose lists fill slots, and what the slots are called.
const SLOTS: [(Key, &str); 4] = [
    (Hardware::network, "net"),
    (Hardware::pci, "hostpci"),
    (Hardware::usb, "usb"),
    (Hardware::serial, "serial"),
];

/// A value with everything that is short written out: lists of devices by slot, records as mappings.
pub(super) fn expanded(shape: &Shape, value: &Json) -> Json {
    if let Some(record) = record(shape) {
        let whole = match (value, record.shorthand) {
            (Json::Object(fields), _) => fields.clone(),
            (Json::Null, _) | (_, None) => return value.clone(),
            (short, Some(key)) => Map::from_iter([(key.to_owned(), short.clone())]),
        };
        let field = |(key, value): (String, Json)| match record.field_or_alias(&key) {
            Some(field) => (field.key.to_owned(), expanded(&field.shape, &by_slot(field.key, value))),
            None => (key, value),
        };
        return Json::Object(whole.into_iter().map(field).collect());
    }
    match (items(shape), value) {
        (Some(inner), Json::Object(entries)) => {
            Json::Object(entries.iter().map(|(key, value)| (key.clone(), expanded(inner, value))).collect())
        }
        _ => value.clone(),
    }
}

fn by_slot(key: &str, value: Json) -> Json {
    let prefix = SLOTS.iter().find(|(known, _)| known.name() == key).map(|(_, prefix)| prefix);
    match (value, prefix) {
        (Json::Array(items), Some(prefix)) => {
            let named = items.into_iter().enumerate().map(|(index, item)| (format!("{prefix}{index}"), item));
            Json::Object(named.collect())
        }
        (value, _) => value,
    }
}

/// Where a value goes in a file as it is written, and what is set there.
pub(super) fn place(shape: &Shape, file: &Json, path: &[String], value: &Json) -> Option<(Vec<Step>, Json)> {
    let (mut here, mut shape) = (Some(file), Some(shape.clone()));
    let mut steps = Vec::new();
    for (depth, key) in path.iter().enumerate() {
        let known = shape.as_ref().and_then(record);
        match here {
            Some(Json::Array(items)) => {
                let index: usize =
                    key.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()?;
                if index > items.len() {
                    return None;
                }
                steps.push(Step::Index(index));
                here = items.get(index);
                shape = shape.as_ref().and_then(items_or_itself);
            }
            // Short for one key: it becomes a mapping, unless that key is meant.
            Some(short) if !short.is_object() && !short.is_null() => {
                let shorthand = known?.shorthand?;
                let rest = &path[depth..];
                if rest == [shorthand] {
                    return Some((steps, value.clone()));
                }
                let inner = rest.iter().rev().fold(value.clone(), |inner, key| single(key, inner));
                let mut whole = Map::from_iter([(shorthand.to_owned(), short.clone())]);
                whole.extend(inner.as_object().cloned().unwrap_or_default());
                return Some((steps, Json::Object(whole)));
            }
            other => {
                let entries = other.and_then(Json::as_object);
                let field = known.and_then(|record| record.field_or_alias(key));
                let spellings = field
                    .into_iter()
                    .flat_map(|field| std::iter::once(field.key).chain(field.rules.aliases.iter().copied()));
                let written =
                    spellings.into_iter().find(|key| entries.is_some_and(|map| map.contains_key(*key)));
                let key = written.unwrap_or(key);
                steps.push(Step::from(key));
                here = entries.and_then(|map| map.get(key));
                shape = match field {
                    Some(field) => Some(field.shape.clone()),
                    None => shape.as_ref().and_then(|shape| items(shape).cloned()),
                };
            }
        }
    }
    Some((steps, value.clone()))
}

/// The record that an entry is.
pub(super) fn record_at(shape: &Shape, path: &[String]) -> Option<&'static RecordSpec> {
    let mut shape = shape.clone();
    for key in path {
        let field = record(&shape).and_then(|record| record.field_or_alias(key));
        shape = match field {
            Some(field) => field.shape.clone(),
            None => items(&shape)?.clone(),
        };
    }
    record(&shape)
}

fn record(shape: &Shape) -> Option<&'static RecordSpec> {
    match shape {
        Shape::Record(spec) => Some(spec()),
        Shape::Partial(inner) | Shape::Reference(inner) => record(inner),
        Shape::AnyOf(shapes) => shapes.iter().find_map(record),
        _ => None,
    }
}

/// What stands below the keys of a mapping of the user's choice.
fn items(shape: &Shape) -> Option<&Shape> {
    match shape {
        Shape::Map(_, inner) => Some(inner),
        Shape::Partial(inner) | Shape::Reference(inner) => items(inner),
        Shape::AnyOf(shapes) => shapes.iter().find_map(items),
        _ => None,
    }
}

fn items_or_itself(shape: &Shape) -> Option<Shape> {
    match shape {
        Shape::List(inner) => Some((**inner).clone()),
        Shape::Partial(inner) | Shape::Reference(inner) => items_or_itself(inner),
        Shape::AnyOf(shapes) => shapes.iter().find_map(items_or_itself),
        _ => items(shape).cloned(),
    }
}
