//! What the engine asks of a provider: look, act, and resolve what an interrupted run left behind.
//!
//! A provider makes no choice that is not in the operation it is given. Its work on one operation is a sequence of small
//! idempotent steps; a run that dies between two of them leaves something that the next plan completes.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_resource::{Address, FieldChange, FieldPath, Lineage, Spec};
use strata_state::{Action, OpenEntry, StateResource};

use crate::{Evidence, Finding, Look, Payload, Review};

/// An object to look at: the spec says its identity (VMID, volume id), the state what proves it ours.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    pub address: &'a Address,
    pub spec: &'a Spec,
    pub recorded: Option<&'a StateResource>,
    /// What an interrupted create was to make, where one is open: an object that can carry no mark is ours if it is just that.
    pub begun: Option<&'a Spec>,
    pub lineage: &'a Lineage,
}

/// What was found under an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    Absent,
    Ours(Observed),
    /// Something that has the identity and is not ours. Never touched.
    Unmanaged(Unmanaged),
    /// A task still works on it (`lock: clone`): nothing can be said yet.
    Busy(String),
    /// It does not answer, and whether it is there cannot be seen in another way.
    Unreachable(String),
    /// Nobody can say whether it is there: this login may not see it, or what would show it cannot be reached. Never created over, never
    /// forgotten.
    Unknown(Unseen),
}

/// Something that has an identity of ours and is not ours, described for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmanaged {
    /// ``VM 9110 `db` on `pve1` ``.
    pub what: String,
    pub why: Dispute,
    /// The lineage, whole or short, and the address that its ownership mark names, where it carries one.
    pub mark: Option<(String, String)>,
}

/// Why something is not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispute {
    /// Neither the state nor an ownership mark says that this repository manages it.
    Unclaimed,
    /// Something says that it is another one, or another's: a sentence about `it`.
    Because(String),
    /// What it is called says it.
    InName,
}

impl Unmanaged {
    pub fn new(what: impl Into<String>, why: Dispute) -> Self {
        Self { what: what.into(), why, mark: None }
    }

    pub fn because(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, Dispute::Because(why.into()))
    }
}

impl From<String> for Unmanaged {
    fn from(what: String) -> Self {
        Self::new(what, Dispute::InName)
    }
}

impl std::fmt::Display for Unmanaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.why {
            Dispute::Unclaimed => write!(f, "{} exists and is not managed by this repository", self.what),
            Dispute::Because(why) => write!(f, "{}: {why}", self.what),
            Dispute::InName => f.write_str(&self.what),
        }
    }
}

/// Why something cannot be seen, and what makes it visible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    pub what: String,
    pub hint: String,
}

impl Unseen {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// A live object of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Its fields in the same canonical form as a spec; fields that no spec knows are left out.
    pub spec: Spec,
    /// What the remote made up: uuid, hwaddr, size, the hypervisor it is on.
    pub facts: Spec,
    /// Changes when anything about the object changes; binds a plan to what it saw.
    pub digest: String,
    /// Fields whose value waits for a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Where something waits for a restart: the fields as they are until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Spec>,
    /// What else was found, for the review and the execution of an operation on it.
    #[serde(skip)]
    pub evidence: Evidence,
}

/// One piece of work, complete: nothing is left to decide.
#[derive(Debug, Clone)]
pub struct Operation {
    pub action: Action,
    pub address: Address,
    pub target: String,
    pub lineage: Lineage,
    /// What the object is to become; for a delete, what it was.
    pub spec: Spec,
    /// What the state knows of it.
    pub recorded: Option<StateResource>,
    /// What the plan saw.
    pub observed: Option<Observed>,
    /// What an update changes.
    pub changes: Vec<FieldChange>,
    /// The guest is restarted when the changes are in.
    pub restart: bool,
    /// Half of a replacement: what a delete ends is made again right after it, under the same identity or another.
    pub replacement: bool,
    /// Others of its group go down only when it works.
    pub awaited: bool,
    /// What is sent, where the review found it.
    pub payload: Option<Payload>,
}

impl Operation {
    /// Whether a field changes, or something in it.
    pub fn touches(&self, field: &str) -> bool {
        self.changes.iter().any(|change| change.path.first() == Some(field))
    }
}

/// What an operation made: recorded in the state beside the spec.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub facts: Spec,
}

/// What an object reports of itself that nobody wrote, such as the address that a DHCP server gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reported {
    /// There is nothing that it could be asked.
    Nothing,
    /// Facts, by the names that the table of its kind has.
    Facts(Spec),
    /// It does not answer: why, for people, and for how long it is worth to ask again.
    NoAnswer { why: String, seconds: u64 },
}

/// Why an operation would fail, known before anything is begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The object of the operation, or of the first one where several would fail for the same reason.
    pub address: Address,
    pub error: ProviderError,
}

