//! `strata review`.

use std::process::ExitCode;

use clap::Subcommand;
use strata_review::{Git, Range, changed};

use super::{CHANGES, CommandResult};
use crate::context::Context;
use crate::workspace::find_root;

/// Validates a change before it is merged
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Changed(ChangedArgs),
}

/// Says which stacks a commit range can change, in which environments, and why
///
/// A stack counts as changed when anything that it is made from does: its files, defaults and profiles, its environment, its target, files
/// that it names, files of secrets (nothing is decrypted), outputs and templates of other stacks, code of OpenTofu. Where the clone does not
/// have the base, every stack counts, and the command says so. No target is asked.
#[derive(clap::Args)]
struct ChangedArgs {
    /// The commit, branch or tag that the change is made upon
    #[arg(long, value_name = "REF")]
    base: String,
    /// The commit, branch or tag with the change
    #[arg(long, value_name = "REF", default_value = "HEAD")]
    head: String,
    /// Exit code 2 if anything can change
    #[arg(long)]
    detailed_exitcode: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let (Verb::Changed(args), printer) = (&args.verb, context.printer);
    let git = Git::open(&find_root(&context.start())?)?;
    let range = Range::read(&git, &args.base, &args.head, &context.environment)?;
    for one in &range.changed {
        printer.event_of(&one.key.state_key(), &one.event());
    }
    printer.event(&range.event());
    for said in range.unknown.iter().chain(&range.remark) {
        printer.note(format!("warning: {said}"));
    }
    printer.line(format!("{}{}", changed::render(&range.changed), range.line()));
    let found = !range.changed.is_empty() && args.detailed_exitcode;
    Ok(if found { ExitCode::from(CHANGES) } else { ExitCode::SUCCESS })
}
