//! The review of a draft: what its operations rest on, and what is to be said of them before anybody agrees.
//!
//! Preconditions, planned effects and remarks are findings of one review. The planner takes them in; after it nothing changes a plan.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strata_resource::{Address, Spec};
use strata_state::Action;

use crate::{Observed, Operation, Sighting};

/// What a look found besides the fields of an object, for whoever reviews or executes an operation on it. Only its provider can read it;
/// it is kept in memory and takes part in no comparison: the digest of what was observed does.
#[derive(Clone, Default)]
pub struct Evidence(Option<Arc<dyn Any + Send + Sync>>);

impl Evidence {
    pub fn new(content: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(content)))
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl PartialEq for Evidence {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Evidence {}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Evidence(..)" } else { "Evidence(none)" })
    }
}

/// What a step sends, complete, where its spec alone does not say it. It is kept in memory only: in anything that is written stands its
/// digest, so that a saved plan is bound to it.
#[derive(Clone)]
pub struct Payload {
    /// One for each provider that has something to send, told apart by their types.
    contents: Vec<Arc<dyn Any + Send + Sync>>,
    digest: String,
}

impl Payload {
    /// The digest of what holds secrets must be made with a key.
    pub fn new(content: impl Any + Send + Sync, digest: String) -> Self {
        Self { contents: vec![Arc::new(content)], digest }
    }

    /// Both: a provider that guards another one adds what it sends itself.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.contents.extend(other.contents);
        self.digest = format!("{}; {}", self.digest, other.digest);
        self
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        self.contents.iter().find_map(|content| content.downcast_ref())
    }

    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({})", self.digest)
    }
}

impl JsonSchema for Payload {
    fn schema_name() -> Cow<'static, str> {
        "Payload".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = String::json_schema(generator);
        schema.insert("description".to_owned(), "The digest of what the step sends.".into());
        schema
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.digest)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { contents: Vec::new(), digest: String::deserialize(deserializer)? })
    }
}

/// What is reviewed.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    /// What the plan would ask of this provider, in the order of the plan.
    pub operations: &'a [Operation],
    /// Everything of the stack that was looked at, with its evidence; also what the plan leaves as it is.
    pub live: &'a BTreeMap<Address, Sighting>,
}

impl<'a> Review<'a> {
    /// What is there and ours.
    pub fn observed(self) -> impl Iterator<Item = (&'a Address, &'a Observed)> {
        self.live.iter().filter_map(|(address, sighting)| match sighting {
            Sighting::Ours(observed) => Some((address, observed)),
            _ => None,
        })
    }

    /// The same review of other operations.
    #[must_use]
    pub fn of(self, operations: &'a [Operation]) -> Self {
        Self { operations, ..self }
    }
}

/// One finding, about one of the operations.
#[derive(Debug, Clone)]
pub struct Finding {
    pub address: Address,
    pub action: Action,
    pub kind: FindingKind,
}

#[derive(Debug, Clone)]
pub enum FindingKind {
    /// A precondition does not hold: the plan shows it, and does not run.
    Precondition { message: String, hint: String },
    /// Others use the object that is to be deleted. One that a replacement left behind stays until they are gone, and `stays` is shown; in every other case
    /// that is a precondition.
    InUse { identity: Spec, stays: String, message: String, hint: String },
    /// What the operation does besides what its changes say, or what it leaves: shown beside its step.
    Remark(String),
    /// A planned effect: the object is restarted.
    Restarts,
    /// Nobody can say before it is tried whether the object is restarted.
    MayRestart,
    /// A planned effect: what is sent.
    Sends(Payload),
}

impl Finding {
    pub fn new(operation: &Operation, kind: FindingKind) -> Self {
        Self { address: operation.address.clone(), action: operation.action, kind }
    }

    pub fn precondition(operation: &Operation, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let (message, hint) = (message.into(), hint.into());
        Self::new(operation, FindingKind::Precondition { message, hint })
    }

    pub fn remark(operation: &Operation, remark: impl Into<String>) -> Self {
        Self::new(operation, FindingKind::Remark(remark.into()))
    }

    /// The message of a precondition that does not hold.
    pub fn refusal(&self) -> Option<&str> {
        match &self.kind {
            FindingKind::Precondition { message, .. } | FindingKind::InUse { message, .. } => Some(message),
            _ => None,
        }
    }
}
