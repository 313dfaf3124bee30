//! Who hears what a session does: a terminal, a stream of JSON, a test, nobody.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use strata_diagnostics::{Diagnostic, SourceMap};
use strata_engine::{Event, EventSink};
use strata_secret::Redactor;
use strata_state::Holder;
use strata_tofu::Diagnosis;
use strata_tofu::changes::Action;

/// Hears what happens. Nothing depends on what it does with it.
pub trait Observer: Send + Sync {
    /// Something that a person should know while the session runs.
    fn session_event(&self, event: SessionEvent<'_>);

    /// Errors in the source that ended something; the error that follows is not shown.
    fn diagnostics(&self, found: &[&Diagnostic], sources: &SourceMap);

    /// The sink for the engine's events about one stack. Its steps are counted from zero.
    fn events(&self, key: &str) -> Arc<dyn EventSink>;
}

/// What a person should know.
#[non_exhaustive]
pub enum SessionEvent<'n> {
    /// Somebody else holds the lock; it is asked for again for so long.
    Waiting { key: &'n str, holder: &'n Holder, left: Duration },
    /// A plan without keys: an apply would make them in this file.
    KeysMissing { stack: &'n str, file: PathBuf },
    /// Keys of a cluster were made, encrypted, in this file.
    KeysMade { file: PathBuf },
    /// A token was created on a target, and its value is kept, encrypted, under this name in this file.
    TokenKept { token: &'n str, name: &'n str, file: &'n str },
    /// A target does not answer yet, for so many seconds.
    Connecting { endpoint: &'n str, seconds: u64 },
    /// The source says that a certificate is not to be verified.
    Insecure,
    /// OpenTofu fetches providers and connects to its state.
    PreparingTofu { stack: &'n str },
    /// OpenTofu would write secrets into a plain file in this folder.
    PlainState { stack: &'n str, folder: PathBuf, encrypts: bool },
    /// What OpenTofu found wrong, in its words.
    Diagnosis { diagnosis: &'n Diagnosis, redactor: &'n Redactor },
    /// A resource of OpenTofu, while it is applied.
    TofuStep { key: &'n str, step: Option<usize>, address: String, progress: TofuProgress },
}

/// How far OpenTofu is with a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TofuProgress {
    Started(Action),
    Running { seconds: u64 },
    Done { action: Action, seconds: u64 },
    Failed(Action),
}

/// Nobody.
pub struct NoObserver;

impl Observer for NoObserver {
    fn session_event(&self, _event: SessionEvent<'_>) {}

    fn diagnostics(&self, _found: &[&Diagnostic], _sources: &SourceMap) {}

    fn events(&self, _key: &str) -> Arc<dyn EventSink> {
        Arc::new(Self)
    }
}

impl EventSink for NoObserver {
    fn emit(&self, _event: Event) {}
}
