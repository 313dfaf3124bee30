//! `strata schema`.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::Value;
use strata_source::schema::Document;

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
    /// Every key with its meaning, for people
    #[arg(long)]
    markdown: bool,
    /// Writes the schemas of all kinds into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kind", "markdown"])]
    write: Option<PathBuf>,
}

/// Every kind of file with its schema.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Value)> {
    Document::all().iter().map(|document| (document.as_str(), document.schema()))
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    if let Some(folder) = &args.write {
        return write(folder);
    }
    let Some(document) = Document::all().iter().find(|document| document.as_str() == args.kind) else {
        let known: Vec<&str> = Document::all().iter().map(|document| document.as_str()).collect();
        return Err(CommandError::failed(format!("there is no schema `{}`", args.kind))
            .hint(format!("there are: {}", known.join(", "))));
    };
    if args.markdown {
        context.printer.raw(&document.reference());
    } else {
        context.printer.raw(&text(&document.schema()));
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &PathBuf) -> CommandResult {
    for (name, schema) in all() {
        let path = folder.join(format!("{name}.json"));
        std::fs::create_dir_all(folder)
            .and_then(|()| strata_secrets::replace(&path, text(&schema).as_bytes()))
            .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn text(schema: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(schema).unwrap_or_default())
}
