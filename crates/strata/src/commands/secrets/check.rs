//! `strata secrets check`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use strata_diagnostics::LARGEST_FILE;
use strata_events::Event;
use strata_secret::Redactor;
use strata_secrets::sops::CreationRules;
use strata_secrets::{Finding, SecretStore, Tracked, check_file, creation};

use super::{Keys, unruled};
use crate::command_error::CommandError;
use crate::commands::CommandResult;
use crate::workspace::{Workspace, find_root};

/// Finds secrets in the clear in tracked files
///
/// Files that should be encrypted and are not, private keys, also in base64 as kubeconfigs, talosconfigs and machine configurations have
/// them, tokens, saved plans, and the repository's own secrets and those of its clusters, as far as they can be opened here. It
/// says where, never what. Exit code 3 if there is one. `strata init` makes a hook that runs it before each commit.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(super) fn run(keys: &Keys<'_>, _args: &Args) -> CommandResult {
    let folder = keys.path(Path::new(""));
    let tracked = Tracked::below(&find_root(&folder).unwrap_or(folder));
    let mut search = Search { known: known_secrets(keys), rules: HashMap::new() };
    let printer = keys.context.printer;
    let mut count = 0_usize;
    let mut tell = |file: &Path, found: Vec<Finding>, where_: &str| {
        for finding in found {
            count += 1;
            printer.event(&Event::PlaintextSecret { file, message: finding.to_string() });
            printer.line(format!("{}: {finding}{where_}", file.display()));
        }
    };
    for file in &tracked.files {
        let path = tracked.root.join(file);
        // A link's target is looked at where it is; a submodule is a repository of its own.
        let Ok(found) = path.symlink_metadata().map(|found| (found.is_file(), found.len())) else { continue };
        match found {
            (true, size) if size > LARGEST_FILE => {
                printer.note(format!("`{}` was not searched: it is larger than 64 MiB", file.display()));
                continue;
            }
            (true, _) => {}
            (false, _) => continue,
        }
        tell(file, search.look(&path, &super::read(&path)?)?, "");
    }
    for file in &tracked.staged {
        if let Some(content) = tracked.in_index(file) {
            tell(file, search.look(&tracked.root.join(file), &content)?, " (as staged)");
        }
    }
    match count {
        0 => {
            printer.line(format!("no secrets in the clear in {} files", tracked.files.len()));
            Ok(ExitCode::SUCCESS)
        }
        count => Err(CommandError::refused(format!("{count} secrets in the clear"))
            .hint("`strata secrets encrypt FILE` encrypts it; what was committed once is known: change it")),
    }
}

struct Search {
    known: Redactor,
    /// By folder: most files share theirs.
    rules: HashMap<PathBuf, Option<(CreationRules, PathBuf)>>,
}

impl Search {
    fn look(&mut self, path: &Path, content: &[u8]) -> Result<Vec<Finding>, CommandError> {
        let folder = path.parent().unwrap_or(path);
        if !self.rules.contains_key(folder) {
            let rules = creation::rules(folder)
                .map_err(|error| unruled(folder, error))?
                .map(|(rules, root)| (rules, root.to_owned()));
            self.rules.insert(folder.to_owned(), rules);
        }
        let none = CreationRules::default();
        Ok(match self.rules.get(folder).and_then(Option::as_ref) {
            Some((rules, root)) => {
                check_file(path.strip_prefix(root).unwrap_or(path), content, rules, &self.known)
            }
            None => check_file(path, content, &none, &self.known),
        })
    }
}

/// The repository's secrets that can be opened without asking anybody: a hook must not wait for a person.
fn known_secrets(keys: &Keys<'_>) -> Redactor {
    let known = Redactor::new();
    if find_root(&keys.context.start()).is_err() {
        return known;
    }
    let Ok(workspace) = Workspace::load(keys.context) else { return known };
    let root = workspace.root();
    let access = Arc::new(keys.access_without_asking(root));
    for source in strata_session::secrets::sources(&workspace.repository().settings) {
        let store = SecretStore::new(root, vec![source], Arc::clone(&access)).with_redactor(known.clone());
        if let Err(error) = store.secrets() {
            keys.context.printer.note(format!("its secrets were not searched for: {error}"));
        }
    }
    for path in workspace.clusters().bundle_files() {
        match workspace.clusters().read_bundle_with(&path, &access) {
            Ok(bundle) => bundle.add_to(&known),
            Err(error) => {
                let path = path.display();
                keys.context.printer.note(format!("the secrets of `{path}` were not searched for: {error}"));
            }
        }
    }
    known
}
