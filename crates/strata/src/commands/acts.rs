//! `strata backup`, `strata snapshot` and `strata hypervisor`.

use std::process::ExitCode;

use strata_acts::Act;

use super::CommandResult;
use super::execute::stop_on_interrupt;
use crate::context::Context;
use crate::workspace::Workspace;

pub(crate) async fn run(context: &Context, act: &Act) -> CommandResult {
    let workspace = Workspace::load(context)?;
    strata_acts::run(act, &workspace, &workspace.providers, context, &stop_on_interrupt()).await?;
    Ok(ExitCode::SUCCESS)
}
