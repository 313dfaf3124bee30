//! All secrets of a repository, by name: `{secret: name.path}` from any of the encrypted files it lists.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use strata_secret::{Redactor, SecretBytes, SecretString};

use self::source::{Loaded, Lookup};
use crate::Access;
use crate::sops::SopsError;
use crate::vault::VaultError;

mod nearest;
mod source;

pub use source::Source;

/// What can go wrong while resolving a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("there is no secret `{name}` in {files}{}", .nearest.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    NotFound { name: String, files: String, nearest: Option<String> },
    #[error("the secret `{name}` in `{file}` is not a single value: choose one of {below}")]
    NotAValue { name: String, file: String, below: String },
    #[error("the secret `{name}` in `{file}` has no value")]
    NoValue { name: String, file: String },
    #[error("the secret `{name}` in `{file}` is not text in UTF-8")]
    NotText { name: String, file: String },
    #[error("`{file}`: {source}")]
    File { file: String, source: Cause },
}

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What a person has to give before a file can be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingKey {
    Age,
    VaultPassword,
}

impl SecretError {
    /// The key that is missing, where that is what is wrong.
    pub fn missing_key(&self) -> Option<MissingKey> {
        let Self::File { source, .. } = self else { return None };
        if let Some(SopsError::NoKey { .. }) = source.downcast_ref() {
            return Some(MissingKey::Age);
        }
        let vault = source.downcast_ref();
        let password = matches!(
            vault,
            Some(
                VaultError::NoPassword { .. }
                    | VaultError::WrongPassword { .. }
                    | VaultError::Password { .. }
            )
        );
        password.then_some(MissingKey::VaultPassword)
    }
}

/// A secret's name and the file that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName {
    pub file: String,
    pub name: String,
}

/// The secrets of a repository. Nothing is read before a name is asked for, and only the file that has the name is
/// decrypted.
pub struct SecretStore {
    root: PathBuf,
    sources: Vec<Source>,
    access: Arc<Access>,
    redactor: Redactor,
    loaded: Mutex<HashMap<usize, Arc<Loaded>>>,
}

impl SecretStore {
    /// Takes the files in the order of the repository's settings; relative paths start at its root.
    pub fn new(root: impl Into<PathBuf>, sources: Vec<Source>, access: Arc<Access>) -> Self {
        Self { root: root.into(), sources, access, redactor: Redactor::new(), loaded: Mutex::default() }
    }

