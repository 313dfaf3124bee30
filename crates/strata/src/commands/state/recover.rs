//! `strata state recover`.

use std::process::ExitCode;

use strata_events::Event;

use crate::commands::CommandResult;
use crate::context::Context;
use crate::workspace::Workspace;

/// Records guests that carry the ownership mark of a stack and that its state does not know
///
/// Nothing is changed on the target. The next plan compares them with the source: what the source asks for is kept, the rest is removed.
/// `strata recover` does more: it looks for everything that the source asks for, and removes nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The stack
    stack: String,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load_with_removed(context, std::slice::from_ref(&args.stack)).await?;
    workspace.connect_everything().await?;
    let recovered = workspace.recover(&args.stack).await?;
    for orphan in &recovered {
        let vmid = orphan.guest.as_ref().map(|guest| guest.vmid.into()).unwrap_or_default();
        context.printer.event_of(&orphan.key, &Event::Recovered { address: orphan.name(), vmid });
        context.printer.line(format!("recorded `{}`: {}", orphan.name(), orphan.described));
    }
    if recovered.is_empty() {
        context
            .printer
            .line(format!("every guest with the ownership mark of `{}` is in its state", args.stack));
    }
    Ok(ExitCode::SUCCESS)
}
