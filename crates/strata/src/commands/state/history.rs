//! `strata state history`.

use std::process::ExitCode;

use super::address::print_where;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Lists the kept versions of a state, newest first
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "list")?;
    let key = workspace.state_key(&args.stack)?;
    for version in workspace.store()?.history(&key).await? {
        context.printer.event_of(&key, &strata_events::Event::StateVersion { kept: &version });
        context.printer.line(format!("{:>6}  {}  {} bytes", version.serial, version.written, version.bytes));
    }
    Ok(ExitCode::SUCCESS)
}
