//! `strata unlock`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use strata_events::Event;
use strata_state::{Holder, Lease, LockOwner, Store, StoreError, has_open_work};

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::workspace::Workspace;

/// Takes the lock of a stack away from a run that is gone
///
/// A run is gone if it ran on this machine and its process has ended, or if its lease has lapsed: then the lock is taken away at once.
/// From any other run it is taken only if its id is given, or with `--force`. One that still runs finds out before its next write
/// and stops. What it had begun may still arrive: the lock is kept from others until that cannot be any more.
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
        context.printer.event_of(&key, &Event::Unlocked { key: &key, holder: None });
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
    let wait = workspace.lease().map_or(Duration::ZERO, |terms| holder.outstanding(&terms));
    if !wait.is_zero() && has_open_work(store.as_ref(), &key).await {
        wait_out(&workspace, store.as_ref(), &key, &holder, wait).await?;
    }
    context.printer.event_of(&key, &Event::Unlocked { key: &key, holder: Some(holder.to_string()) });
    context.printer.line(format!("unlocked `{key}`; it was held by {holder}"));
    Ok(ExitCode::SUCCESS)
}

/// Keeps the lock from others meanwhile. If this command is killed its own lease lapses, and whoever takes that over waits no less.
async fn wait_out(
    workspace: &Workspace<'_>,
    store: &dyn Store,
    key: &str,
    former: &Holder,
    wait: Duration,
) -> Result<(), CommandError> {
    // Not known by its process: its death must not free the lock at once.
    let owner = LockOwner { pid: 0, process: None, ..workspace.surroundings().lock_owner("unlock") };
    let seconds = wait.as_secs().max(1);
    let lock = store.lock(key, owner).await.map_err(|error| overtaken(error, former, seconds))?;
    let printer = workspace.context.printer;
    let waiting = strata_engine::Event::WaitingOut { key: key.to_owned(), seconds };
    printer.event_of(key, &Event::Run(Box::new(waiting)));
    printer.note(format!(
        "`{key}` was taken from {former}, which may live: a request of it may still arrive, so nobody gets the lock for {seconds} s"
    ));
    let end = Instant::now() + wait;
    while Instant::now() < end && !former.owner.is_dead_here() {
        tokio::time::sleep(Duration::from_secs(1).min(end.saturating_duration_since(Instant::now()))).await;
    }
    lock.release().await?;
    Ok(())
}

/// Somebody who waited for the lock was quicker, and does not know that it was taken away.
fn overtaken(error: StoreError, former: &Holder, seconds: u64) -> CommandError {
    let StoreError::Locked { key, holder } = &error else { return error.into() };
    let message = format!(
        "the lock of `{key}` was taken from {former}, and {holder} got it at once: a request of the former may still arrive for {seconds} s"
    );
    CommandError::new(ErrorKind::Locked, message)
        .hint("stop that run with Ctrl-C; apply again after that time, and look at the plan")
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
