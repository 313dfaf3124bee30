//! `strata state push`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_diagnostics::{LARGEST_DOCUMENT, read_file};
use strata_state::{FORMAT, StateDocument};

use super::address::print_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Puts a state document in the place of the one that is stored, as a new version
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
    /// A file from `strata state pull`
    file: PathBuf,
    /// Also if the stored state has changed since the file was pulled
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "push")?;
    let name = args.file.display();
    let bytes = read_file(&args.file, LARGEST_DOCUMENT)
        .map_err(|error| CommandError::failed(format!("cannot read `{name}`: {error}")))?;
    let pushed: StateDocument = serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::failed(format!("`{name}` is not a state: {error}")))?;
    if pushed.format > FORMAT {
        return Err(CommandError::failed(format!("`{name}` was written by a newer Strata")));
    }
    let mut locked = workspace.lock(&args.stack, "state push").await?;
    let stored = locked.state();
    let problem = if stored.lineage != pushed.lineage {
        Some(CommandError::refused(format!("`{name}` is the state of another stack or repository")))
    } else if stored.serial != pushed.serial && !args.force {
        Some(
            CommandError::refused(format!(
                "the stored state has serial {}, the file {}",
                stored.serial, pushed.serial
            ))
            .hint("pull again, or give `--force` if the file is what you want"),
        )
    } else {
        None
    };
    let outcome = match problem {
        Some(problem) => Err(problem),
        None => locked
            .edit(|document| {
                document.resources = pushed.resources;
                document.outputs = pushed.outputs;
            })
            .await
            .map_err(CommandError::from),
    };
    locked.release().await?;
    outcome?;
    let key = workspace.state_key(&args.stack)?;
    context.printer.event_of(&key, &strata_events::Event::Pushed { file: &args.file });
    context.printer.line(format!("pushed `{name}`"));
    Ok(ExitCode::SUCCESS)
}
