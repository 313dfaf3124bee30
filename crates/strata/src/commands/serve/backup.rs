//! `strata serve backup` and `strata serve restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_server::access::AccessFile;
use strata_server::storage::embedded::{EmbeddedStorage, FILE};

use super::settings::Settings;
use strata_events::Event;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;

/// Writes every state with all versions, locks and journals, and the users, to a folder; the server may run
#[derive(clap::Args)]
pub(super) struct BackupArgs {
    /// A folder that is empty or does not exist
    folder: PathBuf,
}

/// Puts a backup into a server that has no states yet and does not run
#[derive(clap::Args)]
pub(super) struct RestoreArgs {
    /// The folder of the backup
    folder: PathBuf,
}

pub(super) async fn back_up(context: &Context, settings: &Settings, args: &BackupArgs) -> CommandResult {
    let failed = |error: &dyn std::fmt::Display| CommandError::failed(format!("cannot back up: {error}"));
    let folder = context.start().join(&args.folder);
    let count = if settings.config.storage.is_some() {
        let opened = settings.open_storage(context).await?;
        strata_server::back_up(&*opened.storage, &folder).await
    } else {
        let path = settings.data.join(FILE);
        if !path.is_file() {
            return Err(CommandError::failed(format!("there is no `{}`", path.display()))
                .hint("`--data` or `--config` names the server"));
        }
        let storage = EmbeddedStorage::open_for_reading(&path).map_err(|error| failed(&error))?;
        strata_server::back_up(&storage, &folder).await
    };
    let count = count.map_err(|error| failed(&error))?;
    let users = AccessFile::load(&AccessFile::path(&settings.data)).map_err(|error| failed(&error))?;
    users.save(&AccessFile::path(&folder)).map_err(|error| failed(&error))?;
    context.printer.event(&Event::Backup { states: count });
    context.printer.line(format!("{} in `{}`", counted(count), folder.display()));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn restore(context: &Context, settings: &Settings, args: &RestoreArgs) -> CommandResult {
    let failed = |error: &dyn std::fmt::Display| CommandError::failed(format!("cannot restore: {error}"));
    let folder = context.start().join(&args.folder);
    let opened = settings.open_storage(context).await?;
    let count = strata_server::restore(&*opened.storage, &folder).await.map_err(|error| failed(&error))?;
    let here = AccessFile::path(&settings.data);
    let saved = AccessFile::path(&folder);
    // Users that are there already are newer than those of the backup.
    if saved.is_file() && !here.exists() {
        AccessFile::load(&saved).and_then(|users| users.save(&here)).map_err(|error| failed(&error))?;
    }
    context.printer.event(&Event::Restore { states: count });
    context.printer.line(format!("{} restored", counted(count)));
    Ok(ExitCode::SUCCESS)
}

fn counted(states: usize) -> String {
    if states == 1 { "1 state".to_owned() } else { format!("{states} states") }
}
