//! `strata state mv`.

use std::process::ExitCode;

use strata_resource::Address;

use super::address::StateAddress;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Gives a resource another address, in its stack or in another one, without touching the object
///
/// The ownership mark in a guest's notes names the old address; the next apply writes the new one. Between stacks both states are locked,
/// and the object is in one of them wherever this ends.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address it has
    from: StateAddress,
    /// The address it gets
    to: StateAddress,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let (from, to): (&Address, &Address) = (args.from.own()?, args.to.own()?);
    let stacks = [from.stack().to_owned(), to.stack().to_owned()];
    let workspace = Workspace::load_with_removed(context, &stacks).await?;
    workspace.move_record(from, to).await?;
    let key = workspace.state_key(to.stack())?;
    context.printer.event_of(&key, &strata_events::Event::Moved { from, to });
    context.printer.line(format!("moved `{from}` to `{to}`"));
    Ok(ExitCode::SUCCESS)
}
