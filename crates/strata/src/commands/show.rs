//! `strata show`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_events::Event;

use super::CommandResult;
use crate::context::Context;
use crate::views;

/// Shows what a saved plan does and what it is bound to
///
/// Nothing is asked, not even whether the plan is still fresh: `strata apply FILE` finds that out, and refuses if it is not.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file from `strata plan -o`
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let (file, printer) = (super::apply::read(&args.file)?, context.printer);
    let names = file.names();
    printer.event(&Event::PlanFile {
        file: &args.file,
        strata: &file.strata,
        commit: file.commit.as_deref(),
        destroy: file.destroy,
        stacks: names.iter().map(String::as_str).collect(),
        waiting: &file.waiting,
    });
    for (key, event) in views::saved::events(&file) {
        printer.event_of(&key, &event);
    }
    printer.event(&Event::Summary { summary: views::saved::summary(&file) });
    printer.line(views::saved::render(&file, printer.columns(), printer.is_verbose()));
    Ok(ExitCode::SUCCESS)
}
