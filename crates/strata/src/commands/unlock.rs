//! `strata unlock`.

use std::process::ExitCode;

use strata_state::{Holder, Lease};

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::workspace::Workspace;

/// Takes the lock of a stack away from a run that is gone
///
/// A run is gone if it ran on this machine and its process has ended, or if its lease has lapsed: then the lock is taken away at once.
/// From any other run it is taken only if its id is given, or with `--force`. One that lives notices the loss before its next write
/// and stops.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack whose state is locked
    stack: String,
    /// The id of the lock, as the error showed it
    lock_id: Option<String>,
    /// Whoever holds it
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    let key = workspace.state_key(&args.stack)?;
    let store = workspace.store()?;
    let Some(holder) = store.holder(&key).await? else {
        context.printer.line(format!("`{key}` is not locked"));
        return Ok(ExitCode::SUCCESS);
    };
    let id = &holder.owner.id;
    match &args.lock_id {
        Some(wanted) if wanted != id => {
            return Err(CommandError::new(ErrorKind::Refused, format!("the lock is another one: {holder}"))
                .hint(format!("its id is {id}")));
        }
        None if !args.force && !holder.is_gone() => return Err(alive(&key, &holder, &args.stack)),
        _ => {}
    }
    store.break_lock(&key, id).await?;
    context.printer.line(format!("unlocked `{key}`; it was held by {holder}"));
    Ok(ExitCode::SUCCESS)
}

/// Nothing says that the holder is gone.
fn alive(key: &str, holder: &Holder, stack: &str) -> CommandError {
    let error =
        CommandError::new(ErrorKind::Locked, format!("`{key}` is locked by {holder}, who may be at work"));
    let error = match holder.lease {
        Lease::Running(left) => {
            error.hint(format!("if it is gone, its lock ends within {} s by itself", left.as_secs().max(1)))
        }
        _ => error,
    };
    error.hint(format!("if you know that it is gone: `strata unlock {stack} {}`", holder.owner.id))
}
