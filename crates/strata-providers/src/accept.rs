//! Drift that somebody keeps: what is live is written into the source, and recorded.
//!
//! [`AllProviders::propose_acceptance`] looks and writes nothing: it finds the edits of the files that say what is live, and draws and
//! plans the repository as it would be. An object is accepted whole, if its plan is empty then and nothing else changes, in no
//! environment. [`AllProviders::accept`] records it, under the lock, once the files are written.

mod places;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use strata_engine::{ApplyOptions, Drift, DriftKind};
use strata_resource::{Address, FieldChange, Value};
use strata_session::{Opened, Purpose, SessionError, StackSession, StateAccess, Workspace};

use crate::AllProviders;
use crate::adopt::FileEdit;
use trial::Trial;

/// What would be written, and what of it is accepted.
#[derive(Debug, Default)]
pub struct Acceptance {
    /// By path from the root of the repository.
    pub files: BTreeMap<String, FileEdit>,
    pub accepted: BTreeMap<Address, Vec<FieldChange>>,
    pub left_out: BTreeMap<Address, SessionError>,
}

impl AllProviders {
    /// What accepting the drift of these stacks, addresses and patterns would write. What cannot be accepted is among the result, with the
    /// reason.
    pub async fn propose_acceptance(
        &self,
        workspace: &Workspace,
        arguments: &[String],
    ) -> Result<Acceptance, SessionError> {
        let mut left_out = BTreeMap::new();
        let mut drifted: BTreeMap<Address, Vec<FieldChange>> = BTreeMap::new();
        let look = strata_engine::Look::default();
        for opened in workspace.open(arguments, &Purpose::LOOK, StateAccess::Look).await? {
            let session = match opened {
                Opened::Native(session) => session,
                Opened::Driven(open) => {
                    let message = format!("`{}` is made by OpenTofu", open.stack().name);
                    return Err(
                        SessionError::refused(message).hint("change its code: Strata does not write it")
                    );
                }
            };
            let drifts = session.drift(&look).await;
            let selected = session.view().selected.clone();
            let is_meant = |drift: &Drift| selected.as_ref().is_none_or(|all| all.contains(&drift.address));
            for drift in drifts?.into_iter().filter(is_meant) {
                match acceptable(&session, &drift) {
                    Ok(None) => {}
                    Ok(Some(changes)) => drop(drifted.insert(drift.address, changes)),
                    Err(error) => drop(left_out.insert(drift.address, error)),
                }
            }
            session.release().await?;
        }
        loop {
            let accepted: BTreeMap<Address, Vec<FieldChange>> =
                drifted.iter().filter(|(address, _)| !left_out.contains_key(*address)).map(own).collect();
            let (files, mut refused) = Trial::new(workspace, &accepted)?.run()?;
            if refused.is_empty() {
                refused = planned(workspace, &files, &accepted).await?;
            }
            if refused.is_empty() {
                return Ok(Acceptance { files, accepted, left_out });
            }
            left_out.extend(refused);
        }
    }

    /// Records what was proposed. The files say it by now, and `workspace` was read after that.
    pub async fn accept(
        &self,
        workspace: &Workspace,
        acceptance: &Acceptance,
        options: &ApplyOptions,
    ) -> Result<(), SessionError> {
        let access = StateAccess::Lock("drift");
        let sessions = workspace.open_native(&stacks(&acceptance.accepted), &Purpose::LOOK, access).await?;
        let mut outcome = Ok(());
        for mut session in sessions {
            if outcome.is_ok() {
                outcome = record(&mut session, acceptance, options).await;
            }
            outcome = outcome.and(session.release().await);
        }
        outcome
    }
}

fn own((address, changes): (&Address, &Vec<FieldChange>)) -> (Address, Vec<FieldChange>) {
    (address.clone(), changes.clone())
}

fn stacks(accepted: &BTreeMap<Address, Vec<FieldChange>>) -> Vec<String> {
    let names: BTreeSet<String> = accepted.keys().map(|address| address.stack().to_owned()).collect();
    names.into_iter().collect()
}

/// What of a drift could be written; nothing where there is nothing to accept.
fn acceptable(session: &StackSession, drift: &Drift) -> Result<Option<Vec<FieldChange>>, SessionError> {
    let address = &drift.address;
    let refuse = |why: String, hint: String| Err(SessionError::refused(why).hint(hint));
    let changes = match &drift.kind {
        DriftKind::Changed { changes } => changes,
        DriftKind::Ignored { .. } => return Ok(None),
        DriftKind::Gone => {
            let place = session.view().graph.get(address).and_then(|resource| resource.origin.clone());
            let place = place.map(|place| format!(" (`{place}`)")).unwrap_or_default();
            return refuse(
                format!("`{address}` is gone: there is nothing to write"),
                format!(
                    "remove its entry{place} and run `strata apply`, which drops it from the state; otherwise `strata apply` makes it again"
                ),
            );
        }
        DriftKind::Taken { by } => {
            return refuse(
                format!("`{address}`: {by}"),
                "what is not managed is not accepted: `strata adopt` brings it into the source".to_owned(),
            );
        }
        DriftKind::Busy { what } | DriftKind::Unreachable { what } | DriftKind::Unknown { what, .. } => {
            return refuse(format!("`{address}`: {what}"), "accept it once it can be seen".to_owned());
        }
        DriftKind::Unfinished => {
            return refuse(
                format!("`{address}`: an interrupted run left it unfinished"),
                "`strata apply` finishes it".to_owned(),
            );
        }
    };
    if session.view().graph.get(address).is_none() {
        return refuse(
            format!("`{address}` is not in the source any more"),
            "put its entry back, then accept the drift; `strata apply` removes the object".to_owned(),
        );
    }
    match unwritable(address, changes) {
        Some(error) => Err(error),
        None => Ok(Some(changes.clone())),
    }
}

