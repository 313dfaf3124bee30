//! `strata state history`.

use std::process::ExitCode;

use strata_events::Event;

use super::address::print_where;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Lists the kept versions of a state, newest first: when each was written, by whom, with which command and in which run
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    print_where(&workspace, &args.stack, "list")?;
    let key = workspace.state_key(&args.stack)?;
    for (kept, by) in workspace.history(&key).await? {
        context.printer.event_of(&key, &Event::StateVersion { kept: &kept, by: by.as_ref() });
        let by = by.map(|by| format!("  {by}")).unwrap_or_default();
        context.printer.line(format!("{:>6}  {}  {} bytes{by}", kept.serial, kept.written, kept.bytes));
    }
    Ok(ExitCode::SUCCESS)
}
