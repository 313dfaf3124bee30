//! What cannot be seen: left as it is, together with all that hangs on it. The rest is planned.

use std::collections::BTreeSet;

use strata_resource::{Address, Resource};

use super::Planner;
use crate::plan::{Problem, ProblemKind, Step, StepAction};
use crate::{Sighting, Unseen};

/// Why nothing can be said of an object, and what changes that: it is hidden, or somebody is at it.
pub(crate) fn out_of_sight(address: &Address, sighting: &Sighting) -> Option<Unseen> {
    match sighting {
        Sighting::Unknown(unseen) => Some(unseen.clone()),
        Sighting::Busy(what) => {
            let hint = address.kind().table().busy_hint(address);
            Some(Unseen::new(what, format!("{hint}; then apply again")))
        }
        _ => None,
    }
}

impl Planner<'_> {
    /// Told with what an interrupted run left there, where it left something. A task ends by itself and its object is left until then;
    /// what others staged waits for them, and for a plan that is made after it.
    pub(super) fn out_of_sight(&mut self, address: &Address, sighting: &Sighting, origin: Option<String>) {
        let deferred = self.deferred_at(address);
        let waits_for_others = matches!(sighting, Sighting::Busy(_)) && address.kind().table().staged;
        let refused = waits_for_others && deferred.is_none();
        let unseen = deferred.or_else(|| out_of_sight(address, sighting)).unwrap_or_default();
        if refused {
            let (kind, Unseen { what: message, hint }) = (ProblemKind::Busy, unseen);
            self.problems.push(Problem { kind, address: address.clone(), message, hint, origin });
        } else {
            self.unknown(address, &unseen, origin);
        }
    }

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
