//! `strata mcp`.

use std::process::ExitCode;
use std::sync::Arc;

use strata_mcp::{Program, TOOLS};

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Serves the verbs that only look to agents, over standard input and output (Model Context Protocol)
///
/// An agent can validate, plan, look for drift and ask what a message means. It cannot change a source, a state or a machine: what it
/// wants to have changed goes into the files of the repository, and is applied by a person or by the review of the change. docs/agents.md
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(context: &Context, _args: &Args) -> CommandResult {
    let failed = |error: std::io::Error| CommandError::failed(format!("cannot go on: {error}"));
    let path = std::env::current_exe().map_err(failed)?;
    let runner = Program { path, folder: context.start(), environment: context.global.environment.clone() };
    let name = ("strata", env!("CARGO_PKG_VERSION"));
    strata_mcp::serve_standard(name, &TOOLS, Arc::new(runner)).await.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}
