//! What is the same for every kind of object: how they are listed, and what to do next about one.

use std::collections::BTreeMap;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use strata_engine::ProviderError;
use strata_resource::{CommentMark, FieldChange, Spec, Value};

use crate::client::{CallError, Client};
use crate::execute::{Call, StepError, Unchanged, Work};

/// A row of an answer.
pub(crate) type Row = serde_json::Map<String, serde_json::Value>;

/// An object as the server has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveObject {
    /// In canonical form; the ownership mark is a field of it, as in a spec.
    pub(crate) spec: Spec,
    pub(crate) mark: Option<CommentMark>,
    /// Changes with anything about the object.
    pub(crate) digest: String,
    /// The server's own digest, of the whole file that the object is in.
    pub(crate) file_digest: Option<String>,
    /// The interfaces of a host, as they stand in its file.
    pub(crate) order: Vec<String>,
    /// The changes that wait for a reload, as a difference of two files.
    pub(crate) staged: Option<String>,
    /// Why it is never ours, whatever else is so.
    pub(crate) reserved: Option<&'static str>,
    /// What the server says of it and no field does.
    pub(crate) unread: Vec<String>,
    /// A line of the notes of a host that is no part of them: they are written with it.
    pub(crate) kept_line: Option<String>,
}

impl LiveObject {
    /// Puts a comment into the fields that it is made of.
    pub(crate) fn set_comment(&mut self, comment: &str) {
        let (mark, comment) = CommentMark::split_from_comment(comment);
        if !comment.is_empty() {
            self.spec.insert("comment".to_owned(), Value::Text(comment));
        }
        if let Some(mark) = &mark {
            self.spec.insert("mark".to_owned(), Value::Text(mark.to_string()));
        }
        self.mark = mark;
    }
}

/// One call, and the fields it sends that cannot be read back.
pub(crate) struct NextCall {
    pub(crate) call: Call,
    pub(crate) sends: Vec<&'static str>,
}

impl From<Call> for NextCall {
    fn from(call: Call) -> Self {
        Self { call, sends: Vec::new() }
    }
}

/// One operation on its way.
pub(crate) struct Job<'a> {
    pub(crate) work: &'a Work<'a>,
    /// What still differs, of what the operation changes.
    pub(crate) outstanding: Vec<FieldChange>,
}

impl Job<'_> {
    pub(crate) fn spec(&self) -> &Spec {
        &self.work.operation.spec
    }

    /// Whether a field still differs, or something in it.
    pub(crate) fn lacks(&self, field: &str) -> bool {
        self.outstanding.iter().any(|change| change.path.first() == Some(field))
    }
}

#[async_trait]
pub(crate) trait Family: Sync {
    /// What one is called, for people.
    fn word(&self) -> &'static str;

    /// Which one a spec is about; also said to people.
    fn key(&self, spec: &Spec) -> Option<String>;

    /// All that there are, by key; where they are asked for one by one, at least those that are `asked` for.
    async fn list(&self, client: &Client, asked: &[&Spec])
    -> Result<BTreeMap<String, LiveObject>, CallError>;

    /// Specs that together ask for all that there are; none where a list has all of them whatever is asked for.
    async fn everything(&self, _client: &Client) -> Result<Vec<Spec>, CallError> {
        Ok(Vec::new())
    }

    /// All that there are, with their ownership marks, whatever is asked for; what they are made of may be left out.
    async fn list_all(&self, client: &Client) -> Result<BTreeMap<String, LiveObject>, CallError> {
        self.list(client, &[]).await
    }

    /// Sends a call. `unchanged` is asked before it is sent again.
    async fn send(&self, work: &Work<'_>, call: Call, unchanged: Unchanged<'_>) -> Result<(), StepError> {
        work.run_while(call, unchanged).await
    }

    /// The next call for an operation; none if it is done.
    fn next(&self, job: &Job<'_>, live: Option<&LiveObject>) -> Result<Option<NextCall>, ProviderError>;
}

/// A value of an answer as the text that would have been sent.
pub(crate) fn text_of(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::Bool(on) => Some(u8::from(*on).to_string()),
        _ => None,
    }
}

pub(crate) fn row_text(row: &Row, key: &str) -> Option<String> {
    row.get(key).and_then(text_of)
}

pub(crate) fn spec_text<'s>(spec: &'s Spec, field: &str) -> &'s str {
    spec.get(field).and_then(Value::as_text).unwrap_or_default()
}

/// Over the canonical form: what is left out of it is nobody's concern.
pub(crate) fn digest_of(spec: &Spec) -> String {
    hex::encode(Sha256::digest(serde_json::to_vec(spec).unwrap_or_default()))
}
