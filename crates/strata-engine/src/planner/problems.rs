//! What stands in the way of a plan, told with what to do about it.

use strata_resource::{Address, ChangeEffect, FieldChange, Purpose, Refusal, Resource, Value};

use super::{Planner, adopts};
use crate::plan::{Problem, ProblemKind, Step, StepAction};
use crate::{Dispute, Unmanaged};

impl Planner<'_> {
    /// Something stands where a resource is wanted. What is ours under another address was renamed, most likely.
    pub(super) fn unmanaged(&mut self, resource: &Resource, unmanaged: &Unmanaged) {
        if let Some(known) = self.request.known_as.get(&resource.address) {
            let both = self.request.graph.get(&known.address).is_some();
            self.problems.push(Problem {
                kind: ProblemKind::Unmanaged,
                address: resource.address.clone(),
                message: format!("{} is `{}` of this repository", unmanaged.what, known.address),
                hint: known.hint(&resource.address, both, self.request.file),
                origin: resource.origin.clone(),
            });
            return;
        }
        let table = resource.kind().table();
        // What somebody else claims is theirs to give away.
        let by_hand = table.adopt_command(&resource.address, &resource.spec);
        let by_hand = by_hand.filter(|_| unmanaged.why == Dispute::Unclaimed);
        let way = match by_hand {
            Some(command) => format!("`{command}` adopts it, or give the resource another identity"),
            None if table.is_adoptable() => {
                "`adopt: true` takes over what carries no ownership mark, or give it another name".to_owned()
            }
            None => "give the resource another identity, or remove the unmanaged object by hand".to_owned(),
        };
        self.problems.push(Problem {
            kind: ProblemKind::Unmanaged,
            address: resource.address.clone(),
            message: unmanaged.to_string(),
            hint: format!("Strata never touches what is not its own: {way}"),
            origin: resource.origin.clone(),
        });
    }

    pub(super) fn protected(&mut self, address: &Address, doing: &str, origin: Option<String>) {
        self.problems.push(Problem {
            kind: ProblemKind::Protected,
            address: address.clone(),
            message: format!("it is protected, and the plan would {doing} it"),
            hint: "set `protect: false`, apply that, then plan again".to_owned(),
            origin,
        });
    }

    /// What a host cannot be without, and what was there before Strata, is never deleted. Gives whether that is so.
    pub(super) fn refuse_replacement(&mut self, resource: &Resource) -> bool {
        let why = if resource.kind().table().always_there {
            "a host cannot be without it"
        } else if adopts(resource.kind(), &resource.spec) {
            "it was there before Strata (`adopt`)"
        } else {
            return false;
        };
        self.problems.push(Problem {
            kind: ProblemKind::Refused,
            address: resource.address.clone(),
            message: format!("it cannot be replaced: {why}"),
            hint: "apply without `--replace`: what differs is corrected in place".to_owned(),
            origin: resource.origin.clone(),
        });
        true
    }

    /// What is there already is taken over as it is or changed, and never replaced.
    pub(super) fn unlike(&mut self, resource: &Resource, changes: &[FieldChange]) {
        let rules = resource.kind().rules();
        let fixed = changes.iter().filter(|change| rules.rule(&change.path).effect == ChangeEffect::Replace);
        let fields: Vec<String> = fixed.map(|change| format!("`{}`", change.path)).collect();
        self.problems.push(Problem {
            kind: ProblemKind::Unmanaged,
            address: resource.address.clone(),
            message: format!(
                "it is there already, and differs in what cannot be changed: {}",
                fields.join(", ")
            ),
            hint: "write it as it is to take it over, or give it another name".to_owned(),
            origin: resource.origin.clone(),
        });
    }

    /// A guest with Proxmox' own flag cannot be removed: said before anything is begun.
    pub(super) fn refuse_protected_removals(&mut self) {
        let removes = |step: &&Step| matches!(step.action, StepAction::Delete | StepAction::DeleteFormer);
        let flagged = |step: &&Step| {
            let table = step.address.kind().table();
            let live = step.observed.as_ref();
            let flag = live.and_then(|live| table.value_for(Purpose::Protection, &live.spec));
            flag.and_then(Value::as_bool) == Some(true)
        };
        let refused = self.steps.iter().filter(removes).filter(flagged).map(|step| Problem {
            kind: ProblemKind::Protected,
            address: step.address.clone(),
            message: "Proxmox protects it from removal, and the plan would destroy it".to_owned(),
            hint: "set `protection: false`, apply that, then plan again".to_owned(),
            origin: step.origin.clone(),
        });
        self.problems.extend(refused);
    }

    /// Gives whether anything was refused.
    pub(super) fn refuse(&mut self, resource: &Resource, refusals: Vec<Refusal>) -> bool {
        let refused = !refusals.is_empty();
        self.problems.extend(refusals.into_iter().map(|refusal| Problem {
            kind: ProblemKind::Refused,
            address: resource.address.clone(),
            message: format!("`{}`: {}", refusal.path, refusal.reason),
            hint: refusal.hint.to_owned(),
            origin: resource.origin.clone(),
        }));
        refused
    }
}
