//! Makes the plan: from what is wanted, what the state knows and what is live to the steps between them.
//!
//! Synchronous and deterministic: the same question gets the same answer, to the byte.

mod order;

use std::collections::BTreeMap;

use strata_resource::{
    Address, ChangeEffect, FieldChange, Lineage, Resource, ResourceGraph, RestartPolicy, Value, diff_specs,
    stored_spec,
};
use strata_state::{DeposedObject, OpenEntry, StateDocument, StateResource};

use crate::plan::{Plan, Problem, ProblemKind, Step, StepAction};
use crate::{Live, Observed, Sighting};

/// All that a plan is made from.
pub struct PlanRequest<'a> {
    /// What there should be, sealed; empty for a destroy.
    pub graph: &'a ResourceGraph,
    pub state: &'a StateDocument,
    pub open: &'a [OpenEntry],
    pub lineage: &'a Lineage,
    pub live: &'a Live,
}

pub fn make_plan(request: &PlanRequest<'_>) -> Plan {
    let mut planner = Planner { request, steps: Vec::new(), problems: Vec::new(), unchanged: 0 };
    for resource in request.graph.iter() {
        planner.wanted(resource);
    }
    for (address, recorded) in &request.state.resources {
        if request.graph.get(address).is_none() {
            planner.unwanted(address, recorded);
        }
        planner.deposed(address, recorded);
    }
    let Planner { steps, problems, unchanged, .. } = planner;
    Plan {
        key: request.state.key.clone(),
        lineage: request.lineage.clone(),
        serial: request.state.serial,
        steps: order::ordered(steps, request.graph, request.state),
        problems,
        open: request.open.to_vec(),
        live: live_digests(request.live),
        unchanged,
    }
}

fn live_digests(live: &Live) -> BTreeMap<Address, Option<String>> {
    let digest = |sighting: &Sighting| match sighting {
        Sighting::Ours(observed) => Some(observed.digest.clone()),
        _ => None,
    };
    live.current.iter().map(|(address, sighting)| (address.clone(), digest(sighting))).collect()
}

struct Planner<'a> {
    request: &'a PlanRequest<'a>,
    steps: Vec<Step>,
    problems: Vec<Problem>,
    unchanged: usize,
}

