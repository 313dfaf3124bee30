//! `strata schema`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use strata_diagnostics::{LARGEST_FILE, read_text_file};
use strata_events::Event;
use strata_events::schemas::Output;
use strata_source::schema::Document;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Prints the JSON Schema of a kind of file, for editors, or of what Strata writes for programs
///
/// `strata init` puts those of files into .strata/schema/; the examples name them in their first line. docs/json.md explains the others.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `strata`, `stack`, `cluster`, `nodes`, `environment`, `hypervisor`; `events`, `plan-file`, `state`, `inventory`
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
        return write(context, folder);
    }
    if let Some(output) = Output::ALL.iter().find(|output| output.as_str() == args.kind && !args.markdown) {
        print(context, &args.kind, output.schema());
        return Ok(ExitCode::SUCCESS);
    }
    let Some(document) = Document::all().iter().find(|document| document.as_str() == args.kind) else {
        let files = Document::all().iter().map(|document| document.as_str());
        let known: Vec<&str> = files.chain(Output::ALL.iter().map(|output| output.as_str())).collect();
        return Err(CommandError::usage(format!("there is no schema `{}`", args.kind))
            .hint(format!("there are: {}", known.join(", "))));
    };
    if !args.markdown {
        print(context, &args.kind, document.schema());
    } else if context.printer.is_json() {
        context.printer.event(&Event::Reference { name: &args.kind, markdown: &document.reference() });
    } else {
        context.printer.raw(&document.reference());
    }
    Ok(ExitCode::SUCCESS)
}

fn print(context: &Context, name: &str, schema: Value) {
    if context.printer.is_json() {
        context.printer.event(&Event::Schema { name, schema });
    } else {
        context.printer.raw(&text(&schema));
    }
}

fn write(context: &Context, folder: &PathBuf) -> CommandResult {
    for (name, schema) in all() {
        let path = folder.join(format!("{name}.json"));
        std::fs::create_dir_all(folder)
            .and_then(|()| strata_secrets::replace(&path, text(&schema).as_bytes()))
            .map_err(|error| CommandError::failed(format!("cannot write `{}`: {error}", path.display())))?;
        context.printer.event(&Event::file(path.display(), None));
    }
    Ok(ExitCode::SUCCESS)
}

/// A clone has no schemas: `.strata/` is not in git, and the first lines of files name those in it. That they cannot be written, as in a
/// checkout that is only read, stops nothing.
pub(crate) fn put_missing(root: &Path) {
    let folder = root.join(".strata/schema");
    let settings = read_text_file(&root.join("strata.yaml"), LARGEST_FILE).unwrap_or_default();
    if folder.exists() || !settings.contains("$schema=.strata/schema/") {
        return;
    }
    if std::fs::create_dir_all(&folder).is_ok() {
        for (name, schema) in all() {
            let _ = strata_secrets::replace(&folder.join(format!("{name}.json")), text(&schema).as_bytes());
        }
    }
}

pub(crate) fn text(schema: &Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(schema).unwrap_or_default())
}
