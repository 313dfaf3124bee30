//! `strata state show`.

use std::process::ExitCode;

use strata_resource::Address;

use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Shows one resource as the state knows it; a secret is only its digest
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address, such as `web/vm/web-1`
    address: Address,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let state = workspace.read_state(args.address.stack()).await?;
    let resource = state.document.resources.get(&args.address).ok_or_else(|| no_such(&args.address))?;
    let json =
        serde_json::to_string_pretty(resource).map_err(|error| CommandError::failed(error.to_string()))?;
    context.printer.raw(&format!("{json}\n"));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn no_such(address: &Address) -> CommandError {
    CommandError::failed(format!("the state has no `{address}`"))
        .hint("`strata state list` shows what it has")
}
