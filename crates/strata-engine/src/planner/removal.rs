//! What goes: resources that left the source, and former objects that a replacement left behind.

use strata_resource::{Address, Kind, Resource};
use strata_state::{DeposedObject, StateResource};

use super::{Planner, adopts};
use crate::object_key::ObjectKey;
use crate::plan::{Problem, ProblemKind, StepAction};
use crate::{Observed, Sighting};

impl Planner<'_> {
    /// Whether the source asks for the very object of a record, under this or another address.
    pub(super) fn is_claimed(&self, kind: Kind, record: &StateResource) -> bool {
        self.claimed.contains(&ObjectKey::of_record(kind, record))
    }

    pub(super) fn keep_former(&mut self, address: &Address, record: &StateResource, observed: &Observed) {
        self.former.entry(address.clone()).or_default().push(DeposedObject {
            target: record.target.clone(),
            spec: record.spec.clone(),
            facts: observed.facts.clone(),
        });
    }

    /// Former objects that an earlier run did not get to.
    pub(super) fn deposed(&mut self, address: &Address, recorded: &StateResource) {
        let sightings = self.request.live.deposed.get(address);
        for (index, object) in recorded.deposed.iter().enumerate() {
            let former = recorded.with_former(object);
            match sightings.and_then(|sightings| sightings.get(index)).unwrap_or(&Sighting::Absent) {
                _ if self.is_claimed(address.kind(), &former) => continue,
                Sighting::Absent | Sighting::Unmanaged(_) | Sighting::Unreachable(_) => continue,
                sighting @ (Sighting::Busy(_) | Sighting::Unknown(_)) => {
                    self.out_of_sight(address, sighting, None);
                }
                Sighting::Ours(observed) => {
                    let mut step = self.removal(address, &former, observed.clone(), StepAction::DeleteFormer);
                    step.reasons.push("a replacement left it behind".to_owned());
                    self.steps.push(step);
                }
            }
            self.former.entry(address.clone()).or_default().push(object.clone());
        }
    }

    /// The object that the state knows, where one with the wanted identity is there and ours too.
    pub(super) fn drop_former(&mut self, resource: &Resource, recorded: &StateResource, former: &Sighting) {
        match former {
            Sighting::Busy(_) | Sighting::Unknown(_) => {
                self.out_of_sight(&resource.address, former, resource.origin.clone());
                let (target, spec) = (recorded.target.clone(), recorded.spec.clone());
                let former = DeposedObject { target, spec, facts: recorded.facts.clone() };
                self.former.entry(resource.address.clone()).or_default().push(former);
            }
            Sighting::Ours(_) if recorded.protect || resource.protect => {
                self.protected(&resource.address, "replace", resource.origin.clone());
            }
            Sighting::Ours(observed) if !self.is_claimed(resource.kind(), recorded) => {
                let observed = observed.clone();
                self.keep_former(&resource.address, recorded, &observed);
                let mut step = self.removal(&resource.address, recorded, observed, StepAction::DeleteFormer);
                step.reasons.push("another object has taken its place".to_owned());
                self.steps.push(step);
            }
            Sighting::Ours(_) | Sighting::Absent | Sighting::Unmanaged(_) | Sighting::Unreachable(_) => {}
        }
    }

    /// What left the source.
    pub(super) fn unwanted(&mut self, address: &Address, recorded: &StateResource) {
        match self.request.live.current.get(address).unwrap_or(&Sighting::Absent) {
            Sighting::Absent => self.forget(address, recorded, "it is gone already"),
            Sighting::Unmanaged(what) => {
                let reason = format!("its place was taken: {what}");
                self.forget(address, recorded, &reason);
            }
            sighting @ (Sighting::Busy(_) | Sighting::Unknown(_)) => {
                self.out_of_sight(address, sighting, None);
            }
            Sighting::Unreachable(_) if recorded.protect => self.protected(address, "destroy", None),
            Sighting::Unreachable(what) => self.remove_unreachable(address, recorded, what),
            Sighting::Ours(_) if self.is_claimed(address.kind(), recorded) => {
                self.forget(address, recorded, "the source has the same object under another address");
            }
            Sighting::Ours(_) if address.kind().table().always_there => {
                self.forget(address, recorded, "it stays as it is: a host cannot be without it");
            }
            Sighting::Ours(_) if adopts(address.kind(), &recorded.spec) => {
                let reason = "it was there before Strata (`adopt`), and stays as it is";
                self.forget(address, recorded, reason);
            }
            Sighting::Ours(_) if recorded.protect => self.protected(address, "destroy", None),
            Sighting::Ours(_) if self.request.known_as.contains_key(address) => self.known_twice(address),
            Sighting::Ours(observed) => {
                let step = self.removal(address, recorded, observed.clone(), StepAction::Delete);
                self.steps.push(step);
            }
        }
        self.drop_gone(address, recorded);
    }

    /// One of the two states is older than a move, and nobody can say which.
    fn known_twice(&mut self, address: &Address) {
        let Some(known) = self.request.known_as.get(address) else { return };
        self.problems.push(Problem {
            kind: ProblemKind::Refused,
            address: address.clone(),
            message: format!(
                "the plan would remove it, and the state `{}` has the same object as `{}`",
                known.key, known.address
            ),
            hint: format!(
                "`strata state rm {address}` drops it here, and leaves the object to the other state"
            ),
            origin: None,
        });
    }

    fn forget(&mut self, address: &Address, recorded: &StateResource, reason: &str) {
        let mut step = self.bare_step(address, recorded, StepAction::Forget);
        step.reasons.push(reason.to_owned());
        self.steps.push(step);
    }

    /// Former objects that are gone must not outlive the record that they belong to.
    fn drop_gone(&mut self, address: &Address, recorded: &StateResource) {
        let kept = self.former.get(address).cloned().unwrap_or_default();
        if kept != recorded.deposed {
            let mut step = self.bare_step(address, recorded, StepAction::Record);
            step.reasons.push("what a replacement left behind is gone".to_owned());
            step.becomes = Some(StateResource { deposed: kept, ..recorded.clone() });
            self.steps.push(step);
        }
    }
}
