//! What does not answer: made, left for later, removed without its help, or a problem.

use std::collections::BTreeSet;

use strata_resource::{Address, ChangeEffect, FieldPath, Resource, Rollout, Value, fill};
use strata_state::StateResource;

use super::{PlanRequest, Planner};
use crate::plan::{Problem, ProblemKind, StepAction};
use crate::{Evidence, Observed, Sighting};

/// Stands for the digest of what could not be looked at.
pub(super) const UNREACHABLE: &str = "unreachable";

/// What objects depend on that were wiped whole, by somebody who said so, and do not answer.
pub(super) fn wiped<'a>(request: &PlanRequest<'a>) -> BTreeSet<&'a Address> {
    let is_wiped = |(address, recorded): &(&Address, &StateResource)| {
        let fact = address.kind().table().wiped_fact.and_then(|fact| recorded.facts.get(fact));
        fact.and_then(Value::as_bool) == Some(true)
            && matches!(request.live.current.get(address), Some(Sighting::Unreachable(_)))
    };
    request.state.resources.iter().filter(is_wiped).flat_map(|(_, recorded)| &recorded.depends_on).collect()
}

impl Planner<'_> {
    /// Nobody has made it yet, or what it runs on is recreated: then it is unreachable as it should be.
    pub(super) fn unreachable(&mut self, resource: &Resource, recorded: Option<&StateResource>, what: &str) {
        let remade = self.needs_remade(resource) || self.runs_elsewhere(resource, recorded);
        if let Some(lost) = resource.kind().table().lost.filter(|_| recorded.is_some() && remade) {
            return self.lost(resource, what, lost);
        }
        if recorded.is_none() || remade {
            return self.create(resource, recorded);
        }
        if let Some(below) = self.unknown_below(resource) {
            let message = format!("{what}; it needs {below}");
            return self.left_for(&resource.address, &message, resource.origin.clone());
        }
        if self.is_changed_below(resource) || self.is_orphaned(resource) {
            self.unseen.insert(resource.address.clone(), what.to_owned());
            return;
        }
        self.problems.push(Problem {
            kind: ProblemKind::Unreachable,
            address: resource.address.clone(),
            message: what.to_owned(),
            hint: "bring it back, or remove it from the source; nothing is changed while it cannot be seen"
                .to_owned(),
            origin: resource.origin.clone(),
        });
    }

    /// What it runs on is another object than the one that the state knows: an interrupted run recreated that.
    fn runs_elsewhere(&self, resource: &Resource, recorded: Option<&StateResource>) -> bool {
        let Some((recorded, drawn)) = recorded.zip(self.request.graph.get(&resource.address)) else {
            return false;
        };
        let rules = resource.kind().rules();
        let inputs =
            drawn.spec.iter().filter(|(_, value)| value.unfilled().is_some()).map(|(field, _)| field);
        let replaces =
            |field: &&String| rules.rule(&FieldPath::root().child(field)).effect == ChangeEffect::Replace;
        inputs.filter(replaces).any(|field| match (resource.spec.get(field), recorded.spec.get(field)) {
            (Some(now), Some(before)) => now.unfilled().is_none() && now != before,
            _ => false,
        })
    }

    /// Without the gate of its group it says nothing, whatever it is like: a worker gets its certificate from control planes. That the gate
    /// is away is told there.
    fn is_orphaned(&self, resource: &Resource) -> bool {
        let Rollout::Member { follows, .. } = resource.kind().table().rollout else { return false };
        let gate = self.request.live.current.iter().find(|(address, _)| address.kind().table().is_gate());
        follows(&resource.spec) && matches!(gate, Some((_, Sighting::Unreachable(_) | Sighting::Absent)))
    }

    /// It can be made only once, what it was made on is gone, and the others cannot answer for it.
    fn lost(&mut self, resource: &Resource, what: &str, (message, hint): (&str, &str)) {
        let filled = |text: &str| {
            fill(text, &|placeholder| match placeholder {
                "stack" => resource.address.stack().to_owned(),
                _ => what.to_owned(),
            })
        };
        self.problems.push(Problem {
            kind: ProblemKind::Lost,
            address: resource.address.clone(),
            message: filled(message),
            hint: filled(hint),
            origin: resource.origin.clone(),
        });
    }

    /// Whether a step of the plan changes something that it needs, directly or not.
    fn is_changed_below(&self, resource: &Resource) -> bool {
        resource.depends_on.iter().any(|to| {
            let stepped = self.steps.iter().any(|step| step.address == *to && step.action.is_remote());
            let below = || self.request.graph.get(to).is_some_and(|needed| self.is_changed_below(needed));
            stepped || self.unseen.contains_key(to) || below()
        })
    }

    pub(super) fn remove_unreachable(&mut self, address: &Address, recorded: &StateResource, what: &str) {
        let last_known = Observed {
            spec: recorded.spec.clone(),
            facts: recorded.facts.clone(),
            digest: UNREACHABLE.to_owned(),
            pending: Vec::new(),
            running: None,
            evidence: Evidence::default(),
        };
        let mut step = self.removal(address, recorded, last_known, StepAction::Delete);
        step.reasons.push(format!("{what}: it is removed without its help"));
        self.steps.push(step);
    }
}
