//! Everything that a target has: what each guest and object is called, and which of them are managed already.

use std::collections::{BTreeMap, BTreeSet};

use strata_adopt::{GroupBy, guest_key};
use strata_blueprint::kinds;
use strata_proxmox::LiveGuest;
use strata_resource::{Address, Value};
use strata_session::{SessionError, Workspace};
use strata_source::EffectiveStack;

use super::proposal::{Candidate, Drawn, LeftOut, Live, Proposal};
use super::refusals::{known_as, known_guests};
use super::{no_target, objects, only_target, stack_of};
use crate::AllProviders;
use crate::orphans::States;

/// The stack that templates go to.
const TEMPLATES: &str = "templates";

impl AllProviders {
    /// What adopting everything of a target would write. What is recorded and carries no ownership mark yet is proposed
    /// again where `marks` are asked for: the run that recorded it may have been killed.
    pub async fn propose_all(
        &self,
        workspace: &Workspace,
        target: Option<&str>,
        by: GroupBy,
        marks: bool,
    ) -> Result<Proposal, SessionError> {
        if let Some(environment) = workspace.environment() {
            let message =
                format!("what is adopted goes into files, not into the overlays of `{environment}`");
            return Err(SessionError::usage(message).hint("leave `-e` out"));
        }
        let target = match target {
            Some(target) => target.to_owned(),
            None => only_target(workspace)?,
        };
        workspace.connect_everything().await?;
        let states = States::read(workspace).await?;
        let providers = self.proxmox();
        let provider = providers.get(&target).ok_or_else(|| no_target(&target))?;
        let (mut left_out, mut managed, mut guests) = (Vec::new(), 0, Vec::new());
        for guest in provider.live_guests(None).await? {
            match guest {
                Ok(guest)
                    if known_as(&states, guest.vmid, &target).is_some()
                        && (guest.mark.is_some() || !marks) =>
                {
                    managed += 1;
                }
                Ok(guest) => guests.push(guest),
                Err((vmid, error)) => left_out.push(LeftOut {
                    vmid: Some(vmid),
                    described: format!("guest {vmid}"),
                    address: None,
                    error: error.into(),
                }),
            }
        }
        let mut places = Places::new(workspace, &target, by)?;
        // What has a place already keeps it, whatever it is called.
        let (mut candidates, mut others) = (Vec::new(), Vec::new());
        for guest in guests {
            let known = known_as(&states, guest.vmid, &target).or_else(|| places.source.get(&guest.vmid));
            match known.cloned() {
                Some(address) => candidates.push(guest_as(address, &target, guest)),
                None => others.push(guest),
            }
        }
        places.taken.extend(candidates.iter().map(|one| one.address.clone()));
        for guest in others {
            match places.of(&guest) {
                Ok(address) => candidates.push(guest_as(address, &target, guest)),
                Err(error) => {
                    let LiveGuest { vmid, described, .. } = guest;
                    left_out.push(LeftOut { vmid: Some(vmid), described, address: None, error });
                }
            }
        }
        candidates.sort_by_key(|one| one.live.vmid());
        let mut guests = known_guests(&states, &target);
        guests.extend(places.source);
        guests.extend(candidates.iter().filter_map(|one| Some((one.live.vmid()?, one.address.clone()))));
        let objects = objects::all(workspace, &states, &target, provider, marks, &guests).await?;
        candidates.extend(objects.candidates);
        left_out.extend(objects.left_out);
        let proposal = self.fitting(workspace, &states, &candidates, left_out).await?;
        Ok(Proposal { managed: managed + objects.managed, remarks: objects.remarks, ..proposal })
    }
}

fn guest_as(address: Address, target: &str, guest: LiveGuest) -> Candidate {
    Candidate { address, target: target.to_owned(), live: Live::Guest(guest) }
}

/// Addresses for guests that have none.
struct Places<'w> {
    workspace: &'w Workspace,
    target: &'w str,
    by: GroupBy,
    /// Guests that the source has on this target, by VMID.
    source: BTreeMap<u32, Address>,
    taken: BTreeSet<Address>,
}

impl<'w> Places<'w> {
    fn new(workspace: &'w Workspace, target: &'w str, by: GroupBy) -> Result<Self, SessionError> {
        let (mut drawn, mut source) = (Drawn::default(), BTreeMap::new());
        let mut taken = BTreeSet::new();
        for stack in workspace.repository().effective().filter(|stack| stack.is_default_environment) {
            let here = workspace.repository().target(stack).is_some_and(|(name, _)| name == target);
            if here && (stack.machines().is_some() || stack.cluster().is_some()) {
                let known = drawn.of(workspace, stack)?;
                let vmid = |(address, vmid): (&Address, &String)| Some((vmid.parse().ok()?, address.clone()));
                source.extend(known.iter().filter_map(vmid));
                taken.extend(known.keys().cloned());
            }
        }
        Ok(Self { workspace, target, by, source, taken })
    }

    /// The lowest VMID of a name gets it; the next ones have theirs behind it.
    fn of(&mut self, guest: &LiveGuest) -> Result<Address, SessionError> {
        let text = |field: &str| guest.spec.get(field).and_then(Value::as_text);
        let tags = guest.spec.get("tags").and_then(Value::as_list).unwrap_or_default();
        let tags: Vec<String> = tags.iter().filter_map(|tag| tag.as_text().map(str::to_owned)).collect();
        let stack = match guest.kind {
            // Guests of several stacks may be linked to them.
            kinds::TEMPLATE => TEMPLATES.to_owned(),
            _ => self.by.stack(text("pool"), &tags, &guest.node),
        };
        let stack =
            [stack.clone(), format!("{}-{stack}", self.target)].into_iter().find(|name| self.is_free(name));
        let stack = stack.ok_or_else(|| {
            SessionError::refused(format!("{} has no stack that it could go to", guest.described))
                .hint("name its address: `strata adopt ADDRESS=VMID`")
        })?;
        let address = |key: &str| Address::new(None, &stack, guest.kind, key);
        let key = guest_key(guest.name.as_deref(), guest.vmid, |key| self.taken.contains(&address(key)));
        let address = address(&key);
        self.taken.insert(address.clone());
        Ok(address)
    }

    /// No stack has the name, or one of machines on this target.
    fn is_free(&self, name: &str) -> bool {
        let mut others = self.workspace.repository().stacks().iter();
        match stack_of(self.workspace, name) {
            Some(stack) => self.is_ours(stack),
            None => !others.any(|other| other.name.value == name),
        }
    }

    fn is_ours(&self, stack: &EffectiveStack) -> bool {
        let target = self.workspace.repository().target(stack).map(|(name, _)| name);
        stack.machines().is_some() && stack.is_default_environment && target == Some(self.target)
    }
}
