//! Taking over what somebody else built: objects without our mark, proven ours by what their builder wrote down.
//!
//! Nothing remote is changed. Each object is put into a trial of the state with its proof, the planner compares that with what is live, and
//! what turns out to be there and proven is recorded as it is. The plan that follows then rests on the record.

use std::collections::{BTreeMap, BTreeSet};

use strata_resource::{Address, FieldChange, Resource, Spec, Value, stored_spec};
use strata_state::{ReplayedState, StateDocument, StateResource};

use crate::plan::{Plan, Step, StepAction};
use crate::run::{EngineError, LockedRun, Run, StackView};

/// What proves each object ours, as the facts that its provider looks at.
pub type Proofs = BTreeMap<Address, Spec>;

/// What can be taken over.
#[derive(Debug, Clone, Default)]
pub struct Adoption {
    /// What the state is to say, of objects that it does not know yet.
    pub records: BTreeMap<Address, StateResource>,
    /// Objects that the state knows already.
    pub known: Vec<Address>,
    /// Objects that the other state names and that are not there, or are somebody else's; and why.
    pub refused: BTreeMap<Address, String>,
    /// What differs between the source and what is taken over.
    pub differences: BTreeMap<Address, Vec<FieldChange>>,
}

impl Run {
    /// Looks at what could be taken over, and writes nothing.
    pub async fn survey(
        &self,
        stack: &StackView,
        state: &StateDocument,
        proofs: &Proofs,
    ) -> Result<Adoption, EngineError> {
        let mut adoption = Adoption::default();
        let mut trial = state.clone();
        for (address, proof) in proofs {
            let Some(resource) = stack.graph.get(address) else { continue };
            if trial.resources.contains_key(address) {
                adoption.known.push(address.clone());
            } else {
                trial.resources.insert(address.clone(), on_trial(resource, proof));
            }
        }
        let replayed = ReplayedState {
            last_id: trial.folded,
            document: trial,
            open: Vec::new(),
            unfolded: false,
            uncleared: false,
        };
        let plan = self.plan_from(stack, &replayed, &BTreeMap::new(), None, &crate::Look::default()).await?;
        adoption.judge(&plan, &replayed.document, state, proofs);
        Ok(adoption)
    }
}

impl LockedRun {
    /// What can be taken over, as things are under the lock.
    pub async fn survey(&self, stack: &StackView, proofs: &Proofs) -> Result<Adoption, EngineError> {
        if let Some(entry) = self.state.open.first() {
            return Err(EngineError::Open { address: entry.address.to_string() });
        }
        self.run.survey(stack, &self.state.document, proofs).await
    }
}

impl LockedRun {
    /// The part of the plan that puts the ownership mark on these objects and changes nothing else of them.
    pub async fn plan_marks(
        &mut self,
        stack: &StackView,
        addresses: &BTreeSet<Address>,
    ) -> Result<Plan, EngineError> {
        Ok(self.plan(stack).await?.marks_of(addresses))
    }
}

impl LockedRun {
    /// The part of the plan that records these objects as they are; none if one of them is not what the source says.
    pub async fn plan_records(
        &mut self,
        stack: &StackView,
        addresses: &BTreeSet<Address>,
    ) -> Result<Option<Plan>, EngineError> {
        Ok(self.plan(stack).await?.records_of(addresses))
    }
}

/// The record of an object as if we had made it. It has no ownership mark: whether the object carries one is seen by looking.
fn on_trial(resource: &Resource, proof: &Spec) -> StateResource {
    let mut spec = stored_spec(&resource.spec);
    if let Some(mark) = resource.kind().table().mark_field() {
        spec.remove(mark);
    }
    StateResource {
        target: resource.target.clone(),
        spec,
        facts: proof.clone(),
        depends_on: resource.depends_on.clone(),
        stage: resource.stage,
        protect: resource.protect,
        partial: false,
        deposed: Vec::new(),
        made_as: None,
    }
}

