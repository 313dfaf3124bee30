//! What the source says of objects that it does not ask for: protected ones, and stacks that are gone from it.

use strata_resource::Address;

use super::Planner;
use crate::Unseen;
use crate::plan::{ProblemKind, Step, StepAction};

impl Planner<'_> {
    /// A destroy wants nothing of the source, but what the source protects stays protected.
    fn refuse_protected_by_source(&mut self) {
        let removes = |step: &&Step| step.action == StepAction::Delete && !step.replacement;
        let protected = self.request.protected;
        let refused: Vec<_> = self
            .steps
            .iter()
            .filter(removes)
            .filter(|step| protected.contains(&step.address))
            .map(|step| (step.address.clone(), step.origin.clone()))
            .collect();
        for (address, origin) in refused {
            self.protected(&address, "destroy", origin);
        }
    }

    /// Why everything of a stack goes that only its state knows.
    pub(super) fn explain_removed_stack(&mut self) {
        let Some(stack) = self.request.removed_stack else { return self.refuse_protected_by_source() };
        let goes = |step: &&mut Step| {
            matches!(step.action, StepAction::Delete | StepAction::DeleteFormer | StepAction::Forget)
        };
        for step in self.steps.iter_mut().filter(goes) {
            step.reasons.insert(0, format!("stack `{stack}` is not in the source any more"));
        }
        for problem in self.problems.iter_mut().filter(|problem| problem.kind == ProblemKind::Protected) {
            problem.message = format!(
                "stack `{stack}` is not in the source any more, and the plan would destroy it: {}",
                problem.message
            );
            problem.hint = "put the stack back to keep it; or put it back without the protection, apply that, then remove it again"
                .to_owned();
        }
    }

    /// What an interrupted run left open, and nobody can see what came of it: told, unless the object is told of already.
    pub(super) fn keep_deferred(&mut self) {
        for entry in self.request.open {
            if self.unknown.iter().any(|known| known.address == entry.address) {
                continue;
            }
            if let Some(unseen) = self.deferred_at(&entry.address) {
                self.unknown(&entry.address, &unseen, None);
            }
        }
    }

    /// What an interrupted run left open at an address, where nobody can see what came of it.
    pub(super) fn deferred_at(&self, address: &Address) -> Option<Unseen> {
        let open = self.request.open.iter().filter(|entry| entry.address == *address);
        let mut unseen = open.filter_map(|entry| Some((entry, self.request.deferred.get(&entry.id)?)));
        let (entry, unseen) = unseen.next()?;
        let what = format!("an interrupted run began to {} it: {}", entry.doing(), unseen.what);
        Some(Unseen::new(what, unseen.hint.clone()))
    }
}
