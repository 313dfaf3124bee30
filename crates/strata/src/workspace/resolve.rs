//! Values from outside the source: encrypted files, the environment, other files.

use std::path::PathBuf;

use strata_blueprint::Resolver;
use strata_diagnostics::Diagnostic;
use strata_secret::SecretString;
use strata_source::{Reference, Source};

use super::Workspace;

pub(super) struct Outside<'w> {
    workspace: &'w Workspace<'w>,
    folder: PathBuf,
}

impl<'w> Outside<'w> {
    /// `folder` is where files are looked for first, from the root of the repository.
    pub(super) fn new(workspace: &'w Workspace<'w>, folder: &str) -> Self {
        Self { workspace, folder: workspace.root.join(folder) }
    }

    fn file(&self, path: &str) -> Result<String, String> {
        let places = match path.strip_prefix("~/") {
            Some(rest) => {
                let home =
                    self.workspace.context.environment.get("HOME").ok_or("the variable `HOME` is not set")?;
                vec![PathBuf::from(home).join(rest)]
            }
            None => vec![self.folder.join(path), self.workspace.root.join(path)],
        };
        let place =
            places.iter().find(|place| place.exists()).ok_or_else(|| format!("there is no file `{path}`"))?;
        std::fs::read_to_string(place).map_err(|error| format!("`{path}` cannot be read: {error}"))
    }

    pub(super) fn value(&self, source: &Source) -> Result<SecretString, String> {
        match source {
            Source::Env(name) => self
                .workspace
                .context
                .environment
                .get(name)
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
        self.value(&reference.source)
            .map_err(|message| Box::new(Diagnostic::error("unresolved", message).at(reference.span)))
    }
}
