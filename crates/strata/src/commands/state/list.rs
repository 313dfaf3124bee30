//! `strata state list`.

use std::process::ExitCode;

use serde_json::json;

use crate::commands::CommandResult;
use crate::context::Context;
use crate::style::{self, paint};
use crate::views;
use crate::workspace::Workspace;

/// Lists the resources in the state
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    for name in workspace.names(&args.stacks)? {
        let state = workspace.read_state(&name).await?;
        for (address, resource) in &state.document.resources {
            context
                .printer
                .event(&json!({"address": address, "spec": resource.spec, "facts": resource.facts}));
            let what = views::plan::describe(address, &resource.spec);
            let partial = if resource.partial { ", unfinished" } else { "" };
            context.printer.line(format!("{address}  {}", paint(style::FAINT, format!("{what}{partial}"))));
        }
    }
    Ok(ExitCode::SUCCESS)
}
