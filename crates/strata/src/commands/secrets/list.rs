//! `strata secrets list`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use strata_events::Event;
use strata_secrets::{Sealed, SecretName, SecretStore, Source};

use super::{Keys, failed, read, sealed};
use crate::commands::CommandResult;
use crate::context::Context;
use crate::style::{self, paint};
use crate::workspace::Workspace;

/// Lists the names of secrets, never a value
///
/// A key is needed only for vaults around whole files, whose names are encrypted too.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// An encrypted file; all that `strata.yaml` lists without one
    file: Option<PathBuf>,
}

pub(super) fn run(keys: &Keys<'_>, args: &Args) -> CommandResult {
    match &args.file {
        Some(file) => list_file(keys, file),
        None => list_all(keys),
    }
}

fn list_all(keys: &Keys<'_>) -> CommandResult {
    let workspace = Workspace::load(keys.context)?;
    let root = workspace.root();
    let access = Arc::new(keys.access(root));
    let mut problem = None;
    // File by file: one that cannot be opened must not hide the others.
    for source in strata_session::secrets::sources(&workspace.repository().settings) {
        match SecretStore::new(root, vec![source], Arc::clone(&access)).all_names() {
            Ok(names) => names.iter().for_each(|secret| show(keys.context, secret, true)),
            Err(error) => {
                problem = problem.or(Some(crate::command_error::CommandError::failed(error.to_string())))
            }
        }
    }
    problem.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn list_file(keys: &Keys<'_>, file: &Path) -> CommandResult {
    let path = keys.path(file);
    let display = file.display().to_string();
    let named = |name: String| SecretName { file: display.clone(), name };
    let names: Vec<SecretName> = match sealed(&path, &read(&path)?)? {
        Sealed::Sops(file) => file.names().iter().map(|name| named(name.join("."))).collect(),
        Sealed::Vault(_) | Sealed::Inline(_) => {
            let access = Arc::new(keys.access(&path));
            let store = SecretStore::new(Path::new(""), vec![Source::Vault(path.clone())], access);
            let names = store.all_names().map_err(|error| failed(&path, error))?;
            names.into_iter().map(|secret| named(secret.name)).collect()
        }
    };
    names.iter().for_each(|secret| show(keys.context, secret, false));
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, secret: &SecretName, with_file: bool) {
    context.printer.event(&Event::Secret { name: &secret.name, file: &secret.file });
    let file = if with_file { format!("  {}", paint(style::FAINT, &secret.file)) } else { String::new() };
    context.printer.line(format!("{}{file}", secret.name));
}
