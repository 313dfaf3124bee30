//! Objects that are one row of a listing: made by one request, changed by one, deleted by one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{CommentMark, FieldChange, FieldRule, FieldType, KindTable, Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text, text_of};
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::execute::Work;

/// How a value is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    /// An empty text, or 0.
    Empty,
    /// The parameter `delete` names it.
    Delete,
}

/// Parts of a text, `key=value` with commas between, and what they are called in a spec.
pub(crate) type Parts = &'static [(&'static str, &'static str, FieldType)];

/// The fields are those of the kind's table that have a key at the remote.
pub(crate) struct Simple {
    pub(crate) word: &'static str,
    pub(crate) table: &'static KindTable,
    /// The field with the object's name.
    pub(crate) id: &'static str,
    pub(crate) list: &'static str,
    pub(crate) list_query: &'static [(&'static str, &'static str)],
    /// Names are part of paths; otherwise a parameter of every request.
    pub(crate) id_in_path: bool,
    /// The key of the comment, where the mark goes.
    pub(crate) comment: Option<&'static str>,
    pub(crate) unset: Unset,
    /// A change replaces the whole entry: what is not sent is gone.
    pub(crate) replaces: bool,
    /// Whether a change takes the digest of the file.
    pub(crate) takes_digest: bool,
    /// The field that all other keys go to, as texts.
    pub(crate) rest: Option<&'static str>,
    /// A field that is made of parts, or a list of such items; each item is a parameter of its own.
    pub(crate) parts: Option<(&'static str, Parts)>,
    /// Why a row is never ours.
    pub(crate) reserved: fn(&Row) -> Option<&'static str>,
    /// A field that has a call of its own.
    pub(crate) separate: Option<SeparateField>,
}

/// A field that cannot be changed together with others.
pub(crate) struct SeparateField {
    pub(crate) field: &'static str,
    pub(crate) call: fn(&Work<'_>) -> Result<NextCall, ProviderError>,
}

impl Simple {
    /// With the usual answers: a name that is part of paths, and nothing special.
    pub(crate) const fn new(word: &'static str, list: &'static str, table: &'static KindTable) -> Self {
        Self {
            word,
            table,
            id: table.identity[0],
            list,
            list_query: &[],
            id_in_path: true,
            comment: None,
            unset: Unset::Empty,
            replaces: false,
            takes_digest: false,
            rest: None,
            parts: None,
            reserved: |_| None,
            separate: None,
        }
    }

    /// What the remote calls the object's name.
    fn id_key(&self) -> &'static str {
        self.table.fields.iter().find(|field| field.path == self.id).map_or(self.id, |field| field.remote)
    }

    /// The fields that are keys of a row, without the name.
    fn fields(&self) -> impl Iterator<Item = &'static FieldRule> {
        self.table.fields.iter().filter(|field| !field.remote.is_empty() && field.path != self.id)
    }

    fn parts_of(&self, field: &FieldRule) -> Option<Parts> {
        self.parts.filter(|(own, _)| *own == field.path).map(|(_, parts)| parts)
    }

