//! The resource graph as text for drawing programs.

use std::fmt::Write as _;

use strata_events::{Event, GraphEdge, GraphNode};
use strata_resource::{Address, Layer, ResourceGraph, Shape, Stage};

/// A node name that both languages take.
fn node(address: &Address) -> String {
    address.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// A stack of the graph.
pub struct Drawn {
    /// Its name.
    pub stack: String,
    /// What it is for, in the user's words.
    pub description: Option<String>,
    /// Its resources, and what depends on what.
    pub graph: ResourceGraph,
}

/// A stack of OpenTofu.
pub struct TofuStack {
    /// Its name.
    pub stack: String,
    /// What it is for, in the user's words.
    pub description: Option<String>,
    /// The folder of its code.
    pub folder: String,
}

/// The heading of a part of a stack. No language takes a quotation mark or a line break there.
fn heading(stack: &str, description: Option<&str>, part: &str) -> String {
    let words =
        description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "'"));
    words.map_or_else(
        || format!("{stack}: {part}"),
        |words| format!("{stack}: {part} ({})", words.replace('\\', "/")),
    )
}

fn by_stage(graph: &ResourceGraph) -> Vec<(Stage, Vec<&Address>)> {
    let mut stages: Vec<(Stage, Vec<&Address>)> = Vec::new();
    for resource in graph.iter() {
        match stages.iter_mut().find(|(stage, _)| *stage == resource.stage) {
            Some((_, addresses)) => addresses.push(&resource.address),
            None => stages.push((resource.stage, vec![&resource.address])),
        }
    }
    stages.sort_by_key(|(stage, _)| *stage);
    stages
}

/// The graph of a stack for programs; `tofu` is the folder of its code, where OpenTofu makes it.
pub fn event<'g>(
    layer: Layer,
    description: Option<&'g str>,
    graph: &'g ResourceGraph,
    tofu: Option<&'g str>,
) -> Event<'g> {
    let nodes = graph.iter().map(|resource| GraphNode {
        address: &resource.address,
        kind: resource.kind().to_string(),
        name: resource.address.name(),
        stage: resource.stage,
        target: &resource.target,
    });
    let edges = graph.iter().flat_map(|resource| {
        resource.depends_on.iter().map(|from| GraphEdge { from, to: &resource.address })
    });
    Event::Graph { layer, description, nodes: nodes.collect(), edges: edges.collect(), tofu }
}

/// Stacks of OpenTofu are one node each: what is in them, only OpenTofu knows.
pub fn mermaid(graphs: &[Drawn], driven: &[TofuStack]) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for Drawn { stack, description, graph } in graphs {
        for (stage, addresses) in by_stage(graph) {
            let heading = heading(stack, description.as_deref(), &stage.to_string());
            let _ = writeln!(text, "  subgraph {}_{stage}[\"{heading}\"]", stack.replace(['/', '-'], "_"));
            for address in addresses {
                let (open, close) = match address.kind().table().shown.shape {
                    Shape::Volume => ("[(", ")]"),
                    Shape::Template => ("[[", "]]"),
                    Shape::Secret => ("{{", "}}"),
                    Shape::Plain => ("[", "]"),
                };
                let _ = writeln!(
                    text,
                    "    {}{open}\"{} {}\"{close}",
                    node(address),
                    address.kind(),
                    address.name()
                );
            }
            text.push_str("  end\n");
        }
        for resource in graph.iter() {
            for to in &resource.depends_on {
                let _ = writeln!(text, "  {} --> {}", node(to), node(&resource.address));
            }
        }
    }
    for TofuStack { stack, description, folder } in driven {
        let heading = heading(stack, description.as_deref(), "OpenTofu");
        let id = stack.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let _ = writeln!(text, "  subgraph {id}_tofu[\"{heading}\"]\n    {id}[/\"{folder}\"/]\n  end");
    }
    text
}

/// For Graphviz: a box around each stage of a stack, and one node for each stack of OpenTofu.
pub fn dot(graphs: &[Drawn], driven: &[TofuStack]) -> String {
    let mut text =
        "digraph strata {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n".to_owned();
    for Drawn { stack, description, graph } in graphs {
        for (stage, addresses) in by_stage(graph) {
            let heading = heading(stack, description.as_deref(), &stage.to_string());
            let _ = writeln!(text, "  subgraph \"cluster_{stack}_{stage}\" {{\n    label=\"{heading}\";");
            for address in addresses {
                let _ =
                    writeln!(text, "    \"{address}\" [label=\"{} {}\"];", address.kind(), address.name());
            }
            text.push_str("  }\n");
        }
        for resource in graph.iter() {
            for to in &resource.depends_on {
                let _ = writeln!(text, "  \"{to}\" -> \"{}\";", resource.address);
            }
        }
    }
    for TofuStack { stack, description, folder } in driven {
        let heading = heading(stack, description.as_deref(), "OpenTofu");
        let label = format!("label=\"{heading}\"");
        let _ = writeln!(
            text,
            "  subgraph \"cluster_{stack}_tofu\" {{\n    {label};\n    \"{stack}\" [label=\"{folder}\"];\n  }}"
        );
    }
    text.push_str("}\n");
    text
}
