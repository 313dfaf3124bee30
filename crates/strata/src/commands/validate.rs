//! `strata validate`.

use std::process::ExitCode;

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::{Workspace, show};

/// Checks every file of the repository and every environment, without a key and without asking anything remote
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(context: &Context, _args: &Args) -> CommandResult {
    let workspace = Workspace::read(context, |_| true)?;
    let shared = workspace.clusters().shared_bundles();
    if !shared.is_empty() {
        show(context.printer, &shared.iter().collect::<Vec<_>>(), &workspace.repository().sources);
        return Err(CommandError::already_shown(ErrorKind::Failed));
    }
    let (mut stacks, mut objects) = (0, 0);
    for stack in workspace.repository().effective() {
        objects += workspace.blueprint_by_names(stack)?.graph.len();
        stacks += 1;
    }
    context.printer.event(&strata_events::Event::Valid { stacks, objects });
    let what = format!("{stacks} stacks with {objects} objects");
    context.printer.line(format!("{} {what}", paint(style::CREATE, "valid:")));
    Ok(ExitCode::SUCCESS)
}
