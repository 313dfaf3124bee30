//! `strata state show`.

use std::process::ExitCode;

use strata_events::Event;

use super::address::{self, BETWEEN, StateAddress};
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Shows one resource as the state knows it; a secret is only its digest
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The address, such as `web/vm/web-1`, or `cloud/tofu/aws_instance.web` of a stack that OpenTofu makes
    address: StateAddress,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let stack = match &args.address {
        StateAddress::Own(address) => address.stack(),
        StateAddress::Tofu { stack, .. } => stack,
    };
    let workspace = Workspace::load_with_removed(context, &[stack.to_owned()]).await?;
    let json = match &args.address {
        StateAddress::Own(address) => {
            let state = workspace.read_state(address.stack()).await?;
            let resource = state.document.resources.get(address).ok_or_else(|| no_such(address))?;
            if context.printer.is_json() {
                context.printer.event_of(&state.document.key, &Event::Resource { address, resource });
                return Ok(ExitCode::SUCCESS);
            }
            serde_json::to_string_pretty(resource)
        }
        StateAddress::Tofu { environment, stack, address } => {
            let driven = address::open(&workspace, stack).await?.ok_or_else(|| {
                CommandError::failed(format!("`{stack}` is not made by OpenTofu"))
                    .hint("`strata state list` shows what its state has")
            })?;
            let environment = environment.iter().map(|name| format!("{name}:"));
            let whole = format!("{}{stack}{BETWEEN}{address}", environment.collect::<String>());
            let held = driven.held().await?;
            let found = held.iter().find(|held| format!("{}{}", driven.prefix, held.address) == whole);
            let found = found.ok_or_else(|| no_such(&whole))?;
            if context.printer.is_json() {
                context.printer.event_of(&driven.key, &Event::tofu_resource(found, &driven.prefix));
                return Ok(ExitCode::SUCCESS);
            }
            serde_json::to_string_pretty(found)
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
