//! `strata graph`.

use std::process::ExitCode;

use strata_source::Model;

use super::CommandResult;
use crate::context::Context;
use crate::views;
use crate::views::graph::TofuStack;
use crate::workspace::Workspace;

/// Prints what depends on what, for Mermaid or Graphviz
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Mermaid,
    Dot,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let mut graphs = Vec::new();
    for name in workspace.names(&args.stacks)? {
        let graph = workspace.blueprint(&name)?.graph;
        graphs.push(views::graph::Drawn { description: workspace.description(&name)?, stack: name, graph });
    }
    let selected = workspace.select(&args.stacks)?;
    let driven = selected.iter().filter(|stack| matches!(stack.model, Model::Tofu(_)));
    let driven = driven.map(|stack| TofuStack {
        stack: stack.name.clone(),
        description: stack.description().map(str::to_owned),
        folder: stack.folder.clone(),
    });
    let driven: Vec<TofuStack> = driven.collect();
    let text = match args.format {
        Format::Mermaid => views::graph::mermaid(&graphs, &driven),
        Format::Dot => views::graph::dot(&graphs, &driven),
    };
    context.printer.raw(&text);
    Ok(ExitCode::SUCCESS)
}
