//! Objects that are one row of a listing: made by one request, changed by one, deleted by one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{CommentMark, FieldChange, Spec, Value};
use strata_state::Action;

use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text, text_of};
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::execute::Work;

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Int,
    Flag,
    /// The server's word is the opposite: `disable`.
    Opposite,
    /// Texts with commas between; their order means nothing.
    List,
    /// Sent and never read back.
    Secret,
    /// The devices of a mapping, one parameter each.
    Devices,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) field: &'static str,
    pub(super) key: &'static str,
    pub(super) shape: Shape,
    /// Only the request that makes the object takes it.
    pub(super) fixed: bool,
    /// Every change must bring it along.
    pub(super) always: bool,
}

impl Field {
    pub(super) const fn new(field: &'static str, key: &'static str, shape: Shape) -> Self {
        Self { field, key, shape, fixed: false, always: false }
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    pub(super) const fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

/// How a value is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unset {
    /// An empty text, or 0.
    Empty,
    /// The parameter `delete` names it.
    Delete,
}

pub(super) struct Simple {
    pub(super) word: &'static str,
    /// The field with the object's name, and its key in answers and requests.
    pub(super) id: (&'static str, &'static str),
    pub(super) list: &'static str,
    pub(super) list_query: &'static [(&'static str, &'static str)],
    /// Names are part of paths; otherwise a parameter of every request.
    pub(super) id_in_path: bool,
    /// The key of the comment, where the mark goes.
    pub(super) comment: Option<&'static str>,
    pub(super) fields: &'static [Field],
    pub(super) unset: Unset,
    /// A change replaces the whole entry: what is not sent is gone.
    pub(super) replaces: bool,
    /// Whether a change takes the digest of the file.
    pub(super) takes_digest: bool,
    /// The field that all other keys go to, as texts.
    pub(super) rest: Option<&'static str>,
    /// Why a row is never ours.
    pub(super) reserved: fn(&Row) -> Option<&'static str>,
    /// A field that has a call of its own.
    pub(super) apart: Option<Apart>,
}

/// A field that cannot be changed together with others.
pub(super) struct Apart {
    pub(super) field: &'static str,
    pub(super) call: fn(&Work<'_>) -> Result<NextCall, ProviderError>,
}

impl Simple {
    fn path(&self, spec: &Spec) -> String {
        let name = spec_text(spec, self.id.0);
        if self.id_in_path {
            format!("{}/{}", self.list, encode_path_part(name))
        } else {
            self.list.to_owned()
        }
    }

    fn params(&self, spec: &Spec, in_path: bool) -> Params {
        if in_path { Params::new() } else { Params::new().with(self.id.1, spec_text(spec, self.id.0)) }
    }

