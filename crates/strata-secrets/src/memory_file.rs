//! A plain file for an editor, in memory only, gone when the command ends, however it ends.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use strata_secret::{RandomSource as _, SecretBytes};

use crate::OsRandom;

/// Why there is no such file.
#[derive(Debug, thiserror::Error)]
pub enum MemoryFileError {
    #[error("there is no place in memory for a plain file, and it must not be on a disk")]
    NoPlace,
    #[error("cannot make a file in memory: {0}")]
    Make(#[source] io::Error),
    #[error("cannot read what the editor wrote: {0}")]
    Read(#[source] io::Error),
    #[error("what the editor wrote is larger than 64 MiB")]
    TooLarge,
}

/// What the folders are called.
const PREFIX: &str = "strata-edit-";

/// More than anybody writes by hand.
const LARGEST: u64 = 64 * 1024 * 1024;

pub struct MemoryFile {
    folder: PathBuf,
    path: PathBuf,
    /// As long as this is open, the watcher waits.
    _watched: ChildStdin,
}

impl MemoryFile {
    /// Makes a private folder with one file of this name in it, in the user's runtime folder or in shared memory. The watcher is given the
    /// folder as its last argument; it has to sweep it when its standard input ends.
    pub fn create(
        runtime: Option<&str>,
        name: &Path,
        content: &SecretBytes,
        watcher: Command,
    ) -> Result<Self, MemoryFileError> {
        let failed = MemoryFileError::Make;
        let folder = memory_folder(runtime)?.join(format!("{PREFIX}{}", random_name()));
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let path = folder.join(name.file_name().unwrap_or(name.as_os_str()));
        let watched = match watch(watcher, &folder) {
            Ok(watched) => watched,
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                return Err(failed(error));
            }
        };
        // From here on, the folder goes with this value.
        let own = Self { folder, path, _watched: watched };
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own.path).map_err(failed)?;
        file.write_all(content.expose()).map_err(failed)?;
        Ok(own)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn read(&self) -> Result<SecretBytes, MemoryFileError> {
        let failed = MemoryFileError::Read;
        if fs::metadata(&self.path).map_err(failed)?.len() > LARGEST {
            return Err(MemoryFileError::TooLarge);
        }
        fs::read(&self.path).map(SecretBytes::from).map_err(failed)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a process that removes the folder when this one is gone: nobody can clean up after their own `kill -9`.
fn watch(mut watcher: Command, folder: &Path) -> io::Result<ChildStdin> {
    let mut watcher = watcher
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // An interrupt from the terminal is not for it.
        .process_group(0)
        .spawn()?;
    watcher.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

fn random_name() -> String {
    let mut random = [0; 8];
    OsRandom.fill(&mut random);
    hex::encode(random)
}

/// Where files are in memory and belong to nobody else.
fn memory_folder(runtime: Option<&str>) -> Result<PathBuf, MemoryFileError> {
    let runtime = runtime.filter(|folder| !folder.is_empty());
    let candidates = runtime.map(PathBuf::from).into_iter().chain([PathBuf::from("/dev/shm")]);
    candidates
        .into_iter()
        .find(|folder| folder.is_absolute() && in_memory(folder))
        .ok_or(MemoryFileError::NoPlace)
}

#[cfg(target_os = "linux")]
fn in_memory(folder: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::statfs(folder).is_ok_and(|found| {
        // The field is signed on some machines, and the number has its highest bit set.
        u64::try_from(found.f_type & 0xffff_ffff).is_ok_and(|kind| kind == TMPFS || kind == RAMFS)
    })
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_folder: &Path) -> bool {
    false
}

/// Removes such a folder, and nothing else.
pub fn sweep(folder: &Path) {
    let own = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if own && in_memory(folder) {
        let _ = fs::remove_dir_all(folder);
    }
}
