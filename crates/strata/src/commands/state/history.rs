//! `strata state history`.

use std::process::ExitCode;

use super::place::tell_where;
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
    tell_where(&workspace, &args.stack, "list")?;
    for version in workspace.store()?.history(&workspace.state_key(&args.stack)?).await? {
        context.printer.event(&version);
        context.printer.line(format!("{:>6}  {}  {} bytes", version.serial, version.written, version.bytes));
    }
    Ok(ExitCode::SUCCESS)
}
