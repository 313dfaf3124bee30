//! What happens, as values. The live display, the JSON stream and the tests consume the same ones.

use serde::Serialize;
use strata_resource::{Address, Stage};
use strata_state::OpenEntry;

use crate::plan::StepAction;
use crate::{ProviderError, ResolvedEntry};

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The lock was taken over from a run that is not heard of any more: what it sent may still arrive for this long.
    WaitingOut {
        key: String,
        seconds: u64,
    },
    /// An interrupted run left this open; it is being looked at.
    RecoveryStarted {
        entry: OpenEntry,
    },
    RecoveryDone {
        resolved: ResolvedEntry,
    },
    RefreshStarted {
        objects: usize,
    },
    RefreshDone {
        objects: usize,
    },
    ApplyStarted {
        steps: usize,
    },
    StepStarted {
        step: usize,
        address: Address,
        action: StepAction,
        stage: Stage,
    },
    /// What the step does at the moment.
    StepProgress {
        step: usize,
        address: Address,
        doing: String,
    },
    /// The remote did what it was asked to, and warned of something.
    StepWarning {
        step: usize,
        address: Address,
        warning: String,
    },
    StepDone {
        step: usize,
        address: Address,
        action: StepAction,
    },
    StepFailed {
        step: usize,
        address: Address,
        action: StepAction,
        error: ProviderError,
    },
    /// It only waited when the user said stop. The journal has it; the next apply goes on with it.
    StepStopped {
        step: usize,
        address: Address,
        action: StepAction,
        waited: String,
    },
    /// Not begun because something it needs failed.
    StepSkipped {
        step: usize,
        address: Address,
        because: Address,
    },
    /// The first interrupt: what runs is finished, nothing new is begun.
    Stopping {
        running: usize,
    },
    ApplyDone {
        done: usize,
        failed: usize,
        skipped: usize,
        left: usize,
        unfinished: usize,
    },
}

/// Where events go. Must not block.
pub trait EventSink: Send + Sync {
    fn emit(&self, event: Event);
}

impl<F: Fn(Event) + Send + Sync> EventSink for F {
    fn emit(&self, event: Event) {
        self(event);
    }
}
