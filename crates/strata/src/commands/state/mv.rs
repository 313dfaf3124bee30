//! `strata state mv`.

use std::process::ExitCode;

use super::place::Place;
use super::show::no_such;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Gives a resource another address within its stack, without touching the object
///
/// The mark in a guest's notes names the old address; the next apply writes the new one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address it has
    from: Place,
    /// The address it gets
    to: Place,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let (from, to) = (args.from.own()?, args.to.own()?);
    if from.stack() != to.stack() || from.environment() != to.environment() || from.kind() != to.kind() {
        return Err(CommandError::refused("a resource moves only within its stack and kind"));
    }
    let workspace = Workspace::load_with_removed(context, &[from.stack().to_owned()]).await?;
    let mut locked = workspace.lock(from.stack(), "state mv").await?;
    let known = &locked.state().resources;
    let problem = if !known.contains_key(from) {
        Some(no_such(from))
    } else if known.contains_key(to) {
        Some(CommandError::refused(format!("the state has a `{to}` already")))
    } else {
        None
    };
    let outcome = match problem {
        Some(problem) => Err(problem),
        None => locked
            .edit(|document| {
                if let Some(resource) = document.resources.remove(from) {
                    document.resources.insert(to.clone(), resource);
                }
                for resource in document.resources.values_mut() {
                    if resource.depends_on.remove(from) {
                        resource.depends_on.insert(to.clone());
                    }
                }
            })
            .await
            .map_err(CommandError::from),
    };
    locked.release().await?;
    outcome?;
    context.printer.line(format!("moved `{from}` to `{to}`"));
    Ok(ExitCode::SUCCESS)
}
