//! `state mv`: one object gets another address at once, without looking at anything remote.

use strata_engine::{LockedRun, Move};
use strata_resource::Address;
use strata_source::{EffectiveStack, Model};

use super::{Workspace, key, leave};
use crate::error::SessionError;

impl Workspace {
    /// Moves a record within its state or to another one. Between states both are locked, in the order of their keys.
    pub async fn move_record(&self, from: &Address, to: &Address) -> Result<(), SessionError> {
        if from.kind() != to.kind() {
            let message = format!("`{from}` cannot become `{to}`: a {} is no {}", from.kind(), to.kind());
            return Err(SessionError::refused(message));
        }
        let (old, new) = (self.one(from.stack())?, self.one(to.stack())?);
        if key(old) == key(new) {
            let mut locked = self.lock(from.stack(), "state mv").await?;
            let moved = rename(&mut locked, from, to).await;
            locked.release().await?;
            return moved;
        }
        for stack in [old, new] {
            refuse_fixed(stack)?;
        }
        let first = if key(old) < key(new) { from } else { to };
        let second = if first == from { to } else { from };
        let mut one = self.lock(first.stack(), "state mv").await?;
        let mut other = match self.lock(second.stack(), "state mv").await {
            Ok(locked) => locked,
            Err(error) => {
                // The first error is the one to tell.
                let _ = one.release().await;
                return Err(error);
            }
        };
        let (source, target) = if first == from { (&mut one, &mut other) } else { (&mut other, &mut one) };
        let moved = hand_over(source, target, from, to).await;
        let released = one.release().await;
        other.release().await?;
        released?;
        moved
    }
}

async fn rename(locked: &mut LockedRun, from: &Address, to: &Address) -> Result<(), SessionError> {
    check(locked, locked, from, to)?;
    Ok(locked.rename(&[Move::Within { from: from.clone(), to: to.clone() }]).await?)
}

async fn hand_over(
    source: &mut LockedRun,
    target: &mut LockedRun,
    from: &Address,
    to: &Address,
) -> Result<(), SessionError> {
    check(source, target, from, to)?;
    let state = source.state();
    let mut record = state.resources[from].clone();
    leave(&mut record, from, state, target.state(), &state.lineage);
    // What it needs there is found by the next plan.
    record.depends_on.clear();
    let (from_key, record) = (state.key.clone(), Box::new(record));
    let arrival = Move::Arrival { from: from.clone(), from_key, to: to.clone(), record };
    Ok(source.hand_over(target, &[arrival]).await?)
}

fn check(source: &LockedRun, target: &LockedRun, from: &Address, to: &Address) -> Result<(), SessionError> {
    if !source.state().resources.contains_key(from) {
        return Err(SessionError::failed(format!("the state has no `{from}`"))
            .hint("`strata state list` shows what it has"));
    }
    if target.state().resources.contains_key(to) {
        return Err(SessionError::refused(format!("the state has a `{to}` already")));
    }
    Ok(())
}

fn refuse_fixed(stack: &EffectiveStack) -> Result<(), SessionError> {
    let name = &stack.name;
    match &stack.model {
        Model::Cluster(_) => Err(SessionError::refused(format!(
            "`{name}` is a cluster: its keys and the names of its nodes belong to its address"
        ))),
        Model::Tofu(_) => {
            Err(SessionError::refused(format!("OpenTofu makes `{name}`, and keeps its own addresses")))
        }
        Model::Machines(_) | Model::Hypervisor(_) | Model::Broken | Model::Removed => Ok(()),
    }
}
