//! `strata state migrate`.

use std::path::Path;
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_events::Event;
use strata_source::settings::state::State;
use strata_state::{Copied, CopiedHistory, StoreError, copy_state};

use crate::command_error::{CommandError, ErrorKind};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::{Workspace, show};

/// Copies every state to another store
///
/// Both stores are locked while a state is copied, and what was written is read back. A state with work that an interrupted apply left
/// open is not moved: `strata apply` first finishes it. The old store is left as it is; put the new settings into strata.yaml when
/// this command has succeeded. Older versions go along, with their serials, as far as the new store keeps them; what stays behind is
/// named.
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
    let (name, text) = match read_text_file(Path::new(&args.to), LARGEST_FILE) {
        Ok(text) => (args.to.as_str(), text),
        Err(_) => ("--to", args.to.clone()),
    };
    let (settings, sources, diagnostics) = State::parse(name, &text);
    let Some(settings) = settings else {
        show(context.printer, &diagnostics.iter().collect::<Vec<_>>(), &sources);
        return Err(CommandError::already_shown(ErrorKind::Failed));
    };
    let old = workspace.store()?;
    let new = workspace.other_store(&settings, &sources)?;
    let mut keys = old.keys().await?;
    // A store may hold states of others beside ours.
    let known = workspace.state_keys();
    let mut moved = 0;
    keys.sort_by_key(|key| !known.contains(key));
    for key in &keys {
        let owner = || workspace.surroundings().lock_owner("state migrate");
        match copy_state(old.as_ref(), new.as_ref(), key, !args.without_history, &owner).await {
            Ok(Copied::Yes(serial, history)) => {
                moved += 1;
                report(context, key, serial, &history);
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

fn report(context: &Context, key: &str, serial: u64, history: &CopiedHistory) {
    let CopiedHistory { copied, left, unreadable } = history;
    let (older_versions, left_behind) = (*copied, left + unreadable.len());
    context.printer.event_of(key, &Event::Migrated { key, serial, older_versions, left_behind });
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
