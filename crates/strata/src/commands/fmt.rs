//! `strata fmt`.

use std::process::ExitCode;

pub(crate) use strata_fmt::verb::Args;
use strata_fmt::verb::{self, Terminal};

use super::{CHANGES, CommandResult};
use crate::context::Context;

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let printer = context.printer;
    let terminal = Terminal {
        line: &|text| printer.line(text),
        raw: &|text| printer.raw(text),
        note: &|text| printer.note(text),
        detail: &|text| printer.detail(text),
        event: &|event| printer.event(event),
        input: &|| std::io::read_to_string(std::io::stdin()),
    };
    let found = verb::run(args, &context.start(), &terminal)?;
    Ok(ExitCode::from(if found { CHANGES } else { 0 }))
}
