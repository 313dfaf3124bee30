//! `strata schema`.

use std::process::ExitCode;

use serde_json::Value;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Prints the JSON Schema of a kind of file, for editors
///
/// `strata init` puts all of them into .strata/schema/; the examples name them in their first line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `strata`, `stack`, `cluster`, `nodes`, `environment`, `hypervisor`
    #[arg(default_value = "stack")]
    kind: String,
    /// Writes all of them into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    write: Option<std::path::PathBuf>,
}

/// Every kind of file with its schema.
pub(crate) fn all() -> Vec<(&'static str, Value)> {
    use strata_source::{cluster, environment, hypervisor, settings, stack};
    vec![
        ("strata", strata_yaml::schema::<settings::Settings>("strata.yaml")),
        ("stack", strata_yaml::schema::<stack::Stack>("stack.yaml")),
        ("cluster", strata_yaml::schema::<cluster::Cluster>("cluster.yaml")),
        ("nodes", strata_yaml::schema::<cluster::topology::NodesFile>("nodes.yaml")),
        ("environment", strata_yaml::schema::<environment::Environment>("environments/NAME.yaml")),
        ("hypervisor", strata_yaml::schema::<hypervisor::Hypervisor>("hypervisors/NAME.yaml")),
    ]
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    if let Some(folder) = &args.write {
        for (name, schema) in all() {
            let path = folder.join(format!("{name}.json"));
            let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
            std::fs::create_dir_all(folder)
                .and_then(|()| std::fs::write(&path, format!("{text}\n")))
                .map_err(|error| {
                    CommandError::failed(format!("cannot write `{}`: {error}", path.display()))
                })?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let schemas = all();
    let Some((_, schema)) = schemas.iter().find(|(name, _)| *name == args.kind) else {
        let known: Vec<&str> = schemas.iter().map(|(name, _)| *name).collect();
        return Err(CommandError::failed(format!("there is no schema `{}`", args.kind))
            .hint(format!("there are: {}", known.join(", "))));
    };
    let text = serde_json::to_string_pretty(schema).unwrap_or_default();
    context.printer.raw(&format!("{text}\n"));
    Ok(ExitCode::SUCCESS)
}
