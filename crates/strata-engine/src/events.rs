//! What happens, as values. The live display, the JSON stream and the tests consume the same ones.

use schemars::JsonSchema;
use serde::Serialize;
use strata_resource::{Address, Stage};
use strata_state::OpenEntry;

use crate::plan::StepAction;
use crate::{ProviderError, ResolvedEntry};

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The lock was taken over from a run that is not heard of any more: what it sent may still arrive for this long.
    WaitingOut { key: String, seconds: u64 },
    /// An interrupted run left this open; it is being looked at.
    RecoveryStarted { entry: OpenEntry },
    /// What became of what an interrupted run left open.
    RecoveryDone { resolved: ResolvedEntry },
    /// The live objects of a stack are looked at.
    RefreshStarted { objects: usize },
    /// The live objects of a stack have been looked at.
    RefreshDone { objects: usize },
    /// The steps of a plan begin.
    ApplyStarted { steps: usize },
    /// A step begins.
    StepStarted { step: usize, address: Address, action: StepAction, stage: Stage },
    /// What the step does at the moment.
    StepProgress { step: usize, address: Address, doing: String },
    /// The remote did what it was asked to, and warned of something.
    StepWarning { step: usize, address: Address, warning: String },
    /// A step is done, and its effect was seen.
    StepDone { step: usize, address: Address, action: StepAction },
    /// A step failed.
    StepFailed { step: usize, address: Address, action: StepAction, error: ProviderError },
    /// It only waited when the user said stop. The journal has it; the next apply goes on with it.
    StepStopped { step: usize, address: Address, action: StepAction, waited: String },
    /// Not begun because something it needs failed.
    StepSkipped { step: usize, address: Address, because: Address },
    /// An output needs what this object has not reported yet. It is asked again for at most so long.
    ReportAwaited { address: Address, seconds: u64 },
    /// It did not report it in time: the output is not known. The next apply asks again.
    ReportMissing { address: Address, why: String },
    /// The first interrupt: what runs is finished, nothing new is begun.
    Stopping { running: usize },
    /// The steps of a plan have ended.
    ApplyDone { done: usize, failed: usize, skipped: usize, left: usize, unfinished: usize },
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
