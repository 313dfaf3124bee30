//! The file of users that `strata serve user` and `strata serve token` write. It holds digests only.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_storage::Failure;

use super::{Rule, Token, User};

/// Its name within the folder of the server's data.
const NAME: &str = "access.json";

#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot read `{path}`: {source}")]
    Read { path: PathBuf, source: Failure },
    #[error("cannot write `{path}`: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("there is no user `{0}`")]
    NoUser(String),
    #[error("there is a user `{0}` already")]
    UserExists(String),
    #[error("the user `{user}` has no token `{token}`")]
    NoToken { user: String, token: String },
    #[error("the user `{user}` has a token `{token}` already")]
    TokenExists { user: String, token: String },
    #[error("`{0}` is no name for a user: it has a colon or a control character, or is empty")]
    BadName(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessFile {
    #[serde(default)]
    pub users: Vec<User>,
}

impl AccessFile {
    pub fn path(data: &Path) -> PathBuf {
        data.join(NAME)
    }

    /// What is in the file; nothing if there is none.
    pub fn load(path: &Path) -> Result<Self, AccessError> {
        let failed = |source: Failure| AccessError::Read { path: path.to_owned(), source };
        match read_file(path, LARGEST_FILE) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(Failure::from_error(error))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(failed(Failure::from_error(error))),
        }
    }

    /// Replaces the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), AccessError> {
        let write = || -> std::io::Result<()> {
            let new = path.with_extension("new");
            let mut file =
                fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            fs::rename(&new, path)?;
            match path.parent() {
                Some(folder) => fs::File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(|source| AccessError::Write { path: path.to_owned(), source })
    }

    fn user(&mut self, name: &str) -> Result<&mut User, AccessError> {
        let found = self.users.iter_mut().find(|user| user.name == name);
        found.ok_or_else(|| AccessError::NoUser(name.to_owned()))
    }

    pub fn add_user(
        &mut self,
        name: &str,
        password: Option<String>,
        rules: Vec<Rule>,
    ) -> Result<(), AccessError> {
        if name.is_empty() || name.chars().any(|c| c == ':' || c.is_control()) {
            return Err(AccessError::BadName(name.to_owned()));
        }
        if self.user(name).is_ok() {
            return Err(AccessError::UserExists(name.to_owned()));
        }
        self.users.push(User { name: name.to_owned(), password, tokens: Vec::new(), rules });
        Ok(())
    }

    pub fn remove_user(&mut self, name: &str) -> Result<(), AccessError> {
        self.user(name)?;
        self.users.retain(|user| user.name != name);
        Ok(())
    }

    pub fn set_password(&mut self, name: &str, password: String) -> Result<(), AccessError> {
        self.user(name)?.password = Some(password);
        Ok(())
    }

    pub fn set_rules(&mut self, name: &str, rules: Vec<Rule>) -> Result<(), AccessError> {
        self.user(name)?.rules = rules;
        Ok(())
    }

    pub fn add_token(&mut self, user: &str, token: Token) -> Result<(), AccessError> {
        let found = self.user(user)?;
        if found.tokens.iter().any(|known| known.name == token.name) {
            return Err(AccessError::TokenExists { user: user.to_owned(), token: token.name });
        }
        found.tokens.push(token);
        Ok(())
    }

    pub fn remove_token(&mut self, user: &str, token: &str) -> Result<(), AccessError> {
        let found = self.user(user)?;
        let before = found.tokens.len();
        found.tokens.retain(|known| known.name != token);
        if found.tokens.len() == before {
            return Err(AccessError::NoToken { user: user.to_owned(), token: token.to_owned() });
        }
        Ok(())
    }
}
