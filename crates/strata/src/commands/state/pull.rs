//! `strata state pull`.

use std::process::ExitCode;

use super::address::print_where;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Prints the state document of a stack
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
    /// An older version
    #[arg(long)]
    serial: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "pull")?;
    let document = match args.serial {
        Some(serial) => workspace.store()?.read_version(&workspace.state_key(&args.stack)?, serial).await?,
        None => workspace.read_state(&args.stack).await?.document,
    };
    if context.printer.is_json() {
        let event = strata_events::Event::State { document: &document };
        context.printer.event_of(&document.key, &event);
        return Ok(ExitCode::SUCCESS);
    }
    let json =
        serde_json::to_string_pretty(&document).map_err(|error| CommandError::failed(error.to_string()))?;
    context.printer.raw(&format!("{json}\n"));
    Ok(ExitCode::SUCCESS)
}