    fn name<'s>(&self, spec: &'s Spec) -> &'s str {
        spec_text(spec, self.id)
    }

    fn path(&self, spec: &Spec) -> String {
        let name = self.name(spec);
        if self.id_in_path {
            format!("{}/{}", self.list, encode_path_part(name))
        } else {
            self.list.to_owned()
        }
    }

    fn params(&self, spec: &Spec, in_path: bool) -> Params {
        if in_path { Params::new() } else { Params::new().with(self.id_key(), self.name(spec)) }
    }

    fn read_row(&self, row: &Row) -> Option<(String, LiveObject)> {
        let name = row_text(row, self.id_key())?;
        let mut live = LiveObject::default();
        live.spec.insert(self.id.to_owned(), Value::Text(name.clone()));
        for field in self.fields() {
            let value = row.get(field.remote).and_then(|value| read(field, self.parts_of(field), value));
            live.spec.extend(value.map(|value| (field.path.to_owned(), value)));
        }
        if let Some(rest) = self.rest {
            let is_known = |key: &str| {
                key == "digest" || key == self.id_key() || self.fields().any(|field| field.remote == key)
            };
            let others = row.iter().filter(|(key, _)| !is_known(key) && Some(key.as_str()) != self.comment);
            let others: Spec =
                others.filter_map(|(key, value)| Some((key.clone(), Value::Text(text_of(value)?)))).collect();
            live.spec.insert(rest.to_owned(), Value::Map(others));
        }
        if let Some(comment) = self.comment.and_then(|key| row_text(row, key)) {
            live.set_comment(&comment);
        }
        live.file_digest = row_text(row, "digest");
        live.reserved = (self.reserved)(row);
        live.digest = digest_of(&live.spec);
        Some((name, live))
    }

    fn create(&self, job: &Job<'_>) -> Result<NextCall, ProviderError> {
        let spec = job.spec();
        let mut params = self.params(spec, false);
        for field in self.fields() {
            if let Some(value) = spec.get(field.path) {
                put(&mut params, field, self.parts_of(field), value, job.work)?;
            }
        }
        for (key, value) in self.rest_of(spec) {
            params.set(key, value.as_text().unwrap_or_default());
        }
        if let Some(key) = self.comment {
            params.set(key, comment_of(spec));
        }
        let doing = format!("make the {} `{}`", self.word, self.name(spec));
        Ok(job.work.call(Method::POST, self.list.to_owned(), params, doing).into())
    }

    fn rest_of<'s>(&self, spec: &'s Spec) -> impl Iterator<Item = (&'s String, &'s Value)> {
        self.rest.and_then(|rest| spec.get(rest)?.as_map()).into_iter().flatten()
    }

    fn update(&self, job: &Job<'_>, live: &LiveObject) -> Result<NextCall, ProviderError> {
        let spec = job.spec();
        let mut params = self.params(spec, self.id_in_path);
        let (mut delete, mut sends) = (Vec::new(), Vec::new());
        for field in self.fields().filter(|field| !field.is_fixed() && !self.is_separate(field.path)) {
            let changes = job.lacks(field.path);
            match spec.get(field.path) {
                Some(value) if changes || field.always_sent => {
                    put(&mut params, field, self.parts_of(field), value, job.work)?;
                }
                None if changes => match (self.unset, field.kind) {
                    (Unset::Delete, _) => delete.push(field.remote),
                    (Unset::Empty, FieldType::Int) => params.set(field.remote, 0),
                    (Unset::Empty, _) => params.set(field.remote, ""),
                },
                _ => continue,
            }
            if field.write_only {
                sends.push(field.path);
            }
        }
        let others: Vec<&FieldChange> = job
            .outstanding
            .iter()
            .filter(|change| change.path.first() == self.rest && self.rest.is_some())
            .collect();
        for change in others {
            let Some(key) = change.path.keys().get(1) else { continue };
            match change.after.as_ref().and_then(Value::as_text) {
                Some(text) => params.set(key, text),
                None => delete.push(key),
            }
        }
        let comments = job.lacks("comment") || job.lacks("mark");
        if let Some(key) = self.comment.filter(|_| comments || self.replaces) {
            // What does not change stays as it is, also where it is not ours.
            params.set(key, comment_of(if comments { spec } else { &live.spec }));
        }
        if !delete.is_empty() {
            params.set("delete", delete.join(","));
        }
        if let Some(digest) = live.file_digest.as_ref().filter(|_| self.takes_digest) {
            params.set("digest", digest);
        }
        let doing = format!("change the {} `{}`", self.word, self.name(spec));
        Ok(NextCall { call: job.work.call(Method::PUT, self.path(spec), params, doing), sends })
    }

    fn is_separate(&self, field: &str) -> bool {
        self.separate.as_ref().is_some_and(|apart| apart.field == field)
    }
}

#[async_trait]
impl Family for Simple {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.id).and_then(Value::as_text).map(str::to_owned)
    }

    async fn list(&self, client: &Client, _: &[&Spec]) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let query = self.list_query.iter().fold(Params::new(), |query, (key, value)| query.with(key, value));
        let rows: Vec<Row> = client.get(self.list, query).await?;
        Ok(rows.iter().filter_map(|row| self.read_row(row)).collect())
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let spec = job.spec();
        match (job.work.operation.action, live) {
            (Action::Delete, None) => Ok(None),
            (Action::Delete, Some(_)) => {
                let doing = format!("delete the {} `{}`", self.word, self.name(spec));
                let params = self.params(spec, self.id_in_path);
                Ok(Some(job.work.call(Method::DELETE, self.path(spec), params, doing).into()))
            }
            (_, None) => self.create(job).map(Some),
            (_, Some(_)) if job.outstanding.is_empty() => Ok(None),
            (_, Some(live)) => match &self.separate {
                Some(apart)
                    if job.outstanding.iter().all(|change| change.path.first() == Some(apart.field)) =>
                {
                    (apart.call)(job.work).map(Some)
                }
                _ => self.update(job, live).map(Some),
            },
        }
    }
}