impl Planner<'_> {
    fn wanted(&mut self, resource: &Resource) {
        let recorded = self.request.state.resources.get(&resource.address);
        let former = self.request.live.former.get(&resource.address);
        match self.request.live.current.get(&resource.address).unwrap_or(&Sighting::Absent) {
            Sighting::Stranger(what) => self.stranger(resource, what),
            Sighting::Busy(what) => self.busy(&resource.address, what, resource.origin.clone()),
            Sighting::Absent => match former {
                Some(former) => self.moved(resource, recorded, former),
                None => self.create(resource, recorded),
            },
            Sighting::Ours(observed) => match (former, recorded) {
                // The state knows another object under this address; the one with the wanted identity is ours by its mark.
                (Some(former), Some(recorded)) => {
                    self.drop_former(resource, recorded, former);
                    self.compare(resource, None, observed);
                }
                _ => self.compare(resource, recorded, observed),
            },
        }
    }

    fn create(&mut self, resource: &Resource, recorded: Option<&StateResource>) {
        let mut step = self.step(resource, StepAction::Create, recorded);
        if recorded.is_some() {
            step.reasons.push("it is gone: somebody else deleted it".to_owned());
        }
        self.steps.push(step);
    }

    /// The source asks for another identity than the state knows.
    fn moved(&mut self, resource: &Resource, recorded: Option<&StateResource>, former: &Sighting) {
        let (Some(recorded), Sighting::Ours(observed)) = (recorded, former) else {
            return self.create(resource, None);
        };
        if recorded.protect {
            return self.protected(&resource.address, "replace", resource.origin.clone());
        }
        let changes =
            diff_specs(resource.kind().rules(), &resource.spec, Some(&recorded.spec), &observed.spec).changes;
        self.replace(resource, recorded, observed, changes);
    }

    fn drop_former(&mut self, resource: &Resource, recorded: &StateResource, former: &Sighting) {
        let Sighting::Ours(observed) = former else { return };
        if recorded.protect {
            return self.protected(&resource.address, "replace", resource.origin.clone());
        }
        let mut step = self.removal(&resource.address, recorded, observed.clone(), StepAction::DeleteFormer);
        step.reasons.push("another object has taken its place".to_owned());
        self.steps.push(step);
    }

    fn compare(&mut self, resource: &Resource, recorded: Option<&StateResource>, observed: &Observed) {
        let rules = resource.kind().rules();
        let applied = recorded.filter(|recorded| !recorded.partial).map(|recorded| &recorded.spec);
        let diff = diff_specs(rules, &resource.spec, applied, &observed.spec);
        for refusal in diff.refusals {
            self.problems.push(Problem {
                kind: ProblemKind::Refused,
                address: resource.address.clone(),
                message: format!("`{}`: {}", refusal.path, refusal.reason),
                hint: "set it back in the source, or make a new disk and move the data".to_owned(),
                origin: resource.origin.clone(),
            });
        }
        let effect = |wanted: ChangeEffect| {
            diff.changes.iter().any(|change| rules.rule(&change.path).effect == wanted)
        };
        let recreate = resource.on_change == RestartPolicy::Recreate
            && diff.changes.iter().any(is_cloud_init);
        if effect(ChangeEffect::Replace) || recreate {
            if resource.protect || recorded.is_some_and(|recorded| recorded.protect) {
                return self.protected(&resource.address, "replace", resource.origin.clone());
            }
            let recorded = recorded.cloned().unwrap_or_else(|| becomes(resource, None));
            return self.replace(resource, &recorded, observed, diff.changes);
        }
        let stays_running =
            runs(&resource.spec.get("power").cloned().or(observed.spec.get("power").cloned()))
                && runs(&observed.spec.get("power").cloned());
        let inactive = effect(ChangeEffect::Restart) || !observed.pending.is_empty();
        let restart = stays_running && inactive && resource.on_change != RestartPolicy::Ignore;
        if diff.changes.is_empty() && !restart {
            return self.unchanged(resource, recorded, observed);
        }
        let mut step = self.step(resource, StepAction::Update, recorded);
        step.stays_pending = stays_running && inactive && !restart;
        step.restart = restart;
        if diff.changes.is_empty() && restart {
            let pending = observed.pending.join(", ");
            step.reasons.push(format!("it waits for a restart to take up: {pending}"));
        }
        if recorded.is_none() {
            step.reasons.push("it is there and ours by its mark, but not in the state".to_owned());
        } else if recorded.is_some_and(|recorded| recorded.partial) {
            step.reasons.push("an interrupted run left it unfinished".to_owned());
        }
        step.changes = diff.changes;
        step.observed = Some(observed.clone());
        self.steps.push(step);
    }

    fn unchanged(&mut self, resource: &Resource, recorded: Option<&StateResource>, observed: &Observed) {
        let mut becomes = becomes(resource, recorded);
        becomes.facts = observed.facts.clone();
        let known = recorded.is_some_and(|recorded| same_record(recorded, &becomes));
        if known {
            self.unchanged += 1;
            return;
        }
        let mut step = self.step(resource, StepAction::Record, recorded);
        step.observed = Some(observed.clone());
        step.becomes = Some(becomes);
        self.steps.push(step);
    }

    fn replace(
        &mut self,
        resource: &Resource,
        recorded: &StateResource,
        observed: &Observed,
        changes: Vec<FieldChange>,
    ) {
        let rules = resource.kind().rules();
        let reasons: Vec<String> = changes
            .iter()
            .map(|change| rules.rule(&change.path))
            .filter(|rule| rule.effect == ChangeEffect::Replace && !rule.reason.is_empty())
            .map(|rule| rule.reason.to_owned())
            .collect();
        let mut create = self.step(resource, StepAction::Create, None);
        create.replacement = true;
        create.reasons = reasons;
        create.changes = changes;
        let later = resource.kind().creates_before_delete();
        let action = if later { StepAction::DeleteFormer } else { StepAction::Delete };
        let mut delete = self.removal(&resource.address, recorded, observed.clone(), action);
        delete.replacement = true;
        if later {
            // Until it is deleted the state knows both objects.
            let former = DeposedObject { spec: recorded.spec.clone(), facts: observed.facts.clone() };
            if let Some(becomes) = &mut create.becomes {
                becomes.deposed = recorded.deposed.clone();
                becomes.deposed.push(former);
            }
        }
        self.steps.push(delete);
        self.steps.push(create);
    }

    fn unwanted(&mut self, address: &Address, recorded: &StateResource) {
        match self.request.live.current.get(address).unwrap_or(&Sighting::Absent) {
            Sighting::Absent => self.forget(address, recorded, "it is gone already"),
            Sighting::Stranger(what) => {
                self.forget(
                    address,
                    recorded,
                    &format!("its place was taken by something that is not ours: {what}"),
                );
            }
            Sighting::Busy(what) => self.busy(address, what, None),
            Sighting::Ours(_) if recorded.protect => self.protected(address, "destroy", None),
            Sighting::Ours(observed) => {
                let step = self.removal(address, recorded, observed.clone(), StepAction::Delete);
                self.steps.push(step);
            }
        }
    }

    fn forget(&mut self, address: &Address, recorded: &StateResource, reason: &str) {
        let mut step = self.bare_step(address, recorded, StepAction::Forget);
        step.reasons.push(reason.to_owned());
        self.steps.push(step);
    }

    /// Former objects that an earlier run did not get to.
    fn deposed(&mut self, address: &Address, recorded: &StateResource) {
        let sightings = self.request.live.deposed.get(address);
        for (index, deposed) in recorded.deposed.iter().enumerate() {
            let sighting = sightings.and_then(|sightings| sightings.get(index)).unwrap_or(&Sighting::Absent);
            let former = StateResource {
                spec: deposed.spec.clone(),
                facts: deposed.facts.clone(),
                deposed: Vec::new(),
                ..recorded.clone()
            };
            let mut step = match sighting {
                Sighting::Ours(observed) => {
                    self.removal(address, &former, observed.clone(), StepAction::DeleteFormer)
                }
                _ => self.bare_step(address, &former, StepAction::DeleteFormer),
            };
            if step.observed.is_none() {
                step.action = StepAction::Record;
                let mut kept = recorded.clone();
                kept.deposed.remove(index);
                step.becomes = Some(kept);
            }
            step.reasons.push("a replacement left it behind".to_owned());
            self.steps.push(step);
        }
    }

    fn step(&self, resource: &Resource, action: StepAction, recorded: Option<&StateResource>) -> Step {
        Step {
            address: resource.address.clone(),
            action,
            target: resource.target.clone(),
            stage: resource.stage,
            replacement: false,
            changes: Vec::new(),
            restart: false,
            stays_pending: false,
            reasons: Vec::new(),
            needs: Vec::new(),
            limits: resource.limits.clone(),
            spec: resource.spec.clone(),
            recorded: recorded.cloned(),
            observed: None,
            origin: resource.origin.clone(),
            becomes: Some(becomes(resource, recorded)),
            on_change: resource.on_change,
        }
    }

    fn bare_step(&self, address: &Address, recorded: &StateResource, action: StepAction) -> Step {
        Step {
            address: address.clone(),
            action,
            target: recorded.target.clone(),
            stage: recorded.stage,
            replacement: false,
            changes: Vec::new(),
            restart: false,
            stays_pending: false,
            reasons: Vec::new(),
            needs: Vec::new(),
            limits: Vec::new(),
            spec: recorded.spec.clone(),
            recorded: Some(recorded.clone()),
            observed: None,
            origin: None,
            becomes: None,
            on_change: RestartPolicy::default(),
        }
    }

    fn removal(
        &self,
        address: &Address,
        recorded: &StateResource,
        observed: Observed,
        action: StepAction,
    ) -> Step {
        Step { observed: Some(observed), ..self.bare_step(address, recorded, action) }
    }

    fn stranger(&mut self, resource: &Resource, what: &str) {
        self.problems.push(Problem {
            kind: ProblemKind::Stranger,
            address: resource.address.clone(),
            message: what.to_owned(),
            hint: "Strata never touches what is not its own: give the resource another identity, or remove the stranger by hand"
                .to_owned(),
            origin: resource.origin.clone(),
        });
    }

    fn busy(&mut self, address: &Address, what: &str, origin: Option<String>) {
        self.problems.push(Problem {
            kind: ProblemKind::Busy,
            address: address.clone(),
            message: what.to_owned(),
            hint: "wait until its task has ended, then plan again; `strata apply` waits for tasks of its own"
                .to_owned(),
            origin,
        });
    }

    fn protected(&mut self, address: &Address, doing: &str, origin: Option<String>) {
        self.problems.push(Problem {
            kind: ProblemKind::Protected,
            address: address.clone(),
            message: format!("it is protected, and the plan would {doing} it"),
            hint: "set `protect: false`, apply that, then plan again".to_owned(),
            origin,
        });
    }
}

