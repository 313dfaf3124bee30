//! Values from outside the source: encrypted files, the environment, other files.

use std::path::PathBuf;

use strata_blueprint::Resolver;
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_text_file};
use strata_secret::SecretString;
use strata_secrets::{MissingKey, SecretError};
use strata_source::{Reference, Source};

use super::Workspace;
use crate::SessionError;

/// Why a value cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unresolved {
    #[error("the variable `{0}` is not set")]
    NoVariable(String),
    #[error("there is no file `{0}`")]
    NoFile(String),
    #[error("`{path}` cannot be read: {source}")]
    File { path: String, source: std::io::Error },
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Unresolved {
    /// What helps where a key is missing.
    pub(super) fn hint(&self) -> Option<&'static str> {
        let Self::Secret(error) = self else { return None };
        Some(match error.missing_key()? {
            MissingKey::Age => {
                "give an age key that opens it by SOPS_AGE_KEY_FILE, or as `age.key` at the root of the repository"
            }
            MissingKey::VaultPassword => {
                "give the password by `--vault-password-file` or ANSIBLE_VAULT_PASSWORD_FILE, or at a terminal"
            }
        })
    }
}

impl From<Unresolved> for SessionError {
    fn from(error: Unresolved) -> Self {
        let own = Self::failed(error.to_string());
        error.hint().into_iter().fold(own, Self::hint).because(error)
    }
}

pub(super) struct Outside<'w> {
    workspace: &'w Workspace,
    folder: PathBuf,
}

impl<'w> Outside<'w> {
    /// `folder` is where files are looked for first, from the root of the repository.
    pub(super) fn new(workspace: &'w Workspace, folder: &str) -> Self {
        Self { workspace, folder: workspace.root.join(folder) }
    }

    fn file(&self, path: &str) -> Result<String, Unresolved> {
        let places = match path.strip_prefix("~/") {
            Some(rest) => {
                let home = self
                    .workspace
                    .surroundings
                    .variable("HOME")
                    .ok_or_else(|| Unresolved::NoVariable("HOME".to_owned()))?;
                vec![PathBuf::from(home).join(rest)]
            }
            None => vec![self.folder.join(path), self.workspace.root.join(path)],
        };
        let path = || path.to_owned();
        let place = places.iter().find(|place| place.exists()).ok_or_else(|| Unresolved::NoFile(path()))?;
        read_text_file(place, LARGEST_FILE).map_err(|source| Unresolved::File { path: path(), source })
    }

    /// The worst bug there could be, for the test that nothing leaks by one.
    #[cfg(debug_assertions)]
    fn break_down(&self, value: &SecretString) {
        let asked = self.workspace.surroundings.variable("STRATA_TEST_PANIC").is_some();
        assert!(!asked, "a bug that was asked for, with the value {}", value.expose());
    }

    pub(super) fn value(&self, source: &Source) -> Result<SecretString, Unresolved> {
        match source {
            Source::Env(name) => self
                .workspace
                .surroundings
                .variable(name)
                .map(|value| SecretString::new(value.clone()))
                .ok_or_else(|| Unresolved::NoVariable(name.clone())),
            Source::File(path) => {
                self.file(path).map(|text| SecretString::new(text.trim_end_matches('\n').to_owned()))
            }
            Source::Secret(name) => Ok(self.workspace.secret(name)?),
        }
    }
}

impl Resolver for Outside<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let value = self.value(&reference.source).map_err(|error| {
            let found = Diagnostic::error("unresolved", error.to_string()).at(reference.span);
            Box::new(found.maybe_hint(error.hint()))
        })?;
        if reference.is_secret() {
            self.workspace.redactor.add(&value);
            #[cfg(debug_assertions)]
            self.break_down(&value);
        }
        Ok(value)
    }
}

/// The same without a key: secrets are looked for by their names and stay closed.
pub(super) struct ByName<'w>(pub(super) Outside<'w>);

impl Resolver for ByName<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let name = match &reference.source {
            Source::Secret(name) => name,
            // A key that lies beside the repository is not everybody's; that it is not here is a warning of the source.
            Source::File(_) if reference.is_secret() => {
                return self.0.resolve(reference).or_else(|_| Ok(SecretString::new(CLOSED.to_owned())));
            }
            _ => return self.0.resolve(reference),
        };
        match self.0.workspace.secrets.contains(name) {
            // What is encrypted as a whole, or not to be had here, may have it.
            Ok(Some(true) | None) => Ok(SecretString::new(CLOSED.to_owned())),
            // The names are known: whoever asks for a value is told which ones there are.
            Ok(Some(false)) | Err(_) => self.0.resolve(reference),
        }
    }

    fn opens_secrets(&self) -> bool {
        false
    }
}

/// Stands in for a secret that nobody opens.
const CLOSED: &str = "not opened";
