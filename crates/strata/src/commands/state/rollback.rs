//! `strata state rollback`.

use std::process::ExitCode;

use strata_state::{StateDocument, StoreError};

use super::place::tell_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Makes an older version of a state the newest one
///
/// Only the record goes back, no object does: the next plan shows what differs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
    /// The serial to go back to; without it, the one before the newest
    serial: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    tell_where(&workspace, &args.stack, "list")?;
    let (store, key) = (workspace.store()?, workspace.state_key(&args.stack)?);
    let lock = store.lock(&key, context.lock_owner("state rollback")).await?;
    let outcome = async {
        // A damaged document cannot be opened as a state; its lock can be taken all the same.
        let current = match store.read(&key).await {
            Ok(document) => document.map_or(0, |document| document.serial),
            Err(StoreError::Damaged { newest_good, .. }) => newest_good.unwrap_or(0),
            Err(error) => return Err(error.into()),
        };
        let to = match args.serial {
            Some(serial) => serial,
            None => current.checked_sub(1).filter(|serial| *serial > 0).ok_or_else(|| {
                CommandError::failed("there is no version before this one")
                    .hint("`strata state history` lists them")
            })?,
        };
        let document = store.read_version(&key, to).await?;
        // The journal stays: what it holds is newer than any version and is applied on top.
        lock.write(&StateDocument { serial: current + 1, ..document }).await?;
        Ok::<_, CommandError>((to, current + 1))
    }
    .await;
    lock.release().await?;
    let (to, serial) = outcome?;
    context.printer.line(format!("`{key}` is back at serial {to}, as serial {serial}"));
    Ok(ExitCode::SUCCESS)
}
