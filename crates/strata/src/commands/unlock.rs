//! `strata unlock`.

use std::process::ExitCode;

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::workspace::Workspace;

/// Takes the lock of a stack away from a run that is gone
///
/// A run that died holds no local lock. One that lives notices the loss before its next write and stops.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack whose state is locked
    stack: String,
    /// The id of the lock, as the error showed it; without it, whatever lock there is
    lock_id: Option<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let key = workspace.state_key(&args.stack)?;
    let store = workspace.store();
    let Some(holder) = store.holder(&key).await? else {
        context.printer.line(format!("`{key}` is not locked"));
        return Ok(ExitCode::SUCCESS);
    };
    if args.lock_id.as_ref().is_some_and(|id| *id != holder.id) {
        return Err(CommandError::new(ErrorKind::Refused, format!("the lock is another one: {holder}"))
            .hint(format!("its id is {}", holder.id)));
    }
    store.break_lock(&key).await?;
    context.printer.line(format!("unlocked `{key}`; it was held by {holder}"));
    Ok(ExitCode::SUCCESS)
}
