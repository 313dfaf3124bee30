//! `strata outdated`.

use std::process::ExitCode;

use strata_outdated::verb;
pub(crate) use strata_outdated::verb::Args;

use super::{CHANGES, CommandResult};
use crate::context::Context;
use crate::workspace::Workspace;

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let outdated = verb::run(args, &*Workspace::load(context)?, context).await?;
    Ok(ExitCode::from(if outdated { CHANGES } else { 0 }))
}
