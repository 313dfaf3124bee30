//! `strata sim` and `strata demo` of a build without the simulator: they say what is missing.

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Needs a build with the simulator
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whatever a build with the simulator takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<String>,
}

pub(crate) async fn run(_: &Context, _: &Args) -> CommandResult {
    Err(CommandError::failed("this build of strata has no simulator")
        .hint("a default build has one: `cargo build --release`, without `--no-default-features`"))
}
