//! A plan of a part of a stack: what was asked for, what that depends on, and whatever the whole plan would do before it.
//!
//! A selected plan is a piece of the whole one. All is decided first, as what one object becomes depends on others; then the steps that were
//! asked for are kept, with every step that they come after. So no order is turned around: what is made from something comes after it, what is
//! used goes after its users, and the members of a group keep their places in its rollout.

use std::collections::BTreeSet;

use strata_resource::{Address, Rollout};

use super::{PlanRequest, Planner, order};
use crate::plan::{Problem, ProblemKind, Step};

impl PlanRequest<'_> {
    /// What was asked for with what it depends on; none if that is everything.
    pub(super) fn selection(&self) -> Option<BTreeSet<Address>> {
        let mut about = self.selected?.clone();
        self.add_dependencies(&mut about);
        Some(about)
    }

    /// What the source says that these depend on, and all parts of a member of a group: they mean nothing without each other.
    fn add_dependencies(&self, about: &mut BTreeSet<Address>) {
        let known = || {
            let wanted = self.graph.iter().map(|resource| &resource.address);
            wanted.chain(self.state.resources.keys())
        };
        let is_group = known().any(|address| address.kind().table().is_gate());
        let mut next: Vec<Address> = about.iter().cloned().collect();
        while let Some(address) = next.pop() {
            let needed = self.graph.get(&address).map(|resource| resource.depends_on.clone());
            let parts = known().filter(|other| {
                is_group && is_member(&address) && is_member(other) && other.name() == address.name()
            });
            let more: Vec<Address> = needed.into_iter().flatten().chain(parts.cloned()).collect();
            next.extend(more.into_iter().filter(|address| about.insert(address.clone())));
        }
    }

    /// Adds what the steps of these come after in the whole plan.
    pub(super) fn add_earlier_steps(&self, about: &mut BTreeSet<Address>, ordered: &[Step]) {
        loop {
            let before = about.len();
            // Each step comes after what it needs, so one way back finds all.
            for step in ordered.iter().rev().filter(|step| step.action.is_remote()) {
                if about.contains(&step.address) {
                    about.extend(step.needs.iter().map(|need| ordered[*need].address.clone()));
                }
            }
            self.add_dependencies(about);
            if about.len() == before {
                return;
            }
        }
    }

    /// The members of a group that works are taken down together, or leave the source one by one: a destroy of a few of them would go by
    /// rules that hold where nothing of the group stays.
    pub(super) fn refuse_part_of_group(&self, about: &BTreeSet<Address>) -> Option<Problem> {
        let gate = self.state.resources.keys().find(|address| address.kind().table().is_gate())?;
        let is_part = |address: &&Address| is_member(address) || address.kind().table().is_gate();
        let mut parts = self.state.resources.keys().filter(is_part);
        let first = parts.clone().find(|address| about.contains(*address))?;
        if self.graph.get(gate).is_some() || parts.all(|address| about.contains(address)) {
            return None;
        }
        let stack = gate.stack();
        Some(Problem {
            kind: ProblemKind::Refused,
            address: first.clone(),
            message: "it is a part of a cluster that runs, and the rest of it would stay".to_owned(),
            hint: format!(
                "`strata destroy {stack}` takes the cluster down; a node leaves it when it leaves the source"
            ),
            origin: None,
        })
    }
}

impl Planner<'_> {
    /// What the plan is not about is left as it is. Gives what would be done to that.
    pub(super) fn keep_to_selection(&mut self, about: &mut BTreeSet<Address>) -> BTreeSet<Address> {
        let request = self.request;
        if !about.is_empty() {
            let ordered = order::ordered(self.steps.clone(), request.graph, request.state);
            request.add_earlier_steps(about, &ordered);
            self.problems.extend(request.refuse_part_of_group(about));
        }
        let steps = self.steps.iter().filter(|step| step.action.is_remote()).map(|step| &step.address);
        let problems = self.problems.iter().chain(&self.unknown).map(|problem| &problem.address);
        let left_out = steps.chain(problems).filter(|address| !about.contains(*address)).cloned().collect();
        self.steps.retain(|step| about.contains(&step.address));
        self.problems.retain(|problem| about.contains(&problem.address));
        self.unknown.retain(|problem| about.contains(&problem.address));
        self.unseen.retain(|address, _| about.contains(address));
        // A stack that was opened for its moves alone leaves all of it to others, and nobody asked.
        if about.is_empty() { BTreeSet::new() } else { left_out }
    }
}

fn is_member(address: &Address) -> bool {
    matches!(address.kind().table().rollout, Rollout::Member { .. })
}
