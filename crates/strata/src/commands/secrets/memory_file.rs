//! A plain file for an editor, in memory only, gone when the command ends, however it ends.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use strata_secret::SecretBytes;

use crate::command_error::CommandError;
use crate::context::{Context, random_hex};

/// What the folders are called.
const PREFIX: &str = "strata-edit-";

/// More than anybody writes by hand.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) struct MemoryFile {
    folder: PathBuf,
    path: PathBuf,
    /// As long as this is open, the watcher waits.
    _watched: ChildStdin,
}

impl MemoryFile {
    /// Makes a private folder with one file of this name in it.
    pub(super) fn create(
        context: &Context,
        name: &Path,
        content: &SecretBytes,
    ) -> Result<Self, CommandError> {
        let failed =
            |error: std::io::Error| CommandError::failed(format!("cannot make a file in memory: {error}"));
        let folder = memory_folder(context)?.join(format!("{PREFIX}{}", random_hex(8)));
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        let path = folder.join(name.file_name().unwrap_or(name.as_os_str()));
        let watched = match watch(&folder) {
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self) -> Result<SecretBytes, CommandError> {
        let failed = |error| CommandError::failed(format!("cannot read what the editor wrote: {error}"));
        if fs::metadata(&self.path).map_err(failed)?.len() > LARGEST {
            return Err(CommandError::failed("what the editor wrote is larger than 64 MiB"));
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
fn watch(folder: &Path) -> std::io::Result<ChildStdin> {
    let mut watcher = Command::new(std::env::current_exe()?)
        .args(["secrets", "sweep"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // An interrupt from the terminal is not for it.
        .process_group(0)
        .spawn()?;
    watcher.stdin.take().ok_or_else(|| std::io::ErrorKind::BrokenPipe.into())
}

/// Where files are in memory and belong to nobody else.
fn memory_folder(context: &Context) -> Result<PathBuf, CommandError> {
    let runtime = context.environment.get("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let candidates = runtime.map(PathBuf::from).into_iter().chain([PathBuf::from("/dev/shm")]);
    candidates.into_iter().find(|folder| folder.is_absolute() && in_memory(folder)).ok_or_else(|| {
        CommandError::failed("there is no place in memory for a plain file, and it must not be on a disk")
            .hint("set XDG_RUNTIME_DIR to a folder on a tmpfs, or mount one at /dev/shm")
    })
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
pub(super) fn sweep(folder: &Path) {
    let own = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if own && in_memory(folder) {
        let _ = fs::remove_dir_all(folder);
    }
}
