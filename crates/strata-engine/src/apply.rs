//! Does what the plan says: write-ahead, in the order of the needs, as much at once as the limits allow.

mod act;
mod acting;
mod effect;
mod step;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{FuturesUnordered, StreamExt};
use serde::Serialize;
use strata_resource::{Address, Value, stored_spec};
use strata_state::{Effect, JournalRecord, OpenEntry, StateResource};

use crate::capacity::{Capacity, Limits};
use crate::events::Event;
use crate::journal::{Batch, JournalWriter};
use crate::plan::{Plan, Step, StepAction};
use crate::run::{EngineError, LockedRun};
use crate::schedule::Schedule;
use crate::{Operation, ProviderError, StopSignal};

#[derive(Clone, Default)]
pub struct ApplyOptions {
    pub limits: Limits,
    pub stop: StopSignal,
    /// What the limits are counted against, where several stacks are applied at the same time; its own limits count then.
    pub capacity: Option<Capacity>,
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
    /// Begun and not ended because the user said stop: now, or while they only waited. The journal has them; the next apply looks
    /// what became of them.
    pub unfinished: Vec<Address>,
    pub interrupted: bool,
}

impl ApplyReport {
    pub fn is_success(&self) -> bool {
        self.failed.is_empty() && self.skipped.is_empty() && self.left == 0 && self.unfinished.is_empty()
    }
}

/// What does not come up in this run: its step failed, or was skipped. Others may wait for it.
#[derive(Clone, Default)]
struct GivenUp(Arc<Mutex<BTreeSet<Address>>>);

impl GivenUp {
    fn insert(&self, address: Address) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
    }

    fn contains(&self, address: &Address) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }
}

impl LockedRun {
    /// Runs the plan. The state is saved whatever happens to single steps.
    pub async fn apply(&mut self, plan: &Plan, options: &ApplyOptions) -> Result<ApplyReport, EngineError> {
        self.refuse_unfit(plan)?;
        self.run.events.emit(Event::ApplyStarted { steps: plan.steps.len() });
        let report = self.walk(plan, options).await?;
        self.save().await?;
        self.run.events.emit(Event::ApplyDone {
            done: report.done,
            failed: report.failed.len(),
            skipped: report.skipped.len(),
            left: report.left,
            unfinished: report.unfinished.len(),
        });
        Ok(report)
    }

