//! `strata state show`.

use std::process::ExitCode;

use super::place::{self, BETWEEN, Place};
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Shows one resource as the state knows it; a secret is only its digest
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address, such as `web/vm/web-1`, or `cloud/tofu/aws_instance.web` of a stack that OpenTofu makes
    address: Place,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let stack = match &args.address {
        Place::Own(address) => address.stack(),
        Place::Tofu { stack, .. } => stack,
    };
    let workspace = Workspace::load_with_removed(context, &[stack.to_owned()]).await?;
    let json = match &args.address {
        Place::Own(address) => {
            let state = workspace.read_state(address.stack()).await?;
            let resource = state.document.resources.get(address).ok_or_else(|| no_such(address))?;
            serde_json::to_string_pretty(resource)
        }
        Place::Tofu { environment, stack, address } => {
            let driven = place::open(&workspace, stack).await?.ok_or_else(|| {
                CommandError::failed(format!("`{stack}` is not made by OpenTofu"))
                    .hint("`strata state list` shows what its state has")
            })?;
            let environment = environment.iter().map(|name| format!("{name}:"));
            let whole = format!("{}{stack}{BETWEEN}{address}", environment.collect::<String>());
            let held = driven.held().await?;
            let found = held.iter().find(|held| format!("{}{}", driven.prefix, held.address) == whole);
            serde_json::to_string_pretty(found.ok_or_else(|| no_such(&whole))?)
        }
    }
    .map_err(|error| CommandError::failed(error.to_string()))?;
    context.printer.raw(&format!("{json}\n"));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn no_such(address: &impl std::fmt::Display) -> CommandError {
    CommandError::failed(format!("the state has no `{address}`"))
        .hint("`strata state list` shows what it has")
}
