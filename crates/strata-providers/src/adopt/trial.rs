//! The repository as it would be, drawn and planned before anything is written.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, SourceMap, Span};
use strata_resource::Address;
use strata_session::{Purpose, SessionError, StackSession, StateAccess, Workspace};
use strata_yaml::edit::{self, Step};

use super::proofs;
use super::proposal::{Proposal, stack_of};
use crate::AllProviders;

impl AllProviders {
    /// Draws and plans the repository as it would be. Gives what must not be adopted.
    pub(super) async fn try_out(
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
        let names = proposal.stacks();
        let mut errors: Vec<Diagnostic> =
            diagnostics.iter().filter(|found| found.is_error()).cloned().collect();
        if errors.is_empty() {
            for stack in names.iter().filter_map(|name| stack_of(&trial, name)) {
                let found = trial.drawing_errors(stack)?;
                errors.extend(found.into_iter().filter(Diagnostic::is_error));
            }
        }
        if !errors.is_empty() {
            return blame(proposal, &errors, &trial.repository().sources);
        }
        for mut session in trial.open_native(&names, &Purpose::LOOK, StateAccess::Look).await? {
            let surveyed = survey(&mut session, proposal).await;
            session.release().await?;
            refused.extend(surveyed?);
        }
        Ok(refused)
    }
}

/// What these errors are about.
fn blame(
    proposal: &Proposal,
    errors: &[Diagnostic],
    sources: &SourceMap,
) -> Result<BTreeMap<Address, SessionError>, SessionError> {
    let mut refused = BTreeMap::new();
    for error in errors {
        let places = error.primary.iter().chain(&error.secondary).map(|label| label.span);
        let mut at_fault = places.filter_map(|span| written_at(proposal, span, sources));
        // What has no place of its own is about what came last; the others are tried again without it.
        let last =
            || proposal.adopted.iter().rev().find(|(_, one)| one.is_written).map(|(address, _)| address);
        let address =
            at_fault.next().or_else(last).ok_or_else(|| SessionError::failed(error.message.clone()))?;
        let described = &proposal.adopted[address].described;
        let refusal = SessionError::refused(format!("{described} cannot be said in YAML: {}", error.message));
        let usual = "change that on the guest or on the other one, then adopt it";
        let refusal = refusal.hint(error.hint.clone().unwrap_or_else(|| usual.to_owned()));
        refused.entry(address.clone()).or_insert(refusal);
    }
    Ok(refused)
}

/// Whose new entry stands there.
fn written_at<'p>(proposal: &'p Proposal, span: Span, sources: &SourceMap) -> Option<&'p Address> {
    let edited = proposal.files.get(sources.path(span.file))?;
    let path = edit::path_at(&edited.after, span.start as usize).ok()?;
    let file = sources.path(span.file);
    let here = |(own, place, _): &&(String, Vec<Step>, Address)| own == file && path.starts_with(place);
    // What stands within another one is the nearer.
    let nearest = proposal.entries.iter().filter(here).max_by_key(|(_, place, _)| place.len());
    nearest.map(|(_, _, address)| address)
}

/// What the plan of the stack says against what is new in it.
async fn survey(
    session: &mut StackSession,
    proposal: &Proposal,
) -> Result<BTreeMap<Address, SessionError>, SessionError> {
    let proofs = proofs(session, proposal);
    let mut adoption = session.survey(&proofs).await?;
    let refused = std::mem::take(&mut adoption.refused).into_iter().map(|(address, reason)| {
        let described = proposal.adopted.get(&address).map(|one| one.described.as_str()).unwrap_or_default();
        let refusal = SessionError::refused(format!("{described} cannot be adopted: {reason}"));
        (address, refusal.hint("change that there, then adopt it"))
    });
    let mut refused: BTreeMap<Address, SessionError> = refused.collect();
    // What is drawn under another address would never be recorded.
    let seen = |address: &Address| {
        adoption.records.contains_key(address)
            || adoption.known.contains(address)
            || adoption.differences.contains_key(address)
    };
    for address in proofs.keys().filter(|address| !seen(address)) {
        refused.entry(address.clone()).or_insert_with(|| {
            let described =
                proposal.adopted.get(address).map(|one| one.described.as_str()).unwrap_or_default();
            let message = format!("{described} would not be called `{address}`");
            SessionError::refused(message)
                .hint("an address ends with the name of its guest: write it so, or rename the guest first")
        });
    }
    for (address, changes) in adoption.differences {
        let Some(one) = proposal.adopted.get(&address) else { continue };
        let fields: Vec<String> = changes.iter().map(|change| format!("`{}`", change.path)).collect();
        let (message, hint) = match one.is_written {
            true => (
                format!("no YAML says what {} has: {} would change", one.described, fields.join(", ")),
                "set it there to what Strata can say, then adopt it again",
            ),
            false => (
                format!("{} differs from the source in {}", one.described, fields.join(", ")),
                "bring the source in line with it, or remove the entry: `strata adopt` then writes it",
            ),
        };
        refused.insert(address, SessionError::refused(message).hint(hint));
    }
    Ok(refused)
}
