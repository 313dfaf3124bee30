//! Where values of new API tokens are kept: in the first SOPS file of the repository, encrypted for its readers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use strata_diagnostics::{LARGEST_FILE, read_file};
use strata_engine::Clock;
use strata_proxmox::TokenKeeper;
use strata_secret::SecretString;
use strata_secrets::{Access, Source, sops};

use strata_session::{Observer, Random, SessionEvent, Workspace, secrets};

pub(crate) struct SopsKeeper {
    /// From the root of the repository, for messages.
    name: Option<String>,
    place: PathBuf,
    access: Arc<Access>,
    clock: Arc<dyn Clock>,
    random: Random,
    observer: Arc<dyn Observer>,
    /// Tokens are made side by side, and there is one file.
    writing: Mutex<()>,
}

/// The file, opened.
struct Opened {
    before: Vec<u8>,
    file: sops::OpenFile,
}

impl SopsKeeper {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        let sources = secrets::sources(&workspace.repository().settings);
        let is_yaml = |path: &Path| sops::Format::of(path) == sops::Format::Yaml;
        let path = sources.into_iter().find_map(|source| match source {
            Source::Sops(path) if is_yaml(&path) => Some(path),
            _ => None,
        });
        Self {
            name: path.as_ref().map(|path| path.display().to_string()),
            place: workspace.root().join(path.unwrap_or_default()),
            access: Arc::clone(workspace.access()),
            clock: Arc::clone(&workspace.surroundings().clock),
            random: Arc::clone(&workspace.surroundings().random),
            observer: Arc::clone(&workspace.surroundings().observer),
            writing: Mutex::new(()),
        }
    }

    fn open(&self) -> Result<Opened, String> {
        let name = self.name.as_ref().ok_or("strata.yaml lists no SOPS file in YAML")?;
        let say = |error: &dyn std::fmt::Display| format!("`{name}`: {error}");
        let before = read_file(&self.place, LARGEST_FILE).map_err(|error| say(&error))?;
        let parsed = sops::SopsFile::parse(&before, sops::Format::Yaml).map_err(|error| say(&error))?;
        let file = parsed.open(self.access.identities()).map_err(|error| say(&error))?;
        Ok(Opened { before, file })
    }

    /// A name is free, or has an older value of the same token.
    fn free(&self, opened: &Opened, name: &str, token: &str) -> Result<(), String> {
        let below = |path: &[String]| path.first().is_some_and(|first| first == name);
        match opened.file.get(&[name]) {
            Some(value) if value.expose().split_once('=').is_some_and(|(id, _)| id == token) => Ok(()),
            None if !opened.file.source().names().iter().any(|path| below(path)) => Ok(()),
            _ => {
                Err(format!("`{}` has another secret of this name", self.name.as_deref().unwrap_or_default()))
            }
        }
    }
}

impl TokenKeeper for SopsKeeper {
    fn check(&self, name: &str, token: &str) -> Result<(), String> {
        self.free(&self.open()?, name, token)
    }

    fn keep(&self, name: &str, token: &str, value: &SecretString) -> Result<(), String> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.open()?;
        self.free(&opened, name, token)?;
        let whole = SecretString::new(format!("{token}={}", value.expose()));
        let plain = opened.file.plaintext().map_err(|error| error.to_string())?;
        let merged = strata_secrets::merge(&plain, &[(name, whole.expose())], &[]).ok_or("it is no text")?;
        let now = jiff::Timestamp::from_second(self.clock.now()).unwrap_or_default();
        let sealed = opened.file.edit(&merged, now, &mut |buffer: &mut [u8]| (self.random)(buffer));
        let Some(sealed) = sealed.map_err(|error| error.to_string())? else { return Ok(()) };
        self.prove(&sealed, name, &whole)?;
        if read_file(&self.place, LARGEST_FILE).is_ok_and(|now| now != opened.before) {
            return Err("somebody else writes the file at this moment".to_owned());
        }
        strata_secrets::replace(&self.place, &sealed).map_err(|error| error.to_string())?;
        let file = self.name.as_deref().unwrap_or_default();
        self.observer.session_event(SessionEvent::TokenKept { token, name, file });
        Ok(())
    }
}

impl SopsKeeper {
    /// A file can be laid out in ways that lines do not show: what is written must say what it should.
    fn prove(&self, sealed: &[u8], name: &str, whole: &SecretString) -> Result<(), String> {
        let parsed = sops::SopsFile::parse(sealed, sops::Format::Yaml).map_err(|error| error.to_string())?;
        let file = parsed.open(self.access.identities()).map_err(|error| error.to_string())?;
        let same = file.get(&[name]).is_some_and(|kept| kept.expose() == whole.expose());
        let encrypted = file.source().encrypted_names().iter().any(|path| path.len() == 1 && path[0] == name);
        match (same, encrypted) {
            (true, true) => Ok(()),
            (true, false) => Err(format!("the file's rules would leave `{name}` in the clear")),
            (false, _) => Err("the file is laid out in a way that nothing can be added to".to_owned()),
        }
    }
}
