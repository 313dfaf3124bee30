//! The process environment, passed in: this crate reads no variable by itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variables and the home of the user on whose behalf secrets are read.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// Where relative paths in variables start; the working directory if not given.
    pub(crate) directory: Option<PathBuf>,
}

impl Environment {
    /// Takes variables as `std::env::vars` gives them.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: variables.into_iter().collect(), directory: None }
    }

    /// An environment without any variable.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The directory in which commands run and where relative paths start.
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// A variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get("HOME").or_else(|| self.get("USERPROFILE")).map(PathBuf::from)
    }

    /// Where programs keep their settings: `XDG_CONFIG_HOME`, or the platform's place below the home.
    pub(crate) fn config_directory(&self) -> Option<PathBuf> {
        if let Some(directory) = self.get("XDG_CONFIG_HOME") {
            return Some(PathBuf::from(directory));
        }
        let below = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
        self.home().map(|home| home.join(below))
    }

    /// A path from a variable, with `~` and relative paths made whole.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        if let (Some(rest), Some(home)) = (text.strip_prefix("~/"), self.home()) {
            return home.join(rest);
        }
        match &self.directory {
            Some(directory) => directory.join(text),
            None => PathBuf::from(text),
        }
    }
}
