//! `strata state rm`.

use std::process::ExitCode;

use strata_resource::Address;

use super::address::StateAddress;
use super::show::no_such;
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Forgets a resource; the object stays as it is
///
/// A guest still carries its ownership mark: if the source asks for it again, the next apply finds it by that.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Addresses, such as `web/vm/web-1`
    #[arg(required = true)]
    addresses: Vec<StateAddress>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let addresses: Vec<&Address> = args.addresses.iter().map(StateAddress::own).collect::<Result<_, _>>()?;
    let stacks: Vec<String> = addresses.iter().map(|address| address.stack().to_owned()).collect();
    let workspace = Workspace::load_with_removed(context, &stacks).await?;
    for address in addresses {
        let mut locked = workspace.lock(address.stack(), "state rm").await?;
        let outcome = if locked.state().resources.contains_key(address) {
            locked
                .edit(|document| {
                    document.resources.remove(address);
                })
                .await
                .map_err(CommandError::from)
        } else {
            Err(no_such(address))
        };
        locked.release().await?;
        outcome?;
        let key = workspace.state_key(address.stack())?;
        context.printer.event_of(&key, &strata_events::Event::Forgotten { address });
        context.printer.line(format!("forgot `{address}`; the object itself was not touched"));
        let stack = address.stack();
        context.printer.note(format!(
            "hint: `strata recover {stack}` records it again while the source asks for it; `strata drift --orphans` lists what is in no state"
        ));
    }
    Ok(ExitCode::SUCCESS)
}
