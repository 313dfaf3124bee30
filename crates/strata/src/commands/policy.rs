//! `strata policy`.

use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use strata_source::world::Disk;

use super::CommandResult;
use crate::command_error::{CommandError, ErrorKind};
use crate::context::Context;
use crate::style::{self, paint};

/// Rules for modules, providers, sources and plans
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(CheckArgs),
    Test(strata_review::verbs::policy::Args),
}

/// Checks OpenTofu code, rendered or written by hand
///
/// Modules come from modules/ or a registry; modules and providers are pinned with `~>`; modules and stacks have their files; every
/// variable has a type and a description; modules have outputs for ids and addresses, and a README that names everything; no secret is in
/// the clear; no two stacks share a state.
#[derive(clap::Args)]
struct CheckArgs {
    /// How the report looks
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let args = match &args.verb {
        Verb::Check(args) => args,
        Verb::Test(args) => {
            strata_review::verbs::policy::run(args, &super::review::desk(context))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let root = crate::workspace::find_root(&context.start())?;
    let disk = Disk::new(&root, context.environment.clone());
    let (sources, found) = strata_tofu::policy::check(&disk);
    let printer = context.printer;
    match args.format {
        Format::Sarif => {
            let tool = ("strata", env!("CARGO_PKG_VERSION"));
            let mut log = strata_diagnostics::to_sarif(found.iter(), &sources, tool);
            // Forges show these beside the finding, and some refuse a rule without them.
            for rule in log["runs"][0]["tool"]["driver"]["rules"].as_array_mut().into_iter().flatten() {
                let (asks, helps) = strata_tofu::policy::about(rule["id"].as_str().unwrap_or_default());
                rule["shortDescription"] = json!({"text": asks});
                rule["fullDescription"] = json!({"text": format!("{asks}.")});
                rule["help"] = json!({"text": helps});
            }
            printer.raw(&format!("{log:#}\n"));
        }
        Format::Json => {
            let list: Vec<_> =
                found.iter().map(|found| strata_diagnostics::to_json(found, &sources)).collect();
            printer.raw(&format!("{:#}\n", json!(list)));
        }
        Format::Text => {
            let all: Vec<_> = found.iter().collect();
            crate::workspace::show(printer, &all, &sources);
            match found.error_count() {
                0 => printer.line(format!("{} no rule is broken", paint(style::CREATE, "clean:"))),
                1 => printer.note("1 finding"),
                count => printer.note(format!("{count} findings")),
            }
        }
    }
    if found.has_errors() {
        Err(CommandError::already_shown(ErrorKind::Failed))
    } else {
        Ok(ExitCode::SUCCESS)
    }
}
