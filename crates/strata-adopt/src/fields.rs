//! A spec while it is written: what was taken is gone, and what is left over is known.

use serde_json::{Map, Value as Json};
use strata_resource::{Spec, Value};
use strata_yaml::Key;

pub(crate) type Object = Map<String, Json>;

/// Writes keys of the source, which are constants of its records.
pub(crate) trait Put {
    fn set(&mut self, key: Key, value: impl Into<Json>);
    fn put(&mut self, key: Key, value: Option<impl Into<Json>>);
    /// Nothing for an empty list or mapping.
    fn put_full(&mut self, key: Key, value: Json);
}

impl Put for Object {
    fn set(&mut self, key: Key, value: impl Into<Json>) {
        self.insert(key.name().to_owned(), value.into());
    }

    fn put(&mut self, key: Key, value: Option<impl Into<Json>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    fn put_full(&mut self, key: Key, value: Json) {
        let empty = match &value {
            Json::Array(items) => items.is_empty(),
            Json::Object(map) => map.is_empty(),
            _ => false,
        };
        if !empty {
            self.set(key, value);
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Spec);

impl Fields {
    pub(crate) fn of(spec: &Spec) -> Self {
        Self(spec.clone())
    }

    /// Taken if it is what `read` takes; otherwise it stays, and is left over.
    fn take<T>(&mut self, field: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let value = read(self.0.get(field)?)?;
        self.0.remove(field);
        Some(value)
    }

    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        self.take(field, |value| value.as_text().map(str::to_owned))
    }

    pub(crate) fn text_if(&mut self, field: &str, fits: fn(&str) -> bool) -> Option<String> {
        self.take(field, |value| value.as_text().filter(|text| fits(text)).map(str::to_owned))
    }

    /// A text that the source has a word for.
    pub(crate) fn word(&mut self, field: &str, words: &[&str]) -> Option<String> {
        self.take(field, |value| value.as_text().filter(|text| words.contains(text)).map(str::to_owned))
    }

    pub(crate) fn int(&mut self, field: &str) -> Option<i64> {
        self.take(field, Value::as_int)
    }

    pub(crate) fn bool(&mut self, field: &str) -> Option<bool> {
        self.take(field, Value::as_bool)
    }

    /// Unless it is what everybody takes for granted.
    pub(crate) fn unless(&mut self, field: &str, default: bool) -> Option<bool> {
        self.bool(field).filter(|value| *value != default)
    }

    /// A number that is kept as text.
    pub(crate) fn number(&mut self, field: &str) -> Option<Json> {
        self.take(field, |value| number(value.as_text()?))
    }

    pub(crate) fn texts(&mut self, field: &str) -> Option<Vec<String>> {
        self.take(field, |value| {
            value.as_list()?.iter().map(|item| item.as_text().map(str::to_owned)).collect()
        })
    }

    pub(crate) fn values(&mut self, field: &str) -> Vec<Value> {
        self.take(field, |value| value.as_list().map(<[Value]>::to_vec)).unwrap_or_default()
    }

    /// The fields below one; none where there is none.
    pub(crate) fn map(&mut self, field: &str) -> Option<Fields> {
        self.take(field, |value| value.as_map().cloned()).map(Fields)
    }

    /// The fields of each slot, in the order of their numbers.
    pub(crate) fn slots(&mut self, field: &str) -> Vec<(String, Fields)> {
        let slots = self.map(field).unwrap_or_default().0;
        let mut slots: Vec<(String, Fields)> = slots
            .into_iter()
            .map(|(slot, value)| (slot, Fields(value.as_map().cloned().unwrap_or_default())))
            .collect();
        slots.sort_by_key(|(slot, _)| slot_order(slot));
        slots
    }

    pub(crate) fn forget(&mut self, fields: &[&str]) {
        for field in fields {
            self.0.remove(*field);
        }
    }

    /// What cannot be taken after all.
    pub(crate) fn leave(&mut self, field: String, value: Value) {
        self.0.insert(field, value);
    }

    /// What nobody took yet.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// What nobody took, as raw keys.
    pub(crate) fn raw(self) -> Json {
        let wire = |(field, value): (String, Value)| Some((field, raw(&value)?));
        Json::Object(self.0.into_iter().filter_map(wire).collect())
    }

    /// What nobody took, told.
    pub(crate) fn told(&self, prefix: &str, notes: &mut Vec<String>) {
        for field in self.0.keys() {
            notes.push(format!("`{prefix}{field}` has no key in the YAML: it stays as it is"));
        }
    }
}

/// `scsi2` before `scsi10`.
fn slot_order(slot: &str) -> (String, u32) {
    let name = slot.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (name.to_owned(), slot[name.len()..].parse().unwrap_or(0))
}

pub(crate) fn number(text: &str) -> Option<Json> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    text.parse::<f64>().ok().filter(|number| number.to_string() == text).map(Json::from)
}

/// A value for `options`: as Proxmox writes it.
pub(crate) fn raw(value: &Value) -> Option<Json> {
    match value {
        Value::Text(text) => Some(match text.parse::<i64>() {
            Ok(number) if number.to_string() == *text => number.into(),
            _ => text.as_str().into(),
        }),
        Value::Int(number) => Some((*number).into()),
        Value::Bool(value) => Some(i64::from(*value).into()),
        _ => None,
    }
}

/// A size in GiB, or in MiB with its unit; none that is finer.
pub(crate) fn size(bytes: i64) -> Option<Json> {
    const MIB: i64 = 1 << 20;
    const GIB: i64 = 1 << 30;
    match bytes {
        0 => None,
        bytes if bytes % GIB == 0 => Some((bytes / GIB).into()),
        bytes if bytes % MIB == 0 => Some(format!("{}M", bytes / MIB).into()),
        _ => None,
    }
}

/// A list where the slots are numbered without a gap, otherwise by slot.
pub(crate) fn listed(slots: Vec<(String, Json)>, prefix: &str) -> Json {
    let in_order = slots.iter().enumerate().all(|(index, (slot, _))| *slot == format!("{prefix}{index}"));
    match in_order {
        true => Json::Array(slots.into_iter().map(|(_, value)| value).collect()),
        false => Json::Object(slots.into_iter().collect()),
    }
}

/// `{size: 20}` is `20` where the record takes its first key alone.
pub(crate) fn short(object: Object, key: Key) -> Json {
    match object.get(key.name()) {
        Some(value) if object.len() == 1 => value.clone(),
        _ => Json::Object(object),
    }
}
