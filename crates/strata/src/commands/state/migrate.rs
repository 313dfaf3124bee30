//! `strata state migrate`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::json;
use strata_source::settings::state::State;
use strata_state::{LockedState, StateDocument, Store, StoreError};

use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::{Workspace, show};

/// Copies every state to another store
///
/// Both stores are locked while a state is copied, and what was written is read back. A state with work that an interrupted apply left
/// open is not moved: `strata apply` first finishes it. The old store is left as it is; put the new settings into strata.yaml when
/// this command has ended well. Older versions go along, with their serials, as far as the new store keeps them; what stays behind is
/// told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The new settings: what will stand at `state:` in strata.yaml, such as `{backend: s3, bucket: states}`, or a file with it
    #[arg(long, value_name = "SETTINGS")]
    to: String,
    /// Copies only the newest version of each state
    #[arg(long)]
    without_history: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let (name, text) = match std::fs::read_to_string(&args.to) {
        Ok(text) => (args.to.as_str(), text),
        Err(_) => ("--to", args.to.clone()),
    };
    let (settings, sources, diagnostics) = State::parse(name, &text);
    let Some(settings) = settings else {
        show(context.printer, &diagnostics.iter().collect::<Vec<_>>(), &sources);
        return Err(CommandError::silent(ErrorKind::Failed));
    };
    let old = workspace.store()?;
    let new = workspace.other_store(&settings, &sources)?;
    let mut keys = old.keys().await?;
    // A store may hold states of others beside ours.
    let known = workspace.state_keys();
    let mut moved = 0;
    keys.sort_by_key(|key| !known.contains(key));
    for key in &keys {
        match copy(context, old.as_ref(), new.as_ref(), key, !args.without_history).await {
            Ok(Copied::Yes(serial, history)) => {
                moved += 1;
                history.tell(context, key, serial);
            }
            Ok(Copied::Already) => context.printer.line(format!("`{key}` is there already")),
            Ok(Copied::Nothing) => {}
            Err(StoreError::Damaged { .. }) if !known.contains(key) => {
                context.printer.note(format!("left out `{key}`: it is not a state of Strata"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let to = new.describe();
    context.printer.line(format!("{moved} of {} states copied to {to}", keys.len()));
    if let Some(caveat) = new.caveat() {
        context.printer.note(format!("note: {caveat}"));
    }
    context.printer.note("now put the new settings at `state:` in strata.yaml; the old store is as it was");
    Ok(ExitCode::SUCCESS)
}

enum Copied {
    Yes(u64, History),
    /// The same document: an earlier migration came this far.
    Already,
    Nothing,
}

/// What became of the versions before the newest one.
#[derive(Default)]
struct History {
    copied: usize,
    /// Too many for the new store, or not wanted.
    left: usize,
    /// They cannot be read any more, such as with a key that is gone.
    unreadable: Vec<u64>,
}

impl History {
    fn tell(&self, context: &Context, key: &str, serial: u64) {
        let Self { copied, left, unreadable } = self;
        context.printer.event(&json!({
            "event": "migrated", "key": key, "serial": serial, "olderVersions": copied, "leftBehind": left + unreadable.len(),
        }));
        let versions = |count: usize| format!("{count} older version{}", if count == 1 { "" } else { "s" });
        let with = if *copied > 0 { format!(", with {}", versions(*copied)) } else { String::new() };
        context.printer.line(format!("copied `{key}`, serial {serial}{with}"));
        if *left > 0 {
            context.printer.note(format!("{} of `{key}` stay in the old store only", versions(*left)));
        }
        if !unreadable.is_empty() {
            let serials: Vec<String> = unreadable.iter().map(u64::to_string).collect();
            context.printer.note(format!(
                "left behind of `{key}`, since they cannot be read: serial {}",
                serials.join(", ")
            ));
        }
    }
}

async fn copy(
    context: &Context,
    old: &dyn Store,
    new: &dyn Store,
    key: &str,
    with_history: bool,
) -> Result<Copied, StoreError> {
    let from = old.lock(key, context.lock_owner("state migrate")).await?;
    let copied = async {
        let Some(document) = old.read(key).await? else { return Ok(Copied::Nothing) };
        if !old.read_journal(key).await?.is_empty() {
            return Err(StoreError::Remote {
                what: format!("the state `{key}` cannot be moved"),
                reason: "an interrupted run left work open in it".to_owned(),
                hint: Some("`strata apply` finishes it".to_owned()),
                source: None,
            });
        }
        let to = new.lock(key, context.lock_owner("state migrate")).await?;
        let written = async {
            match new.read(key).await? {
                Some(there) if there == document => return Ok(Copied::Already),
                Some(there) => {
                    return Err(StoreError::Exists { key: key.to_owned(), serial: there.serial });
                }
                None => {}
            }
            // The document comes last: until then there is no state that somebody could go on with.
            let history = copy_versions(old, new, to.as_ref(), &document, with_history).await?;
            to.adopt(&document).await?;
            if new.read(key).await?.as_ref() == Some(&document) {
                return Ok(Copied::Yes(document.serial, history));
            }
            Err(StoreError::Damaged {
                key: key.to_owned(),
                reason: "what the new store gives back is not what was written".to_owned(),
                newest_good: None,
            })
        }
        .await;
        to.release().await?;
        written
    }
    .await;
    from.release().await?;
    copied
}

/// Oldest first, so that a store that keeps few keeps the newest.
async fn copy_versions(
    old: &dyn Store,
    new: &dyn Store,
    to: &dyn LockedState,
    document: &StateDocument,
    wanted: bool,
) -> Result<History, StoreError> {
    let key = &document.key;
    let versions = old.history(key).await?;
    let older: BTreeSet<u64> =
        versions.iter().map(|version| version.serial).filter(|serial| *serial < document.serial).collect();
    let room = match new.kept() {
        _ if !wanted => 0,
        Some(kept) => kept.saturating_sub(1).min(older.len()),
        None => older.len(),
    };
    let mut history = History { left: older.len() - room, ..History::default() };
    let there: BTreeSet<u64> = new.history(key).await?.iter().map(|version| version.serial).collect();
    for serial in older.into_iter().skip(history.left) {
        let version = match old.read_version(key, serial).await {
            Ok(version) => version,
            Err(StoreError::Damaged { .. } | StoreError::Sealed { .. } | StoreError::NoVersion { .. }) => {
                history.unreadable.push(serial);
                continue;
            }
            Err(error) => return Err(error),
        };
        // An earlier migration may have come this far.
        let is_there = there.contains(&serial)
            && new.read_version(key, serial).await.is_ok_and(|found| found == version);
        if !is_there {
            to.adopt_version(&version).await?;
        }
        history.copied += 1;
    }
    Ok(history)
}
