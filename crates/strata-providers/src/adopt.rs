//! Guests and objects of a datacenter that were made by hand, brought into the repository: their YAML, their records and their ownership marks.
//!
//! [`AllProviders::propose`] looks and writes nothing: it reads what is there, edits the files of the stacks in memory, and draws and plans
//! the repository as it would be. What is there is proposed only if the plan of its YAML finds nothing to change. [`AllProviders::adopt`] then
//! records what was proposed, under the lock, once the files are written.

mod all;
mod guests;
mod objects;
mod parts;
mod proposal;
mod refusals;
mod trial;
mod wish;

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{ApplyOptions, Proofs};
use strata_resource::Address;
use strata_session::{Purpose, SessionError, StackSession, StateAccess, Workspace};

use crate::AllProviders;
use crate::orphans::States;
pub(crate) use guests::stack_defaults;
pub(crate) use proposal::stack_of;
use proposal::{Candidate, Draft, Drawn, Live};
pub use proposal::{FileEdit, LeftOut, Proposal, Proposed};
pub use wish::Wish;

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Adopted {
    pub addresses: BTreeSet<Address>,
    /// How many of them carry their ownership mark now.
    pub marked: usize,
    /// What `strata plan` would still do about them.
    pub left: usize,
}

impl Adopted {
    /// `2 guests, 1 object`.
    pub fn counted(&self, proposal: &Proposal) -> String {
        let is_guest =
            |address: &&Address| proposal.adopted.get(address).is_some_and(|one| one.vmid.is_some());
        let guests = self.addresses.iter().filter(is_guest).count();
        let several = |count: usize, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        match (guests, self.addresses.len() - guests) {
            (guests, 0) => several(guests, "guest"),
            (0, objects) => several(objects, "object"),
            (guests, objects) => format!("{}, {}", several(guests, "guest"), several(objects, "object")),
        }
    }
}

impl AllProviders {
    /// What adopting these guests would write. What cannot be adopted is among the result, with the reason.
    pub async fn propose(&self, workspace: &Workspace, wishes: &[Wish]) -> Result<Proposal, SessionError> {
        workspace.connect_everything().await?;
        let states = States::read(workspace).await?;
        let (candidates, left_out) = self.live(workspace, wishes).await?;
        self.fitting(workspace, &states, &candidates, left_out).await
    }

    /// Leaves out whoever does not fit until what is left does.
    async fn fitting(
        &self,
        workspace: &Workspace,
        states: &States,
        candidates: &[Candidate],
        mut left_out: Vec<LeftOut>,
    ) -> Result<Proposal, SessionError> {
        let mut refused: BTreeMap<Address, SessionError> = BTreeMap::new();
        let mut drawn = Drawn::default();
        let proposal = loop {
            let mut draft = Draft::new(workspace, states, &mut drawn);
            for candidate in candidates {
                if !refused.contains_key(&candidate.address)
                    && let Err(error) = draft.add(candidate)
                {
                    refused.insert(candidate.address.clone(), error);
                }
            }
            let (proposal, mut found) = draft.finish();
            if found.is_empty() {
                found = self.try_out(workspace, &proposal).await?;
            }
            if found.is_empty() {
                break proposal;
            }
            refused.extend(found);
        };
        left_out.extend(candidates.iter().filter_map(|candidate| {
            let error = refused.remove(&candidate.address)?;
            let Candidate { address, live, .. } = candidate;
            Some(LeftOut {
                vmid: live.vmid(),
                described: live.described().to_owned(),
                address: Some(address.clone()),
                error,
            })
        }));
        left_out.sort_by_key(|one| (one.vmid.is_none(), one.vmid));
        Ok(Proposal { left_out, ..proposal })
    }

    /// What is wanted, and what of it there is not.
    async fn live(
        &self,
        workspace: &Workspace,
        wishes: &[Wish],
    ) -> Result<(Vec<Candidate>, Vec<LeftOut>), SessionError> {
        let providers = self.proxmox();
        let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
        let mut refuse = |wish: &Wish, error: SessionError| {
            let described = match wish.vmid {
                Some(vmid) => format!("guest {vmid}"),
                None => format!("`{}`", wish.address),
            };
            left_out.push(LeftOut { vmid: wish.vmid, described, address: Some(wish.address.clone()), error });
        };
        let mut by_target: BTreeMap<String, Vec<&Wish>> = BTreeMap::new();
        for wish in wishes {
            match target_of(workspace, wish) {
                Ok(target) => by_target.entry(target).or_default().push(wish),
                Err(error) => refuse(wish, error),
            }
        }
        for (target, wishes) in by_target {
            let Some(provider) = providers.get(&target) else {
                for wish in wishes {
                    refuse(wish, no_target(&target));
                }
                continue;
            };
            let mut found = self::objects::named(provider, &wishes).await;
            let vmids: BTreeSet<u32> = wishes.iter().filter_map(|wish| wish.vmid).collect();
            let guests = match vmids.is_empty() {
                true => Vec::new(),
                false => provider.live_guests(Some(&vmids)).await?,
            };
            for guest in guests {
                let (vmid, live) = match guest {
                    Ok(guest) => (guest.vmid, Ok(guest)),
                    Err((vmid, error)) => (vmid, Err(SessionError::from(error))),
                };
                for wish in wishes.iter().filter(|wish| wish.vmid == Some(vmid)) {
                    found.insert(wish.address.clone(), live.clone().map(Live::Guest));
                }
            }
            for wish in wishes {
                match found.remove(&wish.address) {
                    Some(Ok(live)) => {
                        let (address, target) = (wish.address.clone(), target.clone());
                        candidates.push(Candidate { address, target, live });
                    }
                    Some(Err(error)) => refuse(wish, error),
                    None => refuse(wish, not_there(&target, wish)),
                }
            }
        }
        // An entry is there before parts of it are written.
        candidates.sort_by_key(|candidate| candidate.live.vmid().is_none());
        Ok((candidates, left_out))
    }

