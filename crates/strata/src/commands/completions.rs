//! `strata completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use super::CommandResult;
use crate::cli::Cli;
use crate::context::Context;

/// Prints completions for a shell
///
/// For bash: `strata completions bash > ~/.local/share/bash-completion/completions/strata`
#[derive(clap::Args)]
pub(crate) struct Args {
    shell: clap_complete::Shell,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "strata", &mut text);
    let script = String::from_utf8_lossy(&text);
    if context.printer.is_json() {
        let shell = args.shell.to_string();
        context.printer.event(&strata_events::Event::Completions { shell, script: &script });
    } else {
        context.printer.raw(&script);
    }
    Ok(ExitCode::SUCCESS)
}
