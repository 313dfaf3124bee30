//! Does what the plan says: write-ahead, in the order of the needs, as much at once as the limits allow.

mod step;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use strata_resource::{Address, identity_of};
use strata_state::{Effect, JournalRecord, OpenEntry, StoreError};

use crate::ProviderError;
use crate::events::Event;
use crate::journal::JournalWriter;
use crate::plan::{Plan, Step, StepAction};
use crate::run::{EngineError, LockedRun, StackView};
use crate::schedule::{Limits, Schedule};

/// How a user stops an apply.
#[derive(Clone, Default)]
pub struct StopSignal(Arc<AtomicU8>);

impl StopSignal {
    /// The first call: nothing new is begun. The second: no further remote write.
    pub fn stop(&self) {
        let _ =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |calls| Some(calls.saturating_add(1)));
    }

    pub fn stopping(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    pub fn now(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }
}

#[derive(Clone, Default)]
pub struct ApplyOptions {
    pub limits: Limits,
    pub stop: StopSignal,
}

#[derive(Debug, Clone, Serialize)]
pub struct StepFailure {
    pub address: Address,
    pub action: StepAction,
    pub error: ProviderError,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// What came of an apply.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ApplyReport {
    pub done: usize,
    pub failed: Vec<StepFailure>,
    pub skipped: Vec<Address>,
    /// Not begun because the user said stop.
    pub left: usize,
    pub interrupted: bool,
}

impl ApplyReport {
    pub fn is_success(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && self.left == 0
    }
}

impl LockedRun {
    /// Runs the plan. The state is saved whatever happens to single steps.
    pub async fn apply(
        &mut self,
        stack: &StackView,
        plan: &Plan,
        options: &ApplyOptions,
    ) -> Result<ApplyReport, EngineError> {
        self.run.events.emit(Event::ApplyStarted { steps: plan.steps.len() });
        let report = self.walk(stack, plan, options).await?;
        self.save().await?;
        self.run.events.emit(Event::ApplyDone {
            done: report.done,
            failed: report.failed.len(),
            skipped: report.skipped.len(),
            left: report.left,
        });
        Ok(report)
    }

    async fn walk(
        &mut self,
        stack: &StackView,
        plan: &Plan,
        options: &ApplyOptions,
    ) -> Result<ApplyReport, EngineError> {
        let journal = JournalWriter::new(self.lock.clone());
        let mut schedule = Schedule::new(&plan.steps, options.limits.clone());
        let mut report = ApplyReport::default();
        let mut running = FuturesUnordered::new();
        let mut told_stopping = false;
        loop {
            if options.stop.stopping() {
                if !told_stopping {
                    self.run.events.emit(Event::Stopping { running: schedule.running() });
                    told_stopping = true;
                }
            } else {
                let ready = schedule.take_ready();
                let begun = self.begin(plan, &ready, &journal).await?;
                for (index, entry) in begun {
                    let step = &plan.steps[index];
                    self.run.events.emit(Event::StepStarted {
                        step: index,
                        address: step.address.clone(),
                        action: step.action,
                        stage: step.stage,
                    });
                    let worker = step::Worker {
                        index,
                        step,
                        entry,
                        run: self.run.clone(),
                        lock: self.lock.clone(),
                        journal: &journal,
                        lineage: plan.lineage.clone(),
                        stop: options.stop.clone(),
                        spec: self.with_inputs(step),
                        stack,
                        document: step::document_of(&self.state.document, &step.address),
                    };
                    running.push(worker.work());
                }
            }
            let Some(finished) = running.next().await else { break };
            let finished: step::Finished = finished?;
            self.finish(plan, &mut schedule, &mut report, finished);
        }
        report.interrupted = options.stop.stopping();
        report.left = schedule.left();
        Ok(report)
    }

    /// Makes durable, in one write, what the ready steps are about to do.
    async fn begin(
        &mut self,
        plan: &Plan,
        ready: &[usize],
        journal: &JournalWriter,
    ) -> Result<Vec<(usize, OpenEntry)>, StoreError> {
        let mut begun = Vec::with_capacity(ready.len());
        for &index in ready {
            let step = &plan.steps[index];
            self.state.last_id += 1;
            let entry = OpenEntry {
                id: self.state.last_id,
                action: step.action.action(),
                address: step.address.clone(),
                target: step.target.clone(),
                identity: entry_identity(step),
                spec_digest: step::spec_digest(&step.spec),
                begun: self.run.clock.now(),
                tasks: Vec::new(),
            };
            begun.push((index, entry));
        }
        let remote = begun.iter().filter(|(index, _)| plan.steps[*index].action.is_remote());
        let records: Vec<JournalRecord> =
            remote.map(|(_, entry)| JournalRecord::Begin(entry.clone())).collect();
        if !begun.is_empty() {
            self.state.unfolded = true;
        }
        self.state.open.extend(records.iter().filter_map(|record| match record {
            JournalRecord::Begin(entry) => Some(entry.clone()),
            _ => None,
        }));
        if !records.is_empty() {
            journal.append(records).await?;
        }
        Ok(begun)
    }

    fn finish(
        &mut self,
        plan: &Plan,
        schedule: &mut Schedule,
        report: &mut ApplyReport,
        finished: step::Finished,
    ) {
        let step = &plan.steps[finished.index];
        if let Some(effect) = finished.effect {
            effect.apply_to(&mut self.state.document, step.address.clone());
            self.state.open.retain(|open| open.id != finished.id);
        }
        let (index, address, action) = (finished.index, step.address.clone(), step.action);
        match finished.error {
            None => {
                schedule.done(index);
                report.done += 1;
                self.run.events.emit(Event::StepDone { step: index, address, action });
            }
            Some(error) => {
                for skipped in schedule.failed(index) {
                    let skipped_address = plan.steps[skipped].address.clone();
                    report.skipped.push(skipped_address.clone());
                    self.run.events.emit(Event::StepSkipped {
                        step: skipped,
                        address: skipped_address,
                        because: address.clone(),
                    });
                }
                self.run.events.emit(Event::StepFailed {
                    step: index,
                    address: address.clone(),
                    action,
                    error: error.clone(),
                });
                report.failed.push(StepFailure { address, action, error, origin: step.origin.clone() });
            }
        }
    }

    /// The spec of a step with the outputs of what is applied by now.
    fn with_inputs(&self, step: &Step) -> strata_resource::Spec {
        let document = &self.state.document;
        let output =
            |address: &Address, name: &str| document.resources.get(address)?.facts.get(name).cloned();
        let value = strata_resource::Value::Map(step.spec.clone()).with_inputs(&output);
        value.as_map().cloned().unwrap_or_default()
    }
}

/// The identity, and the hypervisor: where recovery looks for tasks.
fn entry_identity(step: &Step) -> strata_resource::Spec {
    let mut identity = identity_of(step.address.kind(), &step.spec);
    for field in ["node", "clone"] {
        if let Some(value) = step.spec.get(field) {
            identity.insert(field.to_owned(), value.stored());
        }
    }
    identity
}

/// A step's effect on the state; none while nothing certain can be said and the entry stays open.
pub(crate) type StepEffect = Option<Effect>;
