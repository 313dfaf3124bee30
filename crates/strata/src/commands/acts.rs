//! `strata backup` and `strata snapshot`.

use std::process::ExitCode;

use strata_acts::{Person, Verb};

use super::CommandResult;
use super::execute::{ask, stop_on_interrupt};
use crate::context::Context;
use crate::workspace::Workspace;

pub(crate) async fn run(context: &Context, verb: Verb<'_>) -> CommandResult {
    let workspace = Workspace::load(context)?;
    let printer = context.printer;
    let person = Person {
        line: &|text| printer.line(text),
        note: &|text| printer.note(text),
        event: &|key, event| printer.event_of(key, event),
        ask: &ask,
        stop: stop_on_interrupt(),
    };
    strata_acts::run(verb, &workspace, &workspace.providers, &person).await?;
    Ok(ExitCode::SUCCESS)
}