/// What the state says of a resource once it is applied.
fn becomes(resource: &Resource, recorded: Option<&StateResource>) -> StateResource {
    StateResource {
        target: resource.target.clone(),
        spec: stored_spec(&resource.spec),
        facts: recorded.map(|recorded| recorded.facts.clone()).unwrap_or_default(),
        depends_on: resource.depends_on.clone(),
        stage: resource.stage,
        protect: resource.protect,
        partial: false,
        deposed: recorded.map(|recorded| recorded.deposed.clone()).unwrap_or_default(),
    }
}

/// Facts such as digests move without anybody's doing; they are no reason to write the state.
fn same_record(one: &StateResource, other: &StateResource) -> bool {
    let proof =
        |record: &StateResource| ["uuid", "hwaddr", "size"].map(|fact| record.facts.get(fact).cloned());
    one.target == other.target
        && one.spec == other.spec
        && one.depends_on == other.depends_on
        && one.stage == other.stage
        && one.protect == other.protect
        && one.partial == other.partial
        && proof(one) == proof(other)
}

fn runs(power: &Option<Value>) -> bool {
    power.as_ref().and_then(Value::as_text) == Some("running")
}

/// Data that a guest reads only at its first boot.
fn is_cloud_init(change: &FieldChange) -> bool {
    change.path.starts_with(&["cloudinit"]) || change.path.starts_with(&["cdroms"])
}