    /// A plan that was made from another state, or that nobody may run, changes nothing.
    fn refuse_unfit(&self, plan: &Plan) -> Result<(), EngineError> {
        let document = &self.state.document;
        // An entry stays open while nobody can see what came of it. Nothing is done at its address until then.
        let touched = |entry: &OpenEntry| plan.steps.iter().any(|step| step.address == entry.address);
        let open = |entry: &&OpenEntry| !self.deferred.contains_key(&entry.id) || touched(entry);
        if let Some(entry) = self.state.open.iter().find(open) {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        let unfit = |why: String| Err(EngineError::Unfit(why));
        if plan.key != document.key || plan.lineage != document.lineage {
            return unfit(format!("it is for `{}`, and the lock is on `{}`", plan.key, document.key));
        }
        if plan.serial + self.edits != document.serial {
            let (then, now) = (plan.serial, document.serial);
            return unfit(format!("the state went from serial {then} to {now} since it was made"));
        }
        match plan.problems.first() {
            Some(problem) => unfit(format!("`{}`: {}", problem.address, problem.message)),
            None => Ok(()),
        }
    }

    async fn walk(&mut self, plan: &Plan, options: &ApplyOptions) -> Result<ApplyReport, EngineError> {
        let stop = &options.stop;
        let journal = JournalWriter::new(self.lock.clone(), self.tally.clone());
        let capacity = options.capacity.clone().unwrap_or_else(|| Capacity::new(options.limits.clone()));
        let mut freed = capacity.freed();
        let mut schedule = Schedule::new(&plan.steps, capacity);
        let mut report = ApplyReport::default();
        let given_up = GivenUp::default();
        let mut running = FuturesUnordered::new();
        let mut told_stopping = false;
        let mut broken = None;
        loop {
            if broken.is_none() && !stop.stopping() {
                for index in schedule.take_ready() {
                    let step = &plan.steps[index];
                    let operation = self.operation(plan, step);
                    let (entry, begun) = self.begin(step, &operation, &journal);
                    let worker = step::Worker {
                        step,
                        begun,
                        operation,
                        acting: acting::Acting {
                            step: index,
                            entry,
                            run: self.run.clone(),
                            lock: self.lock.clone(),
                            journal: &journal,
                            stop: stop.clone(),
                            given_up: given_up.clone(),
                            writes: Default::default(),
                            added: Default::default(),
                        },
                        document: step::document_of(&self.state.document, &step.address),
                    };
                    running.push(worker.work());
                }
            }
            // What other stacks of the run have taken is waited for, even while nothing of this one runs.
            let held_back = broken.is_none() && !stop.stopping() && schedule.is_held_back();
            let finished = tokio::select! {
                biased;
                () = stop.called(2) => break,
                () = stop.called(1), if !told_stopping => {
                    told_stopping = true;
                    self.run.events.emit(Event::Stopping { running: schedule.running().len() });
                    continue;
                }
                _ = freed.changed(), if held_back => {
                    schedule.try_again();
                    continue;
                }
                finished = running.next(), if !(held_back && running.is_empty()) => finished,
            };
            match finished {
                Some(Ok(finished)) => self.finish(plan, &mut schedule, &mut report, &given_up, finished),
                // The store is gone: nothing new, but requests that are under way end before the lock does.
                Some(Err(error)) => broken = broken.or(Some(error)),
                None => break,
            }
        }
        report.interrupted = stop.stopping();
        report.left += schedule.left();
        let running = schedule.running().into_iter().map(|index| plan.steps[index].address.clone());
        report.unfinished.extend(running);
        broken.map_or(Ok(report), Err)
    }

    /// Writes down what a step is about to do. Steps that are ready together are in one write; each waits for it before it starts.
    fn begin(
        &mut self,
        step: &Step,
        operation: &Operation,
        journal: &JournalWriter,
    ) -> (OpenEntry, Option<Batch>) {
        let becomes = |becomes: &StateResource| {
            Box::new(StateResource { spec: stored_spec(&operation.spec), ..becomes.clone() })
        };
        let becomes = step.becomes.as_ref().map(becomes);
        let entry = OpenEntry {
            identity: entry_identity(&step.address, &step.spec),
            ..self.entry(operation, becomes)
        };
        let batch = step.action.is_remote().then(|| {
            self.state.open.push(entry.clone());
            journal.enqueue(JournalRecord::Begin(entry.clone()))
        });
        (entry, batch)
    }

    /// The entry of an operation, under the next number.
    fn entry(&mut self, operation: &Operation, becomes: Option<Box<StateResource>>) -> OpenEntry {
        self.state.last_id += 1;
        self.state.unfolded = true;
        OpenEntry {
            id: self.state.last_id,
            action: operation.action,
            address: operation.address.clone(),
            target: operation.target.clone(),
            identity: entry_identity(&operation.address, &operation.spec),
            spec_digest: step::spec_digest(&operation.spec),
            becomes,
            begun: self.run.clock.now(),
            tasks: Vec::new(),
            to: None,
        }
    }

    fn finish(
        &mut self,
        plan: &Plan,
        schedule: &mut Schedule,
        report: &mut ApplyReport,
        given_up: &GivenUp,
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
            Some(error) if finished.given_up => {
                // What needs it is left for the next run, like everything else that was not begun.
                report.left += schedule.failed(index).len();
                match error.nothing_done {
                    true => report.left += 1,
                    false => report.unfinished.push(address.clone()),
                }
                let waited = error.message;
                self.run.events.emit(Event::StepStopped { step: index, address, action, waited });
            }
            Some(error) => {
                self.run.events.emit(Event::StepFailed {
                    step: index,
                    address: address.clone(),
                    action,
                    error: error.clone(),
                });
                given_up.insert(address.clone());
                for skipped in schedule.failed(index) {
                    let step = &plan.steps[skipped];
                    let skipped_address = step.address.clone();
                    given_up.insert(skipped_address.clone());
                    report.skipped.push(skipped_address.clone());
                    self.run.events.emit(Event::StepSkipped {
                        step: skipped,
                        address: skipped_address,
                        because: address.clone(),
                    });
                }
                report.failed.push(StepFailure { address, action, error, origin: step.origin.clone() });
            }
        }
    }

    /// What the provider is asked to do, with the outputs of what is applied by now.
    fn operation(&self, plan: &Plan, step: &Step) -> Operation {
        let document = &self.state.document;
        let output =
            |address: &Address, name: &str| document.resources.get(address)?.facts.get(name).cloned();
        let filled = |value: Value| value.with_inputs(&output);
        let spec = step.spec.clone().into_iter().map(|(name, value)| (name, filled(value))).collect();
        let mut operation = step.operation(step.action.action(), spec, &plan.lineage);
        for change in &mut operation.changes {
            change.after = change.after.take().map(filled);
        }
        operation
    }
}

/// The identity, and where recovery looks for tasks.
fn entry_identity(address: &Address, spec: &strata_resource::Spec) -> strata_resource::Spec {
    let table = address.kind().table();
    let mut identity = table.identity_of(spec);
    for field in table.journal_fields {
        if let Some(value) = spec.get(*field) {
            identity.insert((*field).to_owned(), value.stored());
        }
    }
    identity
}

/// A step's effect on the state; none while nothing certain can be said and the entry stays open.
pub(crate) type StepEffect = Option<Effect>;
