//! Guests that were made by hand, brought into the repository: their YAML, their records and their ownership marks.
//!
//! [`AllProviders::propose`] looks and writes nothing: it reads the guests, edits the files of their stacks in memory, and draws and plans
//! the repository as it would be. A guest is proposed only if the plan of its YAML finds nothing to change. [`AllProviders::adopt`] then
//! records what was proposed, under the lock, once the files are written.

mod proposal;

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{ApplyOptions, Proofs};
use strata_proxmox::{LiveGuest, TAKEN_OVER};
use strata_resource::{Address, Value};
use strata_session::{Purpose, SessionError, StackSession, StateAccess, Workspace};

use crate::AllProviders;
use crate::orphans::States;
use proposal::Draft;
pub use proposal::{FileEdit, Proposal, Proposed};

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
        let mut refused: BTreeMap<Address, SessionError> = BTreeMap::new();
        let live = self.live(workspace, wishes, &mut refused).await?;
        loop {
            let mut draft = Draft::new(workspace, &states);
            for wish in wishes {
                let Some((target, guest)) = live.get(&wish.address) else { continue };
                if refused.contains_key(&wish.address) {
                    continue;
                }
                if let Err(error) = draft.add(wish, target, guest) {
                    refused.insert(wish.address.clone(), error);
                }
            }
            let proposal = draft.finish();
            let found = self.try_out(workspace, &proposal).await?;
            if found.is_empty() {
                return Ok(Proposal { refused, ..proposal });
            }
            refused.extend(found);
        }
    }

    /// The guests, by the address that they are wanted as.
    async fn live(
        &self,
        workspace: &Workspace,
        wishes: &[Wish],
        refused: &mut BTreeMap<Address, SessionError>,
    ) -> Result<BTreeMap<Address, (String, LiveGuest)>, SessionError> {
        let providers = self.proxmox();
        let mut by_target: BTreeMap<String, Vec<&Wish>> = BTreeMap::new();
        for wish in wishes {
            match proposal::target_of(workspace, wish) {
                Ok(target) => by_target.entry(target).or_default().push(wish),
                Err(error) => drop(refused.insert(wish.address.clone(), error)),
            }
        }
        let mut live = BTreeMap::new();
        for (target, wishes) in by_target {
            let Some(provider) = providers.get(&target) else {
                let error = SessionError::failed(format!("there is no Proxmox target `{target}`"));
                refused.extend(wishes.iter().map(|wish| (wish.address.clone(), error.clone())));
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
                    Some(Ok(guest)) => {
                        live.insert(wish.address.clone(), (target.clone(), guest.clone()));
                    }
                    Some(Err(error)) => drop(refused.insert(wish.address.clone(), error.clone())),
                    None => {
                        let message = format!("`{target}` has no guest with the VMID {}", wish.vmid);
                        let hint = "its login may lack the right to see it: `VM.Audit` on the guest";
                        refused.insert(wish.address.clone(), SessionError::refused(message).hint(hint));
                    }
                }
            }
        }
        Ok(live)
    }

    /// Draws and plans the repository as it would be. Gives what must not be adopted.
    async fn try_out(
        &self,
        workspace: &Workspace,
        proposal: &Proposal,
    ) -> Result<BTreeMap<Address, SessionError>, SessionError> {
        let mut refused = BTreeMap::new();
        if proposal.adopted.is_empty() {
            return Ok(refused);
        }
        let files = proposal.files.iter().map(|(path, edit)| (path.clone(), edit.after.clone()));
        let (trial, diagnostics) = workspace.edited(files.collect())?;
        if diagnostics.has_errors() {
            let first = diagnostics.iter().find(|found| found.is_error());
            let message = first.map(|found| found.message.clone()).unwrap_or_default();
            // The last one that was written is the one that does not fit; the others are tried again without it.
            let last = proposal.adopted.iter().rev().find(|(_, one)| one.is_written);
            let (address, _) = last.ok_or_else(|| SessionError::failed(message.clone()))?;
            let error = SessionError::refused(format!("its YAML would not be valid: {message}"));
            refused.insert(address.clone(), error);
            return Ok(refused);
        }
        let names = proposal.stacks();
        let sessions = trial.open_native(&names, &Purpose::LOOK, StateAccess::Look).await?;
        for mut session in sessions {
            let surveyed = survey(&mut session, proposal).await;
            session.release().await?;
            refused.extend(surveyed?);
        }
        Ok(refused)
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

/// What the plan of the stack says against its new guests.
async fn survey(
    session: &mut StackSession,
    proposal: &Proposal,
) -> Result<BTreeMap<Address, SessionError>, SessionError> {
    let adoption = session.survey(&proofs(session, proposal)).await?;
    let refused = adoption.refused.into_iter().map(|(address, reason)| {
        let described = proposal.adopted.get(&address).map(|one| one.described.as_str()).unwrap_or_default();
        (address, SessionError::refused(format!("{described} cannot be adopted: {reason}")))
    });
    let mut refused: BTreeMap<Address, SessionError> = refused.collect();
    for (address, changes) in adoption.differences {
        let Some(one) = proposal.adopted.get(&address) else { continue };
        let fields: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
        let (message, hint) = match one.is_written {
            true => (
                format!("no YAML says what {} has: {} would change", one.described, fields.join(", ")),
                "set it on the guest to what Strata can say, then adopt it again",
            ),
            false => (
                format!("{} differs from the source in {}", one.described, fields.join(", ")),
                "bring the source in line with the guest, or remove the entry: `strata adopt` then writes it",
            ),
        };
        refused.insert(address, SessionError::refused(message).hint(hint));
    }
    Ok(refused)
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
