//! Objects that are one row of a listing: made by one request, changed by one, deleted by one.

mod values;

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::Method;
use strata_engine::ProviderError;
use strata_resource::{CommentMark, FieldChange, FieldRule, FieldType, KindTable, Spec, Value};
use strata_state::Action;

pub(crate) use self::values::Parts;
use self::values::{Form, put, read};
use super::family::{Family, Job, LiveObject, NextCall, Row, digest_of, row_text, spec_text, text_of};
use crate::absence;
use crate::api::{Params, encode_path_part};
use crate::client::{CallError, Client};
use crate::execute::Work;
use crate::maintenance::MaintenanceMark;

/// How a value is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    /// An empty text, or 0.
    Empty,
    /// The parameter `delete` names it.
    Delete,
    /// A parameter `delete` for each.
    DeleteEach,
}

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
    /// Fields that are made of parts, or lists of such items; each item is a parameter of its own.
    pub(crate) parts: &'static [(&'static str, Parts)],
    /// Lists whose items are parameters of their own, in an order that means something.
    pub(crate) arrays: &'static [&'static str],
    /// Maps whose entries are parameters of their own, `name=…,value=…`, and texts: their values are in base64.
    pub(crate) encoded: &'static [&'static str],
    /// Maps that are sent as lines `name=value`, in base64.
    pub(crate) lines: &'static [&'static str],
    /// What a row of the list calls the object's name, where that is not how it is sent.
    pub(crate) listed_as: Option<&'static str>,
    /// The list shows only a part of each: those that are asked for are read one by one.
    pub(crate) read_each: bool,
    /// There is one, which is always there, and its path is that of the list.
    pub(crate) single: Option<&'static str>,
    /// Each host has one, which is always there and is called like its host: the path is that below the host.
    pub(crate) of_hosts: bool,
    /// It is made by a request to its own path.
    pub(crate) made_at_path: bool,
    /// Keys that the server adds to a row, and nobody sets.
    pub(crate) derived: &'static [&'static str],
    /// Why a row is never ours.
    pub(crate) reserved: fn(&Row) -> Option<&'static str>,
    /// Whether a row is there at all: one that is about to go is not.
    pub(crate) is_there: fn(&Row) -> bool,
    /// Fields that change by themselves: they say nothing about who changed the rest.
    pub(crate) unsteady: &'static [&'static str],
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
            parts: &[],
            arrays: &[],
            encoded: &[],
            lines: &[],
            listed_as: None,
            read_each: false,
            single: None,
            of_hosts: false,
            made_at_path: false,
            derived: &[],
            reserved: |_| None,
            is_there: |_| true,
            unsteady: &[],
            separate: None,
        }
    }

    /// What the remote calls the object's name.
    fn id_key(&self) -> &'static str {
        let known = self.table.fields.iter().find(|field| field.path == self.id);
        known.map(|field| field.remote).filter(|key| !key.is_empty()).unwrap_or(self.id)
    }

    /// The fields that are keys of a row, without the name.
    fn fields(&self) -> impl Iterator<Item = &'static FieldRule> {
        self.table.fields.iter().filter(|field| !field.remote.is_empty() && field.path != self.id)
    }

    fn form_of(&self, field: &FieldRule) -> Form {
        let parts = self.parts.iter().find(|(own, _)| *own == field.path);
        match parts {
            Some((_, parts)) => Form::Parts(parts),
            None if self.arrays.contains(&field.path) => Form::Array,
            None if self.encoded.contains(&field.path) => Form::Encoded,
            None if self.lines.contains(&field.path) => Form::Lines,
            None => Form::Usual,
        }
    }

    fn name<'s>(&self, spec: &'s Spec) -> &'s str {
        spec_text(spec, self.id)
    }

    fn path(&self, spec: &Spec) -> String {
        let name = self.name(spec);
        if self.of_hosts {
            return format!("/nodes/{}/{}", encode_path_part(name), self.list);
        }
        if self.id_in_path && self.single.is_none() {
            format!("{}/{}", self.list, encode_path_part(name))
        } else {
            self.list.to_owned()
        }
    }

    fn params(&self, spec: &Spec, in_path: bool) -> Params {
        if in_path { Params::new() } else { Params::new().with(self.id_key(), self.name(spec)) }
    }

    fn read_row(&self, row: &Row) -> Option<(String, LiveObject)> {
        let name = row_text(row, self.listed_as.unwrap_or(self.id_key()))?;
        let mut live = LiveObject::default();
        live.spec.insert(self.id.to_owned(), Value::Text(name.clone()));
        for field in self.fields() {
            let value = row.get(field.remote).and_then(|value| read(field, self.form_of(field), value));
            live.spec.extend(value.map(|value| (field.path.to_owned(), value)));
        }
        let is_known = |key: &str| {
            let named = key == self.id_key() || Some(key) == self.listed_as;
            key == "digest" || named || self.fields().any(|field| field.remote == key)
        };
        let others = row.iter().filter(|(key, _)| !is_known(key) && Some(key.as_str()) != self.comment);
        match self.rest {
            Some(rest) => {
                let text = |(key, value): (&String, &serde_json::Value)| {
                    Some((key.clone(), Value::Text(text_of(value)?)))
                };
                live.spec.insert(rest.to_owned(), Value::Map(others.filter_map(text).collect()));
            }
            None => {
                let unread = others.filter(|(key, _)| !self.derived.contains(&key.as_str()));
                live.unread = unread.map(|(key, _)| key.clone()).collect();
            }
        }
        if let Some(comment) = self.comment.and_then(|key| row_text(row, key)) {
            live.set_comment(&comment);
        }
        live.file_digest = row_text(row, "digest");
        live.reserved = (self.reserved)(row);
        live.digest = match self.unsteady {
            [] => digest_of(&live.spec),
            unsteady => {
                let mut steady = live.spec.clone();
                steady.retain(|field, _| !unsteady.contains(&field.as_str()));
                digest_of(&steady)
            }
        };
        Some((name, live))
    }

    fn create(&self, job: &Job<'_>) -> Result<NextCall, ProviderError> {
        let spec = job.spec();
        let mut params = self.params(spec, self.made_at_path);
        for field in self.fields() {
            if let Some(value) = spec.get(field.path) {
                put(&mut params, field, self.form_of(field), value, job.work)?;
            }
        }
        for (key, value) in self.rest_of(spec) {
            params.set(key, value.as_text().unwrap_or_default());
        }
        if let Some(key) = self.comment {
            params.set(key, comment_of(spec));
        }
        let doing = format!("make the {} `{}`", self.word, self.name(spec));
        let path = if self.made_at_path { self.path(spec) } else { self.list.to_owned() };
        Ok(job.work.call(Method::POST, path, params, doing).into())
    }

    fn rest_of<'s>(&self, spec: &'s Spec) -> impl Iterator<Item = (&'s String, &'s Value)> {
        self.rest.and_then(|rest| spec.get(rest)?.as_map()).into_iter().flatten()
    }

    fn update(&self, job: &Job<'_>, live: &LiveObject) -> Result<NextCall, ProviderError> {
        let spec = job.spec();
        let mut params = self.params(spec, self.id_in_path);
        let (mut delete, mut sends) = (Vec::new(), Vec::new());
        let is_sent =
            |field: &&FieldRule| (!field.is_fixed() || field.always_sent) && !self.is_separate(field.path);
        for field in self.fields().filter(is_sent) {
            let changes = job.lacks(field.path);
            let merged = merged(job, live, field);
            match merged.as_ref().or(spec.get(field.path)) {
                Some(value) if changes || field.always_sent => {
                    put(&mut params, field, self.form_of(field), value, job.work)?;
                }
                None if changes => match (self.unset, field.kind) {
                    (Unset::Delete | Unset::DeleteEach, _) => delete.push(field.remote),
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
        if let Some(line) = &live.kept_line {
            let written = params.pairs().find(|(key, _)| *key == NOTES).map(|(_, notes)| notes.to_owned());
            let emptied = delete.contains(&NOTES);
            delete.retain(|key| *key != NOTES);
            if written.is_some() || emptied {
                let notes = written.filter(|notes| !notes.is_empty());
                params.set(NOTES, notes.map_or_else(|| line.clone(), |notes| format!("{notes}\n{line}")));
            }
        }
        match self.unset {
            Unset::DeleteEach => delete.iter().for_each(|key| params.push("delete", *key)),
            _ if delete.is_empty() => {}
            _ => params.set("delete", delete.join(",")),
        }
        if let Some(digest) = live.file_digest.as_ref().filter(|_| self.takes_digest) {
            params.set("digest", digest);
        }
        let doing = format!("change the {} `{}`", self.word, self.name(spec));
        Ok(NextCall { call: job.work.call(Method::PUT, self.path(spec), params, doing), sends })
    }

    async fn list_hosts(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        let mut found = BTreeMap::new();
        for spec in asked {
            let mut row: Row = match client.get(&self.path(spec), Params::new()).await {
                // The name does not resolve, and the cluster has no such member.
                Err(error) if absence::is_no_member(client, &error, self.name(spec)).await? => continue,
                other => other?,
            };
            row.insert(self.id_key().to_owned(), self.name(spec).into());
            let kept_line = take_mark(&mut row);
            found.extend(self.read_row(&row).map(|(name, live)| (name, LiveObject { kept_line, ..live })));
        }
        Ok(found)
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

    async fn everything(&self, client: &Client) -> Result<Vec<Spec>, CallError> {
        if self.of_hosts {
            return absence::each_host(client, self.id).await;
        }
        if !self.read_each {
            return Ok(Vec::new());
        }
        let listed = self.list(client, &[]).await?;
        Ok(listed.into_values().filter(|live| live.reserved.is_none()).map(|live| live.spec).collect())
    }

    async fn list(
        &self,
        client: &Client,
        asked: &[&Spec],
    ) -> Result<BTreeMap<String, LiveObject>, CallError> {
        if self.of_hosts {
            return self.list_hosts(client, asked).await;
        }
        let query = self.list_query.iter().fold(Params::new(), |query, (key, value)| query.with(key, value));
        if let Some(name) = self.single {
            let mut row: Row = client.get(self.list, query).await?;
            row.insert(self.id_key().to_owned(), name.into());
            return Ok(self.read_row(&row).into_iter().collect());
        }
        let rows: Vec<Row> = client.get(self.list, query).await?;
        let mut found: BTreeMap<String, LiveObject> =
            rows.iter().filter(|row| (self.is_there)(row)).filter_map(|row| self.read_row(row)).collect();
        let each = asked.iter().filter(|spec| self.read_each && found.contains_key(self.name(spec)));
        for spec in each.collect::<Vec<_>>() {
            let mut row: Row = client.get(&self.path(spec), Params::new()).await?;
            row.insert(self.id_key().to_owned(), self.name(spec).into());
            found.extend(self.read_row(&row));
        }
        Ok(found)
    }

    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError> {
        let spec = job.spec();
        match (job.work.operation.action, live) {
            (Action::Delete, _) if self.single.is_some() || self.of_hosts => Ok(None),
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

/// The notes of a host.
const NOTES: &str = "description";

/// Takes the mark of a host that is being maintained out of its notes.
fn take_mark(row: &mut Row) -> Option<String> {
    let notes = row_text(row, NOTES)?;
    let (own, line) = MaintenanceMark::split(&notes);
    line.as_ref()?;
    match own.is_empty() {
        true => row.remove(NOTES),
        false => row.insert(NOTES.to_owned(), own.into()),
    };
    line
}

/// A field with parts as it is to be: those that nobody speaks of stay as they are.
fn merged(job: &Job<'_>, live: &LiveObject, field: &FieldRule) -> Option<Value> {
    if field.kind != FieldType::Map || !job.lacks(field.path) {
        return None;
    }
    let mut parts = live.spec.get(field.path).and_then(Value::as_map).cloned().unwrap_or_default();
    let own = job.outstanding.iter().filter(|change| change.path.first() == Some(field.path));
    for change in own {
        match (change.path.keys().get(1), &change.after) {
            (Some(part), Some(value)) => drop(parts.insert(part.clone(), value.clone())),
            (Some(part), None) => drop(parts.remove(part)),
            (None, after) => parts = after.as_ref().and_then(Value::as_map).cloned().unwrap_or_default(),
        }
    }
    (!parts.is_empty()).then_some(Value::Map(parts))
}

/// The comment as Proxmox gets it: what the user wrote, and the mark.
pub(crate) fn comment_of(spec: &Spec) -> String {
    let comment = spec_text(spec, "comment");
    let mark = spec.get("mark").and_then(Value::as_text);
    let parsed = mark.and_then(|mark| CommentMark::split_from_comment(mark).0);
    parsed.map_or_else(|| comment.to_owned(), |mark| mark.join_to_comment(comment))
}
