//! `strata graph`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strata_drawing::{Change, Node, Picture};
use strata_engine::{PlanFile, StepAction};
use strata_resource::{Address, Layer, ResourceGraph, Spec};
use strata_source::Model;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::views;
use crate::views::graph::TofuStack;
use crate::workspace::Workspace;

/// Prints what depends on what: for Mermaid or Graphviz, as an image or a page; with `--json` for programs
///
/// An image has the layers as bands and the hypervisors as lanes. The page is one file; it shows what belongs to an object when the
/// pointer is on it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Stacks by name or path, or `layer:NAME`; all stacks without one
    #[arg(value_name = "STACK")]
    stacks: Vec<String>,
    /// The language of the drawing; Mermaid without it
    #[arg(long, value_enum, conflicts_with = "json")]
    format: Option<Format>,
    /// Colours what this saved plan changes, in an image or a page
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    plan: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Mermaid,
    Dot,
    Svg,
    Html,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let (mut graphs, mut driven) = (Vec::new(), Vec::new());
    let mut drawing = Drawing::of(args.plan.as_deref())?;
    for stack in workspace.select(&args.stacks)? {
        let (name, description) = (stack.name.clone(), stack.description().map(str::to_owned));
        let graph = workspace.blueprint_of(stack)?.graph;
        let folder = matches!(stack.model, Model::Tofu(_)).then(|| stack.folder.clone());
        let layer = strata_session::layer(stack);
        let event = views::graph::event(layer, description.as_deref(), &graph, folder.as_deref());
        context.printer.event_of(&strata_session::key(stack), &event);
        drawing.add(&name, layer, &graph, folder.as_deref());
        if let Some(folder) = folder {
            driven.push(TofuStack { stack: name.clone(), description: description.clone(), folder });
        }
        graphs.push(views::graph::Drawn { stack: name, description, graph });
    }
    let text = match args.format {
        _ if context.printer.is_json() => return Ok(ExitCode::SUCCESS),
        None | Some(Format::Mermaid) => views::graph::mermaid(&graphs, &driven),
        Some(Format::Dot) => views::graph::dot(&graphs, &driven),
        Some(Format::Svg) => strata_drawing::svg(&drawing.picture),
        Some(Format::Html) => strata_drawing::html(&drawing.picture, "What there is, and what needs what"),
    };
    context.printer.raw(&text);
    Ok(ExitCode::SUCCESS)
}

/// The picture as it is gathered, and what a plan does to what is in it.
struct Drawing {
    picture: Picture,
    changes: BTreeMap<Address, (Change, Spec)>,
}

impl Drawing {
    fn of(plan: Option<&Path>) -> Result<Self, CommandError> {
        let file: Option<PlanFile> = plan.map(super::apply::read).transpose()?;
        let mut changes: BTreeMap<Address, (Change, Spec)> = BTreeMap::new();
        for step in file.iter().flat_map(|file| &file.stacks).flat_map(|stack| &stack.plan.steps) {
            let change = match step.action {
                _ if step.replacement => Change::Replace,
                StepAction::Create => Change::Create,
                StepAction::Update => Change::Update,
                StepAction::Delete | StepAction::DeleteFormer => Change::Delete,
                StepAction::Record | StepAction::Forget => continue,
            };
            changes.insert(step.address.clone(), (change, step.spec.clone()));
        }
        let layers = [Layer::Hypervisors, Layer::Platforms, Layer::Workloads].map(|layer| layer.to_string());
        Ok(Self { picture: Picture { layers: layers.to_vec(), ..Picture::default() }, changes })
    }

    fn node(&mut self, address: &Address, stack: &str, layer: Layer, lane: String) {
        let change = self.changes.remove(address).map(|(change, _)| change);
        let label = format!("{} {}", address.kind(), address.name());
        let (id, stack, layer) = (address.to_string(), stack.to_owned(), layer as usize);
        self.picture.nodes.push(Node { id, label, stack, layer, lane, change });
    }

    fn add(&mut self, stack: &str, layer: Layer, graph: &ResourceGraph, folder: Option<&str>) {
        for resource in graph.iter() {
            // A machine is where its VM is.
            let lane = place(&resource.spec).or_else(|| {
                let needs = resource.depends_on.iter().filter(|need| need.name() == resource.address.name());
                needs.filter_map(|need| graph.get(need)).find_map(|need| place(&need.spec))
            });
            self.node(&resource.address, stack, layer, lane.unwrap_or_default());
            let edges = resource.depends_on.iter();
            self.picture.edges.extend(edges.map(|from| (from.to_string(), resource.address.to_string())));
        }
        // What is destroyed is in no source any more.
        let gone = self.changes.iter().filter(|(address, (change, _))| {
            address.stack() == stack && *change == Change::Delete && graph.get(address).is_none()
        });
        let gone: Vec<(Address, Spec)> =
            gone.map(|(address, (_, spec))| (address.clone(), spec.clone())).collect();
        for (address, spec) in gone {
            self.node(&address, stack, layer, place(&spec).unwrap_or_default());
        }
        if let Some(folder) = folder {
            let (id, label, lane) = (stack.to_owned(), format!("OpenTofu {folder}"), String::new());
            self.picture.nodes.push(Node {
                stack: id.clone(),
                id,
                label,
                layer: layer as usize,
                lane,
                change: None,
            });
        }
    }
}

/// The hypervisor that an object is on, if it is on one.
fn place(spec: &Spec) -> Option<String> {
    Some(spec.get("node")?.as_text()?.to_owned())
}