/// The comment as Proxmox gets it: what the user wrote, and the mark.
pub(crate) fn comment_of(spec: &Spec) -> String {
    let comment = spec_text(spec, "comment");
    let mark = spec.get("mark").and_then(Value::as_text);
    let parsed = mark.and_then(|mark| CommentMark::split_from_comment(mark).0);
    parsed.map_or_else(|| comment.to_owned(), |mark| mark.join_to_comment(comment))
}

fn read(field: &FieldRule, parts: Option<Parts>, value: &serde_json::Value) -> Option<Value> {
    let items = || match value {
        serde_json::Value::Array(items) => items.iter().filter_map(text_of).collect(),
        other => vec![text_of(other).unwrap_or_default()],
    };
    if field.write_only {
        return None;
    }
    Some(match (field.kind, parts) {
        (FieldType::List, Some(parts)) => {
            Value::List(items().iter().map(|item| item_of(item, parts)).collect())
        }
        // Some answers take it apart themselves.
        (FieldType::Map, Some(parts)) => match value.as_object() {
            Some(taken_apart) => {
                let pairs =
                    taken_apart.iter().filter_map(|(key, value)| Some((key.as_str(), text_of(value)?)));
                item_of_pairs(pairs, parts)
            }
            None => item_of(&text_of(value)?, parts),
        },
        // Texts with commas between; their order means nothing.
        (FieldType::List, None) => {
            let texts = items();
            let mut texts: Vec<&str> = texts
                .iter()
                .flat_map(|item| item.split([',', ' ', ';']))
                .filter(|text| !text.is_empty())
                .collect();
            texts.sort_unstable();
            Value::List(texts.into_iter().map(Value::text).collect())
        }
        (FieldType::Int, _) => Value::Int(text_of(value)?.parse().ok()?),
        (FieldType::Bool, _) => Value::Bool((text_of(value)? == "1") != field.inverted),
        _ => Value::Text(text_of(value).filter(|text| !text.is_empty())?),
    })
}

fn put(
    params: &mut Params,
    field: &FieldRule,
    parts: Option<Parts>,
    value: &Value,
    work: &Work<'_>,
) -> Result<(), ProviderError> {
    let key = field.remote;
    match (value, parts) {
        (Value::Secret(secret), _) => match secret.plain() {
            Some(plain) => params.set_secret(key, plain.expose()),
            None => return Err(work.internal("a secret itself is not at hand, only its digest")),
        },
        (Value::Bool(on), _) => params.set(key, u8::from(*on != field.inverted)),
        (Value::Int(int), _) => params.set(key, int),
        (Value::Text(text), _) => params.set(key, text),
        (Value::List(items), Some(parts)) => {
            for item in items {
                params.push(key, item_text(item, parts));
            }
        }
        (Value::Map(_), Some(parts)) => params.set(key, item_text(value, parts)),
        (Value::List(items), None) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            params.set(key, texts.join(","));
        }
        _ => {
            let message = format!("`{}`: its `{}` cannot be sent", work.operation.address, field.path);
            return Err(ProviderError::new(ErrorClass::BadInput, message).field(field.path));
        }
    }
    Ok(())
}

fn item_of(text: &str, parts: Parts) -> Value {
    let pairs = text.split(',').filter_map(|part| part.split_once('='));
    item_of_pairs(pairs.map(|(key, value)| (key, value.to_owned())), parts)
}

fn item_of_pairs<'a>(pairs: impl Iterator<Item = (&'a str, String)>, parts: Parts) -> Value {
    let mut item = Spec::new();
    for (key, value) in pairs {
        let Some((_, field, kind)) = parts.iter().find(|(known, ..)| *known == key) else { continue };
        let number = (*kind == FieldType::Int).then(|| value.parse().ok()).flatten();
        item.insert((*field).to_owned(), number.map_or_else(|| Value::Text(value), Value::Int));
    }
    Value::Map(item)
}

fn item_text(item: &Value, parts: Parts) -> String {
    let Some(item) = item.as_map() else { return String::new() };
    let parts = parts.iter().filter_map(|(key, field, _)| match item.get(*field)? {
        Value::Int(int) => Some(format!("{key}={int}")),
        Value::Text(text) => Some(format!("{key}={text}")),
        _ => None,
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_reads_back_as_written() {
        const DEVICE: Parts = &[
            ("node", "node", FieldType::Text),
            ("id", "id", FieldType::Text),
            ("iommugroup", "iommu_group", FieldType::Int),
        ];
        let text = "node=pve,id=10de:1234,iommugroup=1";
        assert_eq!(item_text(&item_of(text, DEVICE), DEVICE), text);
        assert_eq!(item_text(&item_of("id=1234:5678,node=pve", DEVICE), DEVICE), "node=pve,id=1234:5678");
    }
}
