//! `strata explain`.

use std::process::ExitCode;

use strata_diagnostics::CodePage;
use strata_events::Event;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;
use crate::views::columns::{folded, wrapped};
use crate::views::explained;

/// Says what the code of a message means, with files that cause it, and the way out
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The code as it stands in brackets, such as `unknown-key`; a line for each of them without one
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let asked = args.code.as_deref().map(explained::page).transpose();
    let asked = asked.map_err(|(wrong, hint)| CommandError::usage(wrong).hint(hint))?;
    let columns = context.printer.columns();
    let text = |page: &CodePage| match asked {
        Some(_) => wrapped(&page.plain(), columns),
        None => folded(&explained::line(page), 23, columns),
    };
    for page in asked.map_or_else(|| CodePage::all().collect(), |page| vec![page]) {
        context.printer.event(&Event::Code { code: page.code, text: page.text });
        context.printer.line(text(&page));
    }
    Ok(ExitCode::SUCCESS)
}