/// What a provider tells while it works.
#[async_trait]
pub trait OperationContext: Send + Sync {
    /// Fails if this run may no longer write: the lease has lapsed, or the user said stop now. Asked before each remote write, and
    /// only then: an operation that was allowed to write counts as one that did, until its provider proves otherwise.
    fn before_write(&self) -> Result<(), ProviderError>;
    /// The write that was allowed last did nothing, for certain: it was refused as a whole, or never sent.
    fn write_refused(&self) {}
    /// Everything that this operation wrote has been taken back, and a look has proven that.
    fn writes_undone(&self) {}
    /// A slot that a write has added, or may have: of an object whose slots belong to whoever made them. If the operation fails later, these
    /// are recorded as ours, and no others.
    fn adds(&self, _slot: &FieldPath) {}
    /// The question of [`Self::before_write`] where nothing is about to be written, as in a wait.
    fn may_go_on(&self) -> Result<(), ProviderError> {
        self.before_write()
    }
    /// How long one write may take that nothing but the lock keeps from coming late; none where the lock does not lapse.
    fn write_timeout(&self) -> Option<std::time::Duration> {
        None
    }
    /// What a remote task warned of although it ended. The user is told.
    fn warning(&self, _what: &str) {}
    /// Makes durable that a remote task was started.
    async fn task_started(&self, task: &str) -> Result<(), ProviderError>;
    /// What it does at the moment, for people.
    fn progress(&self, doing: &str);
    /// Whether an object of the same plan does not come up in this run: its step failed, or was skipped.
    fn given_up(&self, _address: &Address) -> bool {
        false
    }
    /// Whether the user said stop: what is being written is finished, and nobody waits for anything any more.
    fn stopping(&self) -> bool {
        false
    }
    /// Returns once the user said stop.
    async fn stopped(&self) {
        std::future::pending().await
    }
}

#[async_trait]
pub trait Provider: Send + Sync {
    /// Looks at all of them, bulk first; the answers stand in the order of the questions.
    async fn observe_all(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError>;

    /// The same as a part of a look in which other stacks ask, too: what all of them would ask, such as listings, is asked once.
    async fn observe_in(&self, _look: &Look, wanted: &[Wanted<'_>]) -> Result<Vec<Sighting>, ProviderError> {
        self.observe_all(wanted).await
    }

    /// Reviews what a plan would do, before anybody agrees to it: preconditions that do not hold, planned effects, remarks. Only looks.
    async fn review(&self, _review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
        Ok(Vec::new())
    }

    /// Whether this run can do the operations: privileges, storages, bridges. Everything that is wrong, not only the first. What
    /// `earlier` operations of other stacks make counts as there, and what they take as taken. Only looks; what the login may not see is not
    /// known, and no obstacle. Nothing stands in the way of who has nothing to ask.
    async fn preflight(
        &self,
        _look: &Look,
        _operations: &[Operation],
        _earlier: &[Operation],
    ) -> Result<Vec<Obstacle>, ProviderError> {
        Ok(Vec::new())
    }

    async fn execute(
        &self,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError>;

    /// Asks objects of ours what they report of themselves, once each; the answers stand in the order of the questions. Only looks, and waits for
    /// nobody.
    async fn report(&self, objects: &[(&Address, &StateResource)]) -> Vec<Reported> {
        vec![Reported::Nothing; objects.len()]
    }

    /// Waits until no task of an interrupted operation runs any more, so that what is live can be judged.
    async fn wait_for_tasks(
        &self,
        entry: &OpenEntry,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError>;
}

/// What kind of trouble it is; decides what the user is told to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The remote cannot be reached, or kept failing until the deadline.
    Unreachable,
    /// The credentials are wrong, or a privilege is missing.
    Refused,
    /// Somebody else changed or took the object.
    Conflict,
    /// The remote does not accept a value.
    BadInput,
    /// A task began and failed.
    TaskFailed,
    /// Something that must exist does not.
    Missing,
    /// A guard of ours.
    Guard,
    /// Stopped by the user or by a lapsed lease.
    Stopped,
    Internal,
}

/// Why a provider could not do something: what, where, and what next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderError {
    pub class: ErrorClass,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The last lines of a failed task's log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// The field of the spec that it is about, dotted, so that the line of YAML can be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Nothing was changed, for certain. A provider says it of the call that failed; what the engine hands on says it of the whole
    /// operation.
    #[serde(default)]
    pub nothing_done: bool,
    #[serde(skip)]
    pub behind: Behind,
}

/// The error that another one was made from. It is not written down, and two errors with the same words are the same.
#[derive(Debug, Clone, Default)]
pub struct Behind(Option<Arc<dyn Error + Send + Sync>>);

impl Behind {
    pub fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(error)))
    }

    pub fn error(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

impl PartialEq for Behind {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Behind {}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.behind.error()
    }
}

impl ProviderError {
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            hint: None,
            log: Vec::new(),
            field: None,
            nothing_done: false,
            behind: Behind::default(),
        }
    }

    /// Keeps the error that this one was made from: what to do next is chosen by its kind, never by the words of the message.
    #[must_use]
    pub fn because(mut self, error: impl Error + Send + Sync + 'static) -> Self {
        self.behind = Behind::of(error);
        self
    }

    /// The nearest error of this type among those that this one was made from.
    pub fn cause<E: Error + 'static>(&self) -> Option<&E> {
        let mut behind = self.source();
        while let Some(error) = behind {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            behind = error.source();
        }
        None
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn log(mut self, log: Vec<String>) -> Self {
        self.log = log;
        self
    }

    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}
