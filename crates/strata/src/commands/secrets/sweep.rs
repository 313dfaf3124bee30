//! `strata secrets sweep`: the watcher that `edit` starts beside itself.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::commands::CommandResult;

/// Waits for the end of standard input, then removes what an edit left behind
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    folder: PathBuf,
}

pub(super) fn run(args: &Args) -> CommandResult {
    // Nothing is ever written into the pipe; it ends when the other process does.
    let _ = std::io::stdin().lock().read(&mut [0]);
    strata_secrets::sweep(&args.folder);
    Ok(ExitCode::SUCCESS)
}
