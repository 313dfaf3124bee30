//! `strata recover`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use strata_engine::Retrieval;
use strata_events::Event;
use strata_session::{Purpose, StackSession, StateAccess, counted};

use super::{CHANGES, CommandResult};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::prompt::confirm;
use crate::views;
use crate::workspace::Workspace;

/// Rebuilds lost states from ownership marks, names and secrets bundles
///
/// Looks for what the states of the stacks do not know: guests, datacenter objects and datasets by their ownership marks, volumes by their
/// names, clusters by who answers to the keys in their secrets bundle. Shows what it found, asks, and records it under the lock; nothing is
/// changed on any target. Then it plans: a plan without changes proves that nothing is missing. What cannot be seen, or is not proven to
/// belong to this repository, is listed and left out. A state that exists is only added to.
///
/// Needs the repository and its age key, nothing else. Exit code 2 if anything is left out or the plan has changes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// Records what was found without asking
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let access = StateAccess::Lock("recover");
    let mut sessions = workspace.open_native(&args.stacks, &Purpose::LOOK, access).await?;
    let keys: BTreeSet<String> = sessions.iter().map(|session| session.view().key.clone()).collect();
    let outcome = recover(context, args, &mut sessions).await;
    let mut released = Ok(());
    for session in sessions {
        released = released.and(session.release().await);
    }
    let complete = outcome?;
    released?;
    // What the source does not ask for is in no state yet either.
    let (left, unseen) = workspace.list_orphans(Some(&keys)).await?;
    let whole = complete && left == 0 && !unseen;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
}

/// Whether nothing was left out, and nothing is to be changed.
async fn recover(
    context: &Context,
    args: &Args,
    sessions: &mut [StackSession],
) -> Result<bool, CommandError> {
    let printer = context.printer;
    let mut found: Vec<Retrieval> = Vec::new();
    for session in sessions.iter_mut() {
        let known = session.state().document.resources.len();
        let retrieval = session.retrieve().await?;
        printer.event_of(&session.view().key, &Event::recoverable(&retrieval));
        printer.line(views::recovered::render(&session.name, &retrieval, known).trim_end());
        found.push(retrieval);
    }
    let records: usize = found.iter().map(|one| one.adoption.records.len()).sum();
    if records > 0 && !args.yes && !confirm(&format!("Record {}?", counted(records))) {
        return Err(CommandError::refused("not confirmed: nothing was recorded")
            .hint("`strata recover --yes` records it without asking"));
    }
    let mut complete = true;
    for (session, retrieval) in sessions.iter_mut().zip(&found) {
        if !retrieval.is_empty() {
            session.record(&retrieval.adoption).await?;
            let (name, objects) = (&session.name, retrieval.adoption.records.len());
            printer.event_of(&session.view().key, &Event::Recorded { objects });
            printer.line(format!("`{name}`: recorded {}", counted(objects)));
        }
        let plan = session.plan().await?;
        let proven = views::recovered::is_proven(&plan);
        complete &= proven && retrieval.is_complete();
        printer.event_of(&session.view().key, &Event::Proof { proven, summary: plan.summary() });
        printer.line(views::recovered::proof(&session.name, &plan));
    }
    Ok(complete)
}
