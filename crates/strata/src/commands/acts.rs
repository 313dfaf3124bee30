//! `strata backup` and `strata snapshot`.

use std::process::ExitCode;

use strata_acts::Verb;

use super::CommandResult;
use super::execute::stop_on_interrupt;
use crate::context::Context;
use crate::workspace::Workspace;

pub(crate) async fn run(context: &Context, verb: Verb<'_>) -> CommandResult {
    let workspace = Workspace::load(context)?;
    strata_acts::run(verb, &workspace, &workspace.providers, context, &stop_on_interrupt()).await?;
    Ok(ExitCode::SUCCESS)
}
