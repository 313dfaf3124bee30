//! `strata secrets decrypt`.

use std::path::PathBuf;
use std::process::ExitCode;

use strata_events::Event;

use super::{Keys, failed, read, sealed, unopened};
use crate::command_error::CommandError;
use crate::commands::CommandResult;

/// Writes the content of an encrypted file to standard output
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file of `sops` or `ansible-vault`, or YAML with `!vault` values
    file: PathBuf,
}

pub(super) fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    let path = keys.path(&args.file);
    let opened = sealed(&path, &read(&path)?)?.open(&keys.access(&path));
    let opened = opened.map_err(|error| unopened(&path, error))?;
    let plain = opened.plaintext().map_err(|error| failed(&path, error))?;
    if keys.context.printer.is_json() {
        keys.context.printer.event(&Event::decrypted(&path, plain.expose()));
        return Ok(ExitCode::SUCCESS);
    }
    let written = keys.context.printer.bytes(plain.expose());
    written.map_err(|error| CommandError::failed(format!("cannot write to standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
