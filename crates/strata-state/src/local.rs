//! States in a folder: one folder for each key, with document, journal, lock and history.
//!
//! ```text
//! <root>/<environment>/<stack>/state.json        the document
//!                              journal           records since the document was written
//!                              lock              held by the operating system, freed by death
//!                              owner.json        who holds it, for people
//!                              history/<serial>.json
//! ```

mod durable;
mod lock;

use std::fs;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::store::{KEPT_VERSIONS, Replaces};
use crate::{
    Codec, Holder, JournalRecord, LockOwner, LockedState, StateDocument, Store, StoreError, Version,
};

pub struct LocalStore {
    root: PathBuf,
    kept: usize,
    codec: Codec,
}

impl LocalStore {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), kept: KEPT_VERSIONS, codec: Codec::plain() }
    }

    #[must_use]
    pub fn with_codec(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    /// How many versions of a state are kept.
    #[must_use]
    pub fn keeping(self, kept: usize) -> Self {
        Self { kept, ..self }
    }

    fn folder(&self, key: &str) -> Folder {
        // A stack may be a path; one folder a stack keeps `history` from ever being taken for one.
        let (environment, stack) = key.split_once('/').unwrap_or(("default", key));
        let path = self.root.join(environment).join(stack.replace('/', "~"));
        Folder { key: key.to_owned(), path, kept: self.kept, codec: self.codec.clone() }
    }
}

/// The folder of one state.
#[derive(Clone)]
struct Folder {
    key: String,
    path: PathBuf,
    kept: usize,
    codec: Codec,
}

impl Folder {
    fn document(&self) -> PathBuf {
        self.path.join("state.json")
    }

    fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    fn history(&self) -> PathBuf {
        self.path.join("history")
    }

    fn version(&self, serial: u64) -> PathBuf {
        self.history().join(format!("{serial:08}.json"))
    }

    fn read(&self) -> Result<Option<StateDocument>, StoreError> {
        match read_if_there(&self.document())? {
            Some(bytes) => self.parse(&bytes).map(Some),
            None => Ok(None),
        }
    }

    fn parse(&self, bytes: &[u8]) -> Result<StateDocument, StoreError> {
        self.codec.decode(&self.key, bytes).map_err(|error| self.with_newest_good(error))
    }

    fn with_newest_good(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Damaged { key, reason, .. } => {
                StoreError::Damaged { key, reason, newest_good: self.newest_good() }
            }
            other => other,
        }
    }

    /// The newest version in the history that can be read.
    fn newest_good(&self) -> Option<u64> {
        let versions = self.versions().ok()?;
        versions.iter().map(|version| version.serial).find(|serial| {
            let bytes = fs::read(self.version(*serial)).unwrap_or_default();
            self.codec.decode(&self.key, &bytes).is_ok()
        })
    }

    fn versions(&self) -> Result<Vec<Version>, StoreError> {
        let mut versions = Vec::new();
        for path in list_if_there(&self.history())? {
            // A death between writing and renaming leaves a file that is no version.
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let serial = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let (Some(serial), Ok(meta)) = (serial, fs::metadata(&path)) else { continue };
            let written = meta.modified().map(durable::rfc3339).unwrap_or_default();
            versions.push(Version { serial, written, bytes: meta.len() });
        }
        versions.sort_by_key(|version| std::cmp::Reverse(version.serial));
        Ok(versions)
    }

    /// The serial that is stored; none if there is no state.
    fn serial(&self) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = read_if_there(&self.document())? else { return Ok(None) };
        match self.codec.serial(&self.key, &bytes) {
            Ok(serial) => Ok(Some(serial)),
            // A damaged document may be replaced by a good one from the history, which goes on counting.
            Err(StoreError::Damaged { .. }) => Ok(Some(self.newest_good().unwrap_or(0))),
            Err(error) => Err(error),
        }
    }

    fn write(&self, document: &StateDocument, replaces: Replaces) -> Result<(), StoreError> {
        replaces.check(&self.key, document, self.serial()?)?;
        let bytes = self.codec.encode(document)?;
        durable::make_folder(&self.history())?;
        durable::replace(&self.version(document.serial), &bytes)?;
        durable::replace(&self.document(), &bytes)?;
        for old in self.versions()?.iter().skip(self.kept) {
            // A version too many does no harm.
            let _ = fs::remove_file(self.version(old.serial));
        }
        Ok(())
    }

    /// Into the history only.
    fn write_version(&self, document: &StateDocument) -> Result<(), StoreError> {
        Replaces::Nothing.check(&self.key, document, self.serial()?)?;
        durable::make_folder(&self.history())?;
        durable::replace(&self.version(document.serial), &self.codec.encode(document)?)
    }
}

fn io(what: &str, path: &Path, source: std::io::Error) -> StoreError {
    StoreError::Io { what: format!("{what} `{}`", path.display()), source }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io("cannot read", path, error)),
    }
}

fn list_if_there(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io("cannot list", path, error)),
    }
}

#[async_trait]
impl Store for LocalStore {
    fn describe(&self) -> String {
        format!("local, {}", self.root.display())
    }

    fn kept(&self) -> Option<usize> {
        Some(self.kept)
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        for environment in list_if_there(&self.root)?.into_iter().filter(|path| path.is_dir()) {
            for stack in list_if_there(&environment)? {
                let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
                // A first apply that died has a journal and no document yet.
                let is_state = stack.join("state.json").exists() || stack.join("journal").exists();
                if let (true, Some(environment), Some(stack)) = (is_state, name(&environment), name(&stack)) {
                    keys.push(format!("{environment}/{}", stack.replace('~', "/")));
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.folder(key).read()
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        let bytes = read_if_there(&self.folder(key).journal())?.unwrap_or_default();
        self.codec.decode_journal(key, &bytes)
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let folder = self.folder(key);
        let (at, by) = (folder.clone(), owner.clone());
        let lock = blocking(move || lock::acquire(&at, &by)).await?;
        Ok(Box::new(lock::LocalLock::new(folder, lock, owner)))
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        Ok(lock::holder(&self.folder(key))?.map(Holder::endless))
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        lock::take_away(&self.folder(key), id)
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        self.folder(key).versions()
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        let folder = self.folder(key);
        let bytes = read_if_there(&folder.version(serial))?
            .ok_or_else(|| StoreError::NoVersion { key: key.to_owned(), serial })?;
        folder.parse(&bytes)
    }
}

/// Runs file work where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Io {
            what: "the state's writer stopped".to_owned(),
            source: std::io::Error::other(error),
        }),
    }
}