    /// Tells this redactor about every secret that is resolved.
    pub fn with_redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = redactor;
        self
    }

    /// The value of a secret.
    ///
    /// Files whose names can be read without a key come first, in their order, then those that are encrypted as a
    /// whole. So what a name means does not depend on who asks.
    pub fn resolve(&self, name: &str) -> Result<SecretString, SecretError> {
        let mut problem = None;
        let mut known = Vec::new();
        for whole in [false, true] {
            for index in 0..self.sources.len() {
                match self.look(index, whole, name, &mut known) {
                    Ok(Some(secret)) => {
                        self.redactor.add(&secret);
                        return Ok(secret);
                    }
                    Ok(None) => {}
                    Err(error @ SecretError::File { .. }) => problem = problem.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
        }
        Err(problem.unwrap_or_else(|| SecretError::NotFound {
            name: name.to_owned(),
            files: self.files(),
            nearest: nearest::nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
        }))
    }

    /// Whether there is a secret of this name, as far as that can be said without a key. `None` if it could be in a
    /// file that is encrypted as a whole.
    pub fn contains(&self, name: &str) -> Result<Option<bool>, SecretError> {
        let names = self.names()?;
        if names.iter().any(|secret| secret.name == name) {
            return Ok(Some(true));
        }
        let mut whole = false;
        for index in 0..self.sources.len() {
            whole |= self.load(index)?.is_whole();
        }
        Ok(if whole { None } else { Some(false) })
    }

    /// The names of all secrets that can be listed without a key.
    pub fn names(&self) -> Result<Vec<SecretName>, SecretError> {
        let mut names = Vec::new();
        for index in 0..self.sources.len() {
            let loaded = self.load(index)?;
            let file = self.sources[index].name();
            let listed = loaded.names_without_key().map_err(|error| self.file_error(index, error.into()))?;
            names.extend(listed.iter().map(|path| SecretName { file: file.clone(), name: path.join(".") }));
        }
        Ok(names)
    }

    /// The names of all secrets; files that are encrypted as a whole are opened for it.
    pub fn all_names(&self) -> Result<Vec<SecretName>, SecretError> {
        let mut names = self.names()?;
        for index in 0..self.sources.len() {
            let loaded = self.load(index)?;
            if loaded.is_whole() {
                let secrets = self.open(index, &loaded)?;
                names.extend(secrets.into_iter().map(|(path, _)| self.secret_name(index, &path)));
            }
        }
        Ok(names)
    }

    /// Every value that is encrypted, with its name, in the order in which names are looked up. Null has no value and
    /// is left out.
    pub fn secrets(&self) -> Result<Vec<(SecretName, SecretBytes)>, SecretError> {
        let mut secrets = Vec::new();
        for whole in [false, true] {
            for index in 0..self.sources.len() {
                let loaded = self.load(index)?;
                if loaded.is_whole() != whole {
                    continue;
                }
                for (path, value) in self.open(index, &loaded)? {
                    secrets.extend(value.map(|value| (self.secret_name(index, &path), value)));
                }
            }
        }
        for text in secrets.iter().filter_map(|(_, value)| std::str::from_utf8(value.expose()).ok()) {
            self.redactor.add_text(text);
        }
        Ok(secrets)
    }

    fn open(&self, index: usize, loaded: &Loaded) -> Result<source::Secrets, SecretError> {
        loaded.secrets(&self.access).map_err(|error| self.file_error(index, error))
    }

    fn secret_name(&self, index: usize, path: &[String]) -> SecretName {
        SecretName { file: self.sources[index].name(), name: path.join(".") }
    }

    fn look(
        &self,
        index: usize,
        whole: bool,
        name: &str,
        known: &mut Vec<String>,
    ) -> Result<Option<SecretString>, SecretError> {
        let loaded = self.load(index)?;
        if loaded.is_whole() != whole {
            return Ok(None);
        }
        let file = self.sources[index].name();
        let found = loaded.find(name, &self.access).map_err(|error| self.file_error(index, error))?;
        let name = name.to_owned();
        match found {
            Lookup::Value(value) => {
                value.into_string().map(Some).map_err(|_| SecretError::NotText { name, file })
            }
            Lookup::Null => Err(SecretError::NoValue { name, file }),
            Lookup::Below(below) => Err(SecretError::NotAValue { name, file, below: quoted(&below) }),
            Lookup::Missing(names) => {
                known.extend(names);
                Ok(None)
            }
        }
    }

    fn load(&self, index: usize) -> Result<Arc<Loaded>, SecretError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = loaded.get(&index) {
            return Ok(Arc::clone(loaded));
        }
        let source = &self.sources[index];
        let file = Loaded::read(source, &self.path(source)).map_err(|error| self.file_error(index, error))?;
        let file = Arc::new(file);
        loaded.insert(index, Arc::clone(&file));
        Ok(file)
    }

    fn path(&self, source: &Source) -> PathBuf {
        self.root.join(source.path())
    }

    fn file_error(&self, index: usize, source: Cause) -> SecretError {
        SecretError::File { file: self.sources[index].name(), source }
    }

    fn files(&self) -> String {
        let files: Vec<String> = self.sources.iter().map(Source::name).collect();
        if files.is_empty() { "the repository, which lists no secrets".to_owned() } else { quoted(&files) }
    }
}

fn quoted(names: &[String]) -> String {
    const MOST: usize = 8;
    let mut list: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        list.push("…".to_owned());
    }
    list.join(", ")
}

/// The name of a file for messages.
fn display(path: &Path) -> String {
    path.display().to_string()
}
