//! `strata state list`.

use std::process::ExitCode;

use strata_events::Event;

use super::address;
use crate::command_error::{CommandError, render};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::Workspace;

/// Lists the resources in the state
///
/// Those of a stack that OpenTofu makes are in OpenTofu's own state, and are listed as `STACK/tofu/ADDRESS`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, &args.stacks).await?;
    let mut unknown = None;
    for name in workspace.names(&args.stacks)? {
        // What cannot be looked at must not hide the others, nor go unsaid.
        if let Err(error) = of_tofu(context, &workspace, &name).await {
            let earlier = unknown.replace(error);
            earlier.iter().for_each(|error: &CommandError| context.printer.note(render(error)));
        }
        let state = workspace.read_state(&name).await?;
        for (address, resource) in &state.document.resources {
            context.printer.event_of(&state.document.key, &Event::Resource { address, resource });
            let what = views::plan::describe(address, &resource.spec);
            let partial = if resource.partial { ", unfinished" } else { "" };
            context.printer.line(format!("{address}  {}", paint(style::FAINT, format!("{what}{partial}"))));
        }
    }
    unknown.map_or(Ok(ExitCode::SUCCESS), Err)
}

async fn of_tofu(context: &Context, workspace: &Workspace<'_>, stack: &str) -> Result<(), CommandError> {
    let Some(driven) = address::open(workspace, stack).await? else { return Ok(()) };
    for held in driven.held().await? {
        let address = format!("{}{}", driven.prefix, held.address);
        let (id, tainted) = (held.id.as_deref().unwrap_or_default(), held.tainted);
        context.printer.event_of(&driven.key, &Event::tofu_resource(&held, &driven.prefix));
        let unfinished = if tainted { "unfinished" } else { "" };
        let what: Vec<&str> = [id, unfinished].into_iter().filter(|word| !word.is_empty()).collect();
        context.printer.line(format!("{address}  {}", paint(style::FAINT, what.join(", "))).trim_end());
    }
    Ok(())
}
