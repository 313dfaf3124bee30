//! `strata graph`.

use std::process::ExitCode;

use strata_source::Model;

use super::CommandResult;
use crate::context::Context;
use crate::views;
use crate::views::graph::TofuStack;
use crate::workspace::Workspace;

/// Prints what depends on what, for Mermaid or Graphviz; with `--json` for programs
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// The language of the drawing; Mermaid without it
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Mermaid,
    Dot,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let (mut graphs, mut driven) = (Vec::new(), Vec::new());
    for stack in workspace.select(&args.stacks)? {
        let (name, description) = (stack.name.clone(), stack.description().map(str::to_owned));
        let graph = workspace.blueprint_of(stack)?.graph;
        let folder = matches!(stack.model, Model::Tofu(_)).then(|| stack.folder.clone());
        let layer = strata_session::layer(stack);
        let event = views::graph::event(layer, description.as_deref(), &graph, folder.as_deref());
        context.printer.event_of(&strata_session::key(stack), &event);
        if let Some(folder) = folder {
            driven.push(TofuStack { stack: name.clone(), description: description.clone(), folder });
        }
        graphs.push(views::graph::Drawn { stack: name, description, graph });
    }
    let text = match args.format {
        _ if context.printer.is_json() => return Ok(ExitCode::SUCCESS),
        None | Some(Format::Mermaid) => views::graph::mermaid(&graphs, &driven),
        Some(Format::Dot) => views::graph::dot(&graphs, &driven),
    };
    context.printer.raw(&text);
    Ok(ExitCode::SUCCESS)
}