/// Has a record say that its object carries the ownership mark. Where it does not yet, the next plan puts it there, also after a run
/// that was killed in between.
pub fn claim_mark(record: &mut StateResource, resource: &Resource) {
    let Some(field) = resource.kind().table().mark_field() else { return };
    if let Some(mark) = resource.spec.get(field) {
        record.spec.insert(field.to_owned(), mark.stored());
    }
}

impl Adoption {
    fn judge(&mut self, plan: &Plan, trial: &StateDocument, state: &StateDocument, proofs: &Proofs) {
        let mut judged: BTreeMap<&Address, &Step> = BTreeMap::new();
        for step in &plan.steps {
            judged.insert(&step.address, step);
        }
        // What cannot be seen, or is at work, proves nothing.
        for problem in plan.problems.iter().chain(&plan.unknown) {
            if proofs.contains_key(&problem.address) {
                self.refused.insert(problem.address.clone(), problem.message.clone());
            }
        }
        // What the planner says nothing about is as the trial has it.
        let unjudged = |address: &&Address| {
            !judged.contains_key(*address)
                && !self.refused.contains_key(*address)
                && !state.resources.contains_key(*address)
                && !plan.unseen.contains_key(*address)
        };
        for address in proofs.keys().filter(unjudged) {
            let record = trial.resources.get(address).cloned();
            self.records.extend(record.map(|record| (address.clone(), record)));
        }
        for (address, step) in judged {
            let is_new = !state.resources.contains_key(address);
            match step.action {
                StepAction::Record if is_new => {
                    self.records.extend(step.becomes.clone().map(|record| (address.clone(), record)));
                }
                StepAction::Update if is_new && proofs.contains_key(address) => self.differing(step),
                StepAction::Create if step.replacement && proofs.contains_key(address) => {
                    let reason = "the source asks for something that only a new object could be".to_owned();
                    self.refused.insert(address.clone(), reason);
                }
                StepAction::Create if proofs.contains_key(address) => {
                    self.refused.insert(address.clone(), "it is not there".to_owned());
                }
                _ => {}
            }
        }
        let refused = &self.refused;
        self.records.retain(|address, record| !refused.contains_key(address) && has_proof(address, record));
        for address in proofs.keys().filter(|address| address.kind().table().is_proven_by_facts()) {
            let unproven = !self.records.contains_key(address)
                && !self.refused.contains_key(address)
                && !state.resources.contains_key(address)
                && plan.steps.iter().any(|step| step.address == *address);
            if unproven {
                let reason = "it has neither an id nor a network device that would prove later that it is the same one";
                self.refused.insert(address.clone(), reason.to_owned());
                self.differences.remove(address);
            }
        }
    }

    /// Recorded with what is live, so that the plan shows a change of the source and not somebody's drift.
    fn differing(&mut self, step: &Step) {
        let (Some(mut record), Some(observed)) = (step.becomes.clone(), &step.observed) else { return };
        let mut changes = step.changes.clone();
        // The mark comes with the first change.
        let mark = step.address.kind().table().mark_field();
        changes.retain(|change| change.before.is_some() || mark.is_none() || change.path.first() != mark);
        for change in &step.changes {
            put(&mut record.spec, change.path.keys(), change.before.as_ref());
        }
        record.facts = observed.facts.clone();
        self.records.insert(step.address.clone(), record);
        self.differences.insert(step.address.clone(), changes);
    }
}

fn has_proof(address: &Address, record: &StateResource) -> bool {
    let table = address.kind().table();
    // A record has the mark only where the object carries it.
    let marked = table.mark_field().is_some_and(|mark| record.spec.contains_key(mark));
    let has_fact = table.proof_facts.iter().any(|fact| record.facts.contains_key(*fact));
    !table.is_proven_by_facts() || has_fact || marked
}

fn put(spec: &mut Spec, path: &[String], value: Option<&Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    if !rest.is_empty() {
        if let Some(Value::Map(inner)) = spec.get_mut(first) {
            put(inner, rest, value);
        }
        return;
    }
    match value {
        // A value that nobody could read was not applied by us either.
        Some(Value::Unknown) | None => spec.remove(first),
        Some(value) => spec.insert(first.clone(), value.stored()),
    };
}

#[cfg(test)]
mod tests;
