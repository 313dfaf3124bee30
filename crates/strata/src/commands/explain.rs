//! `strata explain`.

use std::process::ExitCode;

use strata_diagnostics::{CodePage, nearest};
use strata_events::Event;

use super::CommandResult;
use crate::command_error::CommandError;
use crate::context::Context;

/// Says what the code of a message means, with files that cause it, and the way out
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The code as it stands in brackets, such as `unknown-key`; a line for each of them without one
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> CommandResult {
    let Some(code) = &args.code else {
        for page in CodePage::all() {
            print(context, &page, format!("{:22} {}", page.code, page.summary()));
        }
        return Ok(ExitCode::SUCCESS);
    };
    // As it is pasted from a message.
    let code = code.trim_start_matches("error").trim_start_matches("warning").trim_matches(['[', ']', ':']);
    let Some(page) = CodePage::of(code) else {
        let meant = nearest(code, CodePage::all().map(|page| page.code));
        let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        let hint = hint.unwrap_or_else(|| "`strata explain` lists the codes".to_owned());
        return Err(CommandError::usage(format!("no message has the code `{code}`")).hint(hint));
    };
    print(context, &page, page.plain());
    Ok(ExitCode::SUCCESS)
}

fn print(context: &Context, page: &CodePage, text: String) {
    context.printer.event(&Event::Code { code: page.code, text: page.text });
    context.printer.line(text);
}
