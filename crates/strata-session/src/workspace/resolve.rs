//! Values from outside the source: encrypted files, the environment, other files.

use std::path::PathBuf;

use strata_blueprint::Resolver;
use strata_diagnostics::{Diagnostic, LARGEST_FILE, read_text_file};
use strata_secret::SecretString;
use strata_source::{Reference, Source};

use super::Workspace;

pub(super) struct Outside<'w> {
    workspace: &'w Workspace,
    folder: PathBuf,
}

impl<'w> Outside<'w> {
    /// `folder` is where files are looked for first, from the root of the repository.
    pub(super) fn new(workspace: &'w Workspace, folder: &str) -> Self {
        Self { workspace, folder: workspace.root.join(folder) }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let places = match path.strip_prefix("~/") {
            Some(rest) => {
                let home =
                    self.workspace.surroundings.variable("HOME").ok_or("the variable `HOME` is not set")?;
                vec![PathBuf::from(home).join(rest)]
            }
            None => vec![self.folder.join(path), self.workspace.root.join(path)],
        };
        let place =
            places.iter().find(|place| place.exists()).ok_or_else(|| format!("there is no file `{path}`"))?;
        read_text_file(place, LARGEST_FILE).map_err(|error| format!("`{path}` cannot be read: {error}"))
    }

    /// The worst bug there could be, for the test that nothing leaks by one.
    #[cfg(debug_assertions)]
    fn break_down(&self, value: &SecretString) {
        let asked = self.workspace.surroundings.variable("STRATA_TEST_PANIC").is_some();
        assert!(!asked, "a bug that was asked for, with the value {}", value.expose());
    }

    pub(super) fn value(&self, source: &Source) -> Result<SecretString, String> {
        match source {
            Source::Env(name) => self
                .workspace
                .surroundings
                .variable(name)
                .map(|value| SecretString::new(value.clone()))
                .ok_or_else(|| format!("the variable `{name}` is not set")),
            Source::File(path) => {
                self.file(path).map(|text| SecretString::new(text.trim_end_matches('\n').to_owned()))
            }
            Source::Secret(name) => self.workspace.secret(name),
        }
    }
}

impl Resolver for Outside<'_> {
    fn resolve(&self, reference: &Reference) -> Result<SecretString, Box<Diagnostic>> {
        let value = self.value(&reference.source).map_err(|message| {
            let hint = hint(&reference.source, &message);
            Box::new(Diagnostic::error("unresolved", message).at(reference.span).maybe_hint(hint))
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
}

/// Stands in for a secret that nobody opens.
const CLOSED: &str = "not opened";

/// What helps where a key is missing.
pub(super) fn hint(source: &Source, message: &str) -> Option<String> {
    let is_secret = matches!(source, Source::Secret(_));
    let hint = if is_secret && message.contains("encrypted for") {
        "give an age key that opens it by SOPS_AGE_KEY_FILE, or as `age.key` at the root of the repository"
    } else if is_secret && (message.contains("password of the vault") || message.contains("opens the vault"))
    {
        "give the password by `--vault-password-file` or ANSIBLE_VAULT_PASSWORD_FILE, or at a terminal"
    } else {
        return None;
    };
    Some(hint.to_owned())
}