    pub(super) fn read_row(&self, row: &Row) -> Option<(String, LiveObject)> {
        let name = row_text(row, self.id.1)?;
        let mut live = LiveObject::default();
        live.spec.insert(self.id.0.to_owned(), Value::Text(name.clone()));
        for field in self.fields {
            if let Some(value) = row.get(field.key).and_then(|value| read(field.shape, value)) {
                live.spec.insert(field.field.to_owned(), value);
            }
        }
        if let Some(rest) = self.rest {
            let is_known = |key: &str| {
                key == "digest" || key == self.id.1 || self.fields.iter().any(|field| field.key == key)
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
        for field in self.fields {
            if let Some(value) = spec.get(field.field) {
                put(&mut params, field, value, job.work)?;
            }
        }
        for (key, value) in self.rest_of(spec) {
            params.set(key, value.as_text().unwrap_or_default());
        }
        if let Some(key) = self.comment {
            params.set(key, comment_of(spec));
        }
        let doing = format!("make the {} `{}`", self.word, spec_text(spec, self.id.0));
        Ok(job.work.call(Method::POST, self.list.to_owned(), params, doing).into())
    }

    fn rest_of<'s>(&self, spec: &'s Spec) -> impl Iterator<Item = (&'s String, &'s Value)> {
        self.rest.and_then(|rest| spec.get(rest)?.as_map()).into_iter().flatten()
    }

    fn update(&self, job: &Job<'_>, live: &LiveObject) -> Result<NextCall, ProviderError> {
        let spec = job.spec();
        let mut params = self.params(spec, self.id_in_path);
        let (mut delete, mut sends) = (Vec::new(), Vec::new());
        let fields = self.fields.iter().filter(|field| !field.fixed && !self.is_apart(field.field));
        for field in fields {
            let changes = job.lacks(field.field);
            match spec.get(field.field) {
                Some(value) if changes || field.always => put(&mut params, field, value, job.work)?,
                None if changes => match (self.unset, field.shape) {
                    (Unset::Delete, _) => delete.push(field.key),
                    (Unset::Empty, Shape::Int) => params.set(field.key, 0),
                    (Unset::Empty, _) => params.set(field.key, ""),
                },
                _ => continue,
            }
            if field.shape == Shape::Secret {
                sends.push(field.field);
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
        let doing = format!("change the {} `{}`", self.word, spec_text(spec, self.id.0));
        Ok(NextCall { call: job.work.call(Method::PUT, self.path(spec), params, doing), sends })
    }

    fn is_apart(&self, field: &str) -> bool {
        self.apart.as_ref().is_some_and(|apart| apart.field == field)
    }
}

#[async_trait]
impl Family for Simple {
    fn word(&self) -> &'static str {
        self.word
    }

    fn key(&self, spec: &Spec) -> Option<String> {
        spec.get(self.id.0).and_then(Value::as_text).map(str::to_owned)
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
                let doing = format!("delete the {} `{}`", self.word, spec_text(spec, self.id.0));
                let params = self.params(spec, self.id_in_path);
                Ok(Some(job.work.call(Method::DELETE, self.path(spec), params, doing).into()))
            }
            (_, None) => self.create(job).map(Some),
            (_, Some(_)) if job.outstanding.is_empty() => Ok(None),
            (_, Some(live)) => match &self.apart {
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
pub(super) fn comment_of(spec: &Spec) -> String {
    let comment = spec_text(spec, "comment");
    let mark = spec.get("mark").and_then(Value::as_text);
    let parsed = mark.and_then(|mark| CommentMark::split_from_comment(mark).0);
    parsed.map_or_else(|| comment.to_owned(), |mark| mark.join_to_comment(comment))
}

fn read(shape: Shape, value: &serde_json::Value) -> Option<Value> {
    let items = || match value {
        serde_json::Value::Array(items) => items.iter().filter_map(text_of).collect(),
        other => vec![text_of(other).unwrap_or_default()],
    };
    Some(match shape {
        Shape::Secret => return None,
        Shape::Devices => Value::List(items().iter().map(|item| device_of(item)).collect()),
        Shape::List => {
            let texts = items();
            let mut texts: Vec<&str> = texts
                .iter()
                .flat_map(|item| item.split([',', ' ', ';']))
                .filter(|text| !text.is_empty())
                .collect();
            texts.sort_unstable();
            Value::List(texts.into_iter().map(Value::text).collect())
        }
        Shape::Text => Value::Text(text_of(value).filter(|text| !text.is_empty())?),
        Shape::Int => Value::Int(text_of(value)?.parse().ok()?),
        Shape::Flag => Value::Bool(text_of(value)? == "1"),
        Shape::Opposite => Value::Bool(text_of(value)? != "1"),
    })
}

fn put(params: &mut Params, field: &Field, value: &Value, work: &Work<'_>) -> Result<(), ProviderError> {
    match (field.shape, value) {
        (_, Value::Secret(secret)) => match secret.plain() {
            Some(plain) => params.set_secret(field.key, plain.expose()),
            None => return Err(work.internal("a secret itself is not at hand, only its digest")),
        },
        (Shape::Opposite, Value::Bool(on)) => params.set(field.key, u8::from(!on)),
        (_, Value::Bool(on)) => params.set(field.key, u8::from(*on)),
        (_, Value::Int(int)) => params.set(field.key, int),
        (_, Value::Text(text)) => params.set(field.key, text),
        (Shape::Devices, Value::List(devices)) => {
            for device in devices {
                params.push(field.key, device_text(device));
            }
        }
        (_, Value::List(items)) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            params.set(field.key, texts.join(","));
        }
        _ => {
            let message = format!("`{}`: its `{}` cannot be sent", work.operation.address, field.field);
            return Err(ProviderError::new(ErrorClass::BadInput, message).field(field.field));
        }
    }
    Ok(())
}

/// The parts of a mapped device, and what they are called in a spec.
const DEVICE: [(&str, &str); 5] = [
    ("node", "node"),
    ("path", "path"),
    ("id", "id"),
    ("subsystem-id", "subsystem_id"),
    ("iommugroup", "iommu_group"),
];

fn device_of(text: &str) -> Value {
    let mut device = Spec::new();
    for (key, value) in text.split(',').filter_map(|part| part.split_once('=')) {
        let Some((_, field)) = DEVICE.iter().find(|(known, _)| *known == key) else { continue };
        let number = (*field == "iommu_group").then(|| value.parse().ok()).flatten();
        device.insert((*field).to_owned(), number.map_or_else(|| Value::text(value), Value::Int));
    }
    Value::Map(device)
}

fn device_text(device: &Value) -> String {
    let Some(device) = device.as_map() else { return String::new() };
    let parts = DEVICE.iter().filter_map(|(key, field)| match device.get(*field)? {
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
    fn a_device_reads_back_as_written() {
        let text = "node=pve,path=0000:01:00.0,id=10de:1234,subsystem-id=10de:1,iommugroup=1";
        assert_eq!(device_text(&device_of(text)), text);
        assert_eq!(device_text(&device_of("id=1234:5678,node=pve")), "node=pve,id=1234:5678");
    }
}
