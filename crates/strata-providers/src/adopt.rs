//! Guests that were made by hand, brought into the repository: their YAML, their records and their ownership marks.
//!
//! [`AllProviders::propose`] looks and writes nothing: it reads the guests, edits the files of their stacks in memory, and draws and plans
//! the repository as it would be. A guest is proposed only if the plan of its YAML finds nothing to change. [`AllProviders::adopt`] then
//! records what was proposed, under the lock, once the files are written.

mod all;
mod proposal;
mod refusals;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{ApplyOptions, Proofs};
use strata_proxmox::TAKEN_OVER;
use strata_resource::{Address, Value};
use strata_session::{Purpose, SessionError, StackSession, StateAccess, Workspace};

use crate::AllProviders;
use crate::orphans::States;
use proposal::{Candidate, Draft, Drawn};
pub use proposal::{FileEdit, LeftOut, Proposal, Proposed};
pub(crate) use proposal::{stack_defaults, stack_of};

/// A guest that somebody wants to manage, and as what.
#[derive(Debug, Clone)]
pub struct Wish {
    pub address: Address,
    pub vmid: u32,
    /// Where it is; otherwise on the target of its stack.
    pub target: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Adopted {
    pub addresses: BTreeSet<Address>,
    /// How many of them carry their ownership mark now.
    pub marked: usize,
    /// What `strata plan` would still do about them.
    pub left: usize,
}

impl AllProviders {
    /// What adopting these guests would write. What cannot be adopted is among the result, with the reason.
    pub async fn propose(&self, workspace: &Workspace, wishes: &[Wish]) -> Result<Proposal, SessionError> {
        workspace.connect_everything().await?;
        let states = States::read(workspace).await?;
        let (candidates, left_out) = self.live(workspace, wishes).await?;
        self.settled(workspace, &states, &candidates, left_out).await
    }

    /// Leaves out whoever does not fit until what is left does.
    async fn settled(
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
            let Candidate { address, guest, .. } = candidate;
            Some(LeftOut {
                vmid: guest.vmid,
                described: guest.described.clone(),
                address: Some(address.clone()),
                error,
            })
        }));
        left_out.sort_by_key(|one| one.vmid);
        Ok(Proposal { left_out, ..proposal })
    }

    /// The guests that are wanted, and those that there are not.
    async fn live(
        &self,
        workspace: &Workspace,
        wishes: &[Wish],
    ) -> Result<(Vec<Candidate>, Vec<LeftOut>), SessionError> {
        let providers = self.proxmox();
        let (mut candidates, mut left_out) = (Vec::new(), Vec::new());
        let mut refuse = |wish: &Wish, error: SessionError| {
            let address = Some(wish.address.clone());
            left_out.push(LeftOut {
                vmid: wish.vmid,
                described: format!("guest {}", wish.vmid),
                address,
                error,
            });
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
            let vmids: BTreeSet<u32> = wishes.iter().map(|wish| wish.vmid).collect();
            let mut found = BTreeMap::new();
            for guest in provider.live_guests(Some(&vmids)).await? {
                match guest {
                    Ok(guest) => drop(found.insert(guest.vmid, Ok(guest))),
                    Err((vmid, error)) => drop(found.insert(vmid, Err(SessionError::from(error)))),
                }
            }
            for wish in wishes {
                match found.get(&wish.vmid) {
                    Some(Ok(guest)) => candidates.push(Candidate {
                        address: wish.address.clone(),
                        target: target.clone(),
                        guest: guest.clone(),
                    }),
                    Some(Err(error)) => refuse(wish, error.clone()),
                    None => {
                        let message = format!("`{target}` has no guest with the VMID {}", wish.vmid);
                        let hint = "its login may lack the right to see it: `VM.Audit` on the guest";
                        refuse(wish, SessionError::refused(message).hint(hint));
                    }
                }
            }
        }
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
    own.map(|(address, one)| {
        (address.clone(), [(TAKEN_OVER.to_owned(), Value::text(one.proof.as_str()))].into())
    })
    .collect()
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
        _ => Err(SessionError::failed("which target the guests are on is not known")
            .hint("name it with `--target`")),
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
        let message = format!("`{address}` is not adopted: the guest changed meanwhile");
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
