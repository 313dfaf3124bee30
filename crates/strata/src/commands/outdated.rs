//! `strata outdated`.

use std::process::ExitCode;

use strata_events::Event;
pub(crate) use strata_outdated::verb::Args;
use strata_outdated::verb::{self, Terminal};

use super::{CHANGES, CommandResult, execute};
use crate::command_error::CommandError;
use crate::context::Context;
use crate::workspace::Workspace;

pub(crate) async fn run(context: &Context, args: &Args) -> CommandResult {
    let outdated = verb::run(args, &*Workspace::load(context)?, context).await?;
    Ok(ExitCode::from(if outdated { CHANGES } else { 0 }))
}

impl Terminal for Context {
    fn line(&self, text: &str) {
        self.printer.line(text);
    }

    fn note(&self, text: &str) {
        self.printer.note(text);
    }

    fn event(&self, event: &Event<'_>) {
        self.printer.event(event);
    }

    fn ask(&self, question: &str) -> Result<(), CommandError> {
        execute::ask(question)
    }
}
