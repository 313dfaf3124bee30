//! `strata state migrate`.

use std::process::ExitCode;

use serde_json::json;
use strata_source::settings::state::State;
use strata_state::{Store, StoreError};

use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::{Workspace, show};

/// Copies every state to another store
///
/// Both stores are locked while a state is copied, and what was written is read back. A state with work that an interrupted apply left
/// open is not moved: `strata apply` first finishes it. The old store is left as it is; put the new settings into strata.yaml when
/// this command has ended well.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The new settings: what will stand at `state:` in strata.yaml, such as `{backend: s3, bucket: states}`, or a file with it
    #[arg(long, value_name = "SETTINGS")]
    to: String,
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
        match copy(context, old.as_ref(), new.as_ref(), key).await {
            Ok(Copied::Yes(serial)) => {
                moved += 1;
                context.printer.event(&json!({"event": "migrated", "key": key, "serial": serial}));
                context.printer.line(format!("copied `{key}`, serial {serial}"));
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
    Yes(u64),
    /// The same document: an earlier migration came this far.
    Already,
    Nothing,
}

async fn copy(context: &Context, old: &dyn Store, new: &dyn Store, key: &str) -> Result<Copied, StoreError> {
    let from = old.lock(key, context.lock_owner("state migrate")).await?;
    let copied = async {
        let Some(document) = old.read(key).await? else { return Ok(Copied::Nothing) };
        if !old.read_journal(key).await?.is_empty() {
            return Err(StoreError::Remote {
                what: format!("the state `{key}` cannot be moved"),
                reason: "an interrupted run left work open in it".to_owned(),
                hint: Some("`strata apply` finishes it".to_owned()),
            });
        }
        let to = new.lock(key, context.lock_owner("state migrate")).await?;
        let written = async {
            if new.read(key).await?.as_ref() == Some(&document) {
                return Ok(Copied::Already);
            }
            to.adopt(&document).await?;
            if new.read(key).await?.as_ref() == Some(&document) {
                return Ok(Copied::Yes(document.serial));
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
