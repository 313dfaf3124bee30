//! What cannot be seen: left as it is, together with all that hangs on it. The rest is planned.

use std::collections::BTreeSet;

use strata_resource::{Address, Resource};

use super::Planner;
use crate::Unseen;
use crate::plan::{Problem, ProblemKind, Step, StepAction};

impl Planner<'_> {
    pub(super) fn unknown(&mut self, address: &Address, unseen: &Unseen, origin: Option<String>) {
        self.unknown.push(Problem {
            kind: ProblemKind::Unknown,
            address: address.clone(),
            message: unseen.what.clone(),
            hint: unseen.hint.clone(),
            origin,
        });
    }

    /// Something that is left for a later plan because of something else that cannot be seen.
    pub(super) fn left_for(&mut self, address: &Address, message: &str, origin: Option<String>) {
        let unseen = Unseen::new(message, "plan again when that can be seen");
        self.unknown(address, &unseen, origin);
    }

    fn is_unknown(&self, address: &Address) -> bool {
        self.unknown.iter().any(|problem| problem.address == *address)
    }

    /// What a resource needs and nobody can see, as it is told.
    pub(super) fn unknown_below(&self, resource: &Resource) -> Option<String> {
        let needed = resource.depends_on.iter().find(|needed| self.is_unknown(needed))?;
        Some(format!("`{needed}`, which cannot be seen"))
    }

    /// Nothing is made from what cannot be seen, and nothing is taken away from under it.
    pub(super) fn leave_what_hangs_on_the_unknown(&mut self) {
        while let Some((address, message, origin)) = self.steps.iter().find_map(|step| self.hangs(step)) {
            self.steps.retain(|step| step.address != address);
            self.left_for(&address, &message, origin);
        }
    }

    fn hangs(&self, step: &Step) -> Option<(Address, String, Option<String>)> {
        let (address, origin) = (step.address.clone(), step.origin.clone());
        if step.action == StepAction::Create
            && let Some(resource) = self.request.graph.get(&address)
            && let Some(below) = self.unknown_below(resource)
        {
            return Some((address, format!("it needs {below}"), origin));
        }
        if !step.removes() {
            return None;
        }
        let unknown: BTreeSet<&Address> = self.unknown.iter().map(|problem| &problem.address).collect();
        let mut known = self.request.state.resources.iter();
        let (above, _) = known.find(|(above, record)| {
            **above != address && unknown.contains(above) && record.depends_on.contains(&address)
        })?;
        Some((address, format!("it stays: `{above}` needs it and cannot be seen"), origin))
    }
}
