//! All states of a server in a folder, and back: every version, lock and journal, whatever the storage.
//!
//! ```text
//! <folder>/backup.json           written last: a folder without it is half a backup
//!          states/0001/state.json      name, lock, versions
//!                      journal
//!                      1.json, 2.json  the versions
//! ```

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures::StreamExt as _;
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use strata_storage::{CHUNK, Content, Failure, Head, StateName, Storage, StorageError, Version, Which};

const FORMAT: u32 = 1;
/// A state that is written all the time is not the same twice; after this many looks it is taken as it is.
const LOOKS: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("`{0}` is not empty")]
    NotEmpty(PathBuf),
    #[error("`{0}` is no whole backup: it has no `backup.json`")]
    NotWhole(PathBuf),
    #[error("the backup was made by a newer Strata: its format is {0}, this one knows up to {FORMAT}")]
    Newer(u32),
    #[error("`{0}` is not what was backed up")]
    Damaged(PathBuf),
    #[error("there are states already: {0} of them")]
    StatesThere(usize),
    #[error("`{path}`: {source}")]
    File { path: PathBuf, source: Failure },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Serialize, Deserialize)]
struct Summary {
    format: u32,
    states: usize,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    name: String,
    head: Head,
    /// Oldest first.
    versions: Vec<Version>,
}

/// Writes all states to a folder that is empty or does not exist. Gives their number.
pub async fn back_up(storage: &dyn Storage, folder: &Path) -> Result<usize, BackupError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(BackupError::NotEmpty(folder.to_owned()));
    }
    let heads = storage.heads().await?;
    for (number, (name, _)) in (1..).zip(&heads) {
        let place = folder.join("states").join(format!("{number:04}"));
        make_folder(&place)?;
        back_up_state(storage, name, &place).await?;
    }
    make_folder(folder)?;
    write_json(&folder.join("backup.json"), &Summary { format: FORMAT, states: heads.len() })?;
    sync_folder(folder)?;
    Ok(heads.len())
}

async fn back_up_state(storage: &dyn Storage, name: &StateName, place: &Path) -> Result<(), BackupError> {
    let (mut entry, journal) = look(storage, name).await?;
    let mut kept = Vec::new();
    for version in std::mem::take(&mut entry.versions) {
        match storage.read(name, Which::Version(version.version)).await? {
            Some((_, mut stream)) => {
                let path = place.join(format!("{}.json", version.version));
                let mut file = create(&path)?;
                while let Some(piece) = stream.next().await {
                    file.write_all(&piece?).map_err(|error| failed(&path, error))?;
                }
                file.sync_all().map_err(|error| failed(&path, error))?;
                kept.push(version);
            }
            // Old versions go while we look.
            None => continue,
        }
    }
    entry.versions = kept;
    let path = place.join("journal");
    let mut file = create(&path)?;
    file.write_all(&journal).and_then(|()| file.sync_all()).map_err(|error| failed(&path, error))?;
    write_json(&place.join("state.json"), &entry)?;
    sync_folder(place)
}

/// Head, versions and journal of one moment.
async fn look(storage: &dyn Storage, name: &StateName) -> Result<(Entry, Bytes), BackupError> {
    let mut head = storage.head(name).await?;
    for attempt in 1.. {
        let mut versions = storage.versions(name).await?;
        versions.reverse();
        let journal = storage.journal(name).await?;
        let again = storage.head(name).await?;
        if again == head || attempt == LOOKS {
            return Ok((Entry { name: name.as_str().to_owned(), head, versions }, journal));
        }
        head = again;
    }
    unreachable!("the last look returns")
}

/// Puts the states of a backup into a storage that has none. Gives their number.
pub async fn restore(storage: &dyn Storage, folder: &Path) -> Result<usize, BackupError> {
    let summary = folder.join("backup.json");
    if !summary.is_file() {
        return Err(BackupError::NotWhole(folder.to_owned()));
    }
    let summary: Summary = read_json(&summary)?;
    if summary.format > FORMAT {
        return Err(BackupError::Newer(summary.format));
    }
    match storage.heads().await?.len() {
        0 => {}
        there => return Err(BackupError::StatesThere(there)),
    }
    // Everything is looked at before anything is written.
    let places: Vec<PathBuf> =
        (1..=summary.states).map(|number| folder.join("states").join(format!("{number:04}"))).collect();
    for place in &places {
        check(place)?;
    }
    for place in &places {
        restore_state(storage, place).await?;
    }
    Ok(summary.states)
}

fn check(place: &Path) -> Result<(), BackupError> {
    let path = place.join("state.json");
    let entry: Entry = read_json(&path)?;
    StateName::parse(&entry.name).map_err(|_| BackupError::Damaged(path))?;
    for version in &entry.versions {
        let path = place.join(format!("{}.json", version.version));
        let mut md5 = Md5::new();
        each_piece(&path, |piece| md5.update(piece))?;
        if hex::encode(md5.finalize()) != version.md5 {
            return Err(BackupError::Damaged(path));
        }
    }
    Ok(())
}

async fn restore_state(storage: &dyn Storage, place: &Path) -> Result<(), BackupError> {
    let path = place.join("state.json");
    let entry: Entry = read_json(&path)?;
    let name = StateName::parse(&entry.name).map_err(|_| BackupError::Damaged(path))?;
    let current = entry.head.current.as_ref().map(|current| current.version);
    for version in entry.versions {
        let path = place.join(format!("{}.json", version.version));
        let mut pieces = Vec::new();
        each_piece(&path, |piece| pieces.push(Bytes::copy_from_slice(piece)))?;
        let is_current = current == Some(version.version);
        if pieces.len() <= 1 {
            let content = Content::Inline(pieces.pop().unwrap_or_default());
            storage.import_version(&name, version, content, is_current).await?;
            continue;
        }
        let mut staging = storage.stage(&name).await?;
        for piece in pieces {
            staging.push(piece).await?;
        }
        let content = Content::Staged(staging.finish().await?);
        storage.import_version(&name, version, content, is_current).await?;
    }
    let path = place.join("journal");
    let journal = fs::read(&path).map_err(|error| failed(&path, error))?;
    storage.import_head(&name, entry.head, journal.into()).await?;
    Ok(())
}

fn each_piece(path: &Path, mut take: impl FnMut(&[u8])) -> Result<(), BackupError> {
    use std::io::Read as _;
    let mut file = fs::File::open(path).map_err(|error| failed(path, error))?;
    let mut piece = Vec::with_capacity(CHUNK);
    loop {
        piece.clear();
        (&mut file).take(CHUNK as u64).read_to_end(&mut piece).map_err(|error| failed(path, error))?;
        if piece.is_empty() {
            return Ok(());
        }
        take(&piece);
    }
}

fn failed(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> BackupError {
    BackupError::File { path: path.to_owned(), source: Failure::from_error(error) }
}

/// States hold secrets: only the user who makes a backup reads it.
fn make_folder(path: &Path) -> Result<(), BackupError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| failed(path, error))
}

fn create(path: &Path) -> Result<fs::File, BackupError> {
    let options = fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    options.map_err(|error| failed(path, error))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), BackupError> {
    let json = serde_json::to_vec_pretty(value).map_err(|error| failed(path, error))?;
    let mut file = create(path)?;
    file.write_all(&json).and_then(|()| file.sync_all()).map_err(|error| failed(path, error))
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, BackupError> {
    let bytes = fs::read(path).map_err(|error| failed(path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(path, error))
}

fn sync_folder(path: &Path) -> Result<(), BackupError> {
    fs::File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| failed(path, error))
}