    /// Records what was proposed and puts the ownership marks on it. The files are written by now, and `workspace` was read after that.
    pub async fn adopt(
        &self,
        workspace: &Workspace,
        proposal: &Proposal,
        marks: bool,
        options: &ApplyOptions,
    ) -> Result<Adopted, SessionError> {
        let mut adopted = Adopted::default();
        let access = StateAccess::Lock("adopt");
        let sessions = workspace.open_native(&proposal.stacks(), &Purpose::LOOK, access).await?;
        let mut outcome = Ok(());
        for mut session in sessions {
            if outcome.is_ok() {
                outcome = record(&mut session, proposal, marks, options, &mut adopted).await;
            }
            outcome = outcome.and(session.release().await);
        }
        outcome.map(|()| adopted)
    }
}

fn proofs(session: &StackSession, proposal: &Proposal) -> Proofs {
    let own = proposal.adopted.iter().filter(|(address, _)| address.stack() == session.name);
    own.map(|(address, one)| (address.clone(), one.proof.clone())).collect()
}

fn not_there(target: &str, wish: &Wish) -> SessionError {
    match wish.vmid {
        Some(vmid) => SessionError::refused(format!("`{target}` has no guest with the VMID {vmid}"))
            .hint("its login may lack the right to see it: `VM.Audit` on the guest"),
        None => {
            let (kind, name) = (wish.address.kind().table().name, wish.address.name());
            SessionError::refused(format!("`{target}` has no {kind} `{name}`")).hint(
                "its login may lack the right to see it; a guest is named with its VMID: `ADDRESS=VMID`",
            )
        }
    }
}

/// The target that a wish is about.
fn target_of(workspace: &Workspace, wish: &Wish) -> Result<String, SessionError> {
    let stack = stack_of(workspace, wish.address.stack());
    let known = stack.and_then(|stack| workspace.repository().target(stack)).map(|(name, _)| name.to_owned());
    match (&wish.target, known) {
        (Some(asked), Some(known)) if *asked != known => Err(SessionError::refused(format!(
            "the stack `{}` is on the target `{known}`, not on `{asked}`",
            wish.address.stack()
        ))),
        (Some(asked), _) => Ok(asked.clone()),
        (None, Some(known)) => Ok(known),
        (None, None) => only_target(workspace),
    }
}

/// The one Proxmox target of the repository.
fn only_target(workspace: &Workspace) -> Result<String, SessionError> {
    let targets = &workspace.repository().settings.targets;
    let mut proxmox = targets.iter().filter(|(_, target)| target.proxmox.is_some());
    match (proxmox.next(), proxmox.next()) {
        (Some((name, _)), None) => Ok(name.value.clone()),
        _ => Err(SessionError::failed("which target is meant is not known").hint("name it with `--target`")),
    }
}

fn no_target(target: &str) -> SessionError {
    SessionError::failed(format!("there is no Proxmox target `{target}`"))
}

async fn record(
    session: &mut StackSession,
    proposal: &Proposal,
    marks: bool,
    options: &ApplyOptions,
    adopted: &mut Adopted,
) -> Result<(), SessionError> {
    // What a killed run left open, a mark that was under way among it.
    session.recover().await?;
    let proofs = proofs(session, proposal);
    let adoption = session.survey(&proofs).await?;
    if let Some((address, reason)) = adoption.refused.iter().next() {
        return Err(SessionError::refused(format!("`{address}` is not adopted: {reason}")));
    }
    if let Some((address, _)) = adoption.differences.iter().next() {
        let message = format!("`{address}` is not adopted: it changed meanwhile");
        return Err(SessionError::refused(message).hint("adopt it again"));
    }
    session.record(&adoption).await?;
    let addresses: BTreeSet<Address> = proofs.into_keys().collect();
    if marks {
        let report = session.mark(&addresses, options).await?;
        adopted.marked += report.done;
        if let Some(failure) = report.failed.into_iter().next() {
            return Err(SessionError::from(failure.error));
        }
        if report.interrupted {
            return Err(SessionError::new(strata_session::ErrorKind::Interrupted, "interrupted"));
        }
    }
    let plan = session.plan().await?;
    let of_them = |address: &Address| addresses.contains(address);
    adopted.left +=
        plan.steps.iter().filter(|step| step.action.is_remote() && of_them(&step.address)).count();
    adopted.left += plan.problems.iter().filter(|problem| of_them(&problem.address)).count();
    adopted.addresses.extend(addresses);
    Ok(())
}
