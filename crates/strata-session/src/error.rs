//! Why a session failed: what, where, and what to do next.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use strata_engine::{Behind, EngineError, ErrorClass, ProviderError, StalePlan};
use strata_state::{Lease, StoreError};

/// What became of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    Failed,
    /// A guard said no: nothing was done.
    Refused,
    /// Somebody else works on the state.
    Locked,
    /// Stopped by the user, with everything saved.
    Interrupted,
    /// The command line is wrong.
    Usage,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionError {
    pub kind: ErrorKind,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Already shown; only the exit code is left to give.
    #[serde(skip)]
    pub is_shown: bool,
    #[serde(skip)]
    pub behind: Behind,
}

impl SessionError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            origin: None,
            details: Vec::new(),
            hints: Vec::new(),
            is_shown: false,
            behind: Behind::default(),
        }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Everything was reported before: to the observer, or by the command itself.
    pub fn already_shown(kind: ErrorKind) -> Self {
        Self { is_shown: true, ..Self::new(kind, "") }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Keeps the error that this one was made from.
    #[must_use]
    pub fn because(mut self, error: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.behind = Behind::of(error);
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    #[must_use]
    pub fn origin(mut self, origin: Option<String>) -> Self {
        self.origin = origin;
        self
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.behind.error()
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let own = match &error {
            StoreError::Locked { key, holder } => {
                let wait = match holder.lease {
                    Lease::Running(left) => format!(
                        "wait for it; if that run is gone, its lock ends within {} s and the next run takes it over",
                        left.as_secs().max(1)
                    ),
                    _ => "wait for it, or, if that run is gone for good, `strata unlock` takes the lock away".to_owned(),
                };
                Self::new(ErrorKind::Locked, message)
                    .hint(wait)
                    .detail(format!("state key: {key}"))
                    .detail(format!("lock id: {}", holder.owner.id))
            }
            StoreError::Damaged { newest_good: Some(serial), .. } => Self::failed(message)
                .hint(format!("the last good version has serial {serial}: `strata state rollback STACK {serial}`")),
            StoreError::Damaged { .. } => Self::failed(message)
                .hint("no good version is left; guests are still found by their ownership marks: move the file away and apply"),
            StoreError::Newer { .. } => Self::failed(message).hint("use the newer Strata"),
            StoreError::Moved { .. } => Self::failed(message).hint("plan again"),
            StoreError::LockLost { .. } => {
                Self::failed(message).hint("somebody used `strata unlock`; apply again when their run has ended")
            }
            StoreError::Lapsed { .. } => Self::failed(message)
                .hint("the state's server did not answer for too long; apply again: it finishes what was begun"),
            StoreError::OtherLock { .. } => Self::new(ErrorKind::Refused, message).hint("look who holds it now"),
            StoreError::Exists { .. } => Self::refused(message),
            StoreError::Sealed { .. } => Self::failed(message)
                .hint("see `state.encryption` in strata.yaml; `previous` names keys that are still read with"),
            StoreError::Remote { hint: Some(hint), .. } => Self::failed(message).hint(hint),
            _ => Self::failed(message),
        };
        own.because(error)
    }
}

impl From<ProviderError> for SessionError {
    fn from(error: ProviderError) -> Self {
        let kind = if error.class == ErrorClass::Guard { ErrorKind::Refused } else { ErrorKind::Failed };
        let mut own = Self::new(kind, error.message);
        own.details = error.log;
        own.hints.extend(error.hint);
        own.behind = error.behind;
        own
    }
}

impl From<EngineError> for SessionError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Observe { target, error } => {
                let mut own = Self::from(*error);
                own.message = format!("cannot look at target `{target}`: {}", own.message);
                own
            }
            EngineError::Recovery { address, error } => {
                let mut own = Self::from(*error);
                own.message = format!(
                    "cannot finish what an interrupted run left open at `{address}`: {}",
                    own.message
                );
                own
            }
            EngineError::NoTarget(target) => Self::failed(format!("`strata.yaml` has no target `{target}`"))
                .hint("the state still has objects there: put the target back until they are destroyed"),
            EngineError::Lineage { .. } => Self::refused(error.to_string())
                .hint("each repository has its own `repository:` id in strata.yaml; was it changed?"),
            EngineError::Open { .. } => {
                Self::refused(error.to_string()).hint("`strata apply` without a plan file finishes it")
            }
            EngineError::Arrival { .. } => Self::refused(error.to_string())
                .hint("it stays open, and nothing is done to the object; bring that state back first: `strata state history` shows its versions"),
            EngineError::Unfit(_) | EngineError::Lint(_) => Self::failed(error.to_string()),
        }
    }
}

impl From<StalePlan> for SessionError {
    fn from(stale: StalePlan) -> Self {
        let mut error = Self::refused(format!("the plan of `{}` is stale, nothing was changed", stale.stack));
        error.details = stale.moved;
        error.hint("make a new plan and have it reviewed")
    }
}