/// A field that never goes into a file.
fn unwritable(address: &Address, changes: &[FieldChange]) -> Option<SessionError> {
    let is_secret =
        |change: &&FieldChange| [&change.before, &change.after].into_iter().flatten().any(Value::has_secret);
    if let Some(change) = changes.iter().find(is_secret) {
        let message =
            format!("`{address}`: `{}` is secret, and is never written into the source", change.path);
        return Some(SessionError::refused(message).hint(format!(
            "change the secret itself with `strata secrets edit`; `strata apply {address}` reverts it"
        )));
    }
    let mark = address.kind().table().mark_field();
    let refuse = |message: String, hint: String| Some(SessionError::refused(message).hint(hint));
    for change in changes {
        if mark.is_some() && change.path.first() == mark {
            return refuse(
                format!("`{address}`: somebody changed its ownership mark"),
                format!("`strata apply {address}` puts it back; what else drifted is reverted with it"),
            );
        }
        if change.after == Some(Value::Unknown) {
            let message = format!("`{address}`: what `{}` is cannot be read", change.path);
            return refuse(message, format!("`strata apply {address}` reverts it"));
        }
    }
    None
}

/// What the plan of the repository as it would be still says against what is accepted.
async fn planned(
    workspace: &Workspace,
    files: &BTreeMap<String, FileEdit>,
    accepted: &BTreeMap<Address, Vec<FieldChange>>,
) -> Result<BTreeMap<Address, SessionError>, SessionError> {
    let mut refused = BTreeMap::new();
    if accepted.is_empty() {
        return Ok(refused);
    }
    let texts = files.iter().map(|(path, edit)| (path.clone(), edit.after.clone()));
    let (trial, _) = workspace.edited(texts.collect())?;
    for mut session in trial.open_native(&stacks(accepted), &Purpose::LOOK, StateAccess::Look).await? {
        let plan = session.plan().await;
        session.release().await?;
        let plan = plan?;
        for step in plan.steps.iter().filter(|step| step.action.is_remote()) {
            if accepted.contains_key(&step.address) {
                let fields: Vec<String> =
                    step.changes.iter().map(|change| format!("`{}`", change.path)).collect();
                let what = if fields.is_empty() { "it".to_owned() } else { fields.join(", ") };
                let message = format!(
                    "`{}`: no YAML says what is live: the plan would still change {what}",
                    step.address
                );
                refused.insert(
                    step.address.clone(),
                    SessionError::refused(message).hint(ways_out(&step.address)),
                );
            }
        }
        for problem in plan.problems.iter().filter(|problem| accepted.contains_key(&problem.address)) {
            let message = format!("`{}`: {}", problem.address, problem.message);
            refused
                .insert(problem.address.clone(), SessionError::refused(message).hint(problem.hint.clone()));
        }
    }
    Ok(refused)
}

/// What helps where the source cannot say it.
fn ways_out(address: &Address) -> String {
    format!("`strata apply {address}` reverts it; `ignoreChanges` leaves the field to others")
}

async fn record(
    session: &mut StackSession,
    acceptance: &Acceptance,
    options: &ApplyOptions,
) -> Result<(), SessionError> {
    session.recover().await?;
    let own = acceptance.accepted.keys().filter(|address| address.stack() == session.name);
    let addresses: BTreeSet<Address> = own.cloned().collect();
    let report = session.record_unchanged(&addresses, options).await?;
    let Some(report) = report else {
        let message = format!("an object of `{}` changed while its drift was accepted", session.name);
        return Err(SessionError::refused(message)
            .hint("the files are written and the state is as it was: `strata drift` says what differs now"));
    };
    match report.failed.into_iter().next() {
        Some(failure) => Err(SessionError::from(failure.error)),
        None if report.interrupted => {
            Err(SessionError::new(strata_session::ErrorKind::Interrupted, "interrupted"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use strata_resource::{FieldPath, Secret};
    use strata_secret::SecretString;

    use super::*;

    #[test]
    fn a_secret_is_never_written() {
        crate::kinds::register();
        let secret = || Value::Secret(Secret::new(SecretString::new("hunter2".to_owned())));
        let change = |before, after| FieldChange {
            path: FieldPath::dotted("cloudinit.user"),
            before: Some(before),
            after: Some(after),
            drift: true,
        };
        let address: Address = "web/vm/db".parse().unwrap();
        for one in [change(secret(), secret()), change(secret(), Value::text("root"))] {
            let error = unwritable(&address, &[one]).unwrap();
            assert!(error.message.contains("`cloudinit.user` is secret"), "{}", error.message);
            assert!(!error.message.contains("hunter2") && !error.hints.concat().contains("root"));
        }
        assert!(unwritable(&address, &[change(Value::text("a"), Value::text("b"))]).is_none());
    }
}
