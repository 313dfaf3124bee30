//! Replacing a file as a whole: whoever reads it finds the old content or the new, also after a crash.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use strata_secret::RandomSource as _;

use crate::OsRandom;

/// Writes new content. A file that is there keeps its mode; a link keeps pointing to its file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, None)
}

/// The same for a file that only its owner may read.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, Some(0o600))
}

fn write(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let there = fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
        // A terminal or a pipe is written to, not replaced.
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let kept = there.map(|metadata| metadata.permissions().mode() & 0o7777);
    let mode = mode.or(kept);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    sweep(folder, &name);
    let temporary = folder.join(format!(".{name}.{}", random_name()));
    let outcome = fill(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    outcome?;
    File::open(folder)?.sync_all()
}

/// Twelve digits that nobody else has.
fn random_name() -> String {
    let mut random = [0; 6];
    OsRandom.fill(&mut random);
    hex::encode(random)
}

/// Removes what a run left of this file that was killed before it could put it in its place.
pub fn sweep_leftovers(path: &Path) {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Some(name) = path.file_name() {
        sweep(folder, &name.to_string_lossy());
    }
}

fn sweep(folder: &Path, name: &str) {
    let prefix = format!(".{name}.");
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let random = found.to_str().and_then(|found| found.strip_prefix(&prefix));
        let is_ours = random
            .is_some_and(|random| random.len() == 12 && random.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // Another run may be writing it.
            let free = File::open(entry.path())
                .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
            if free {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn fill(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode.unwrap_or(0o644)).open(path)?;
    // Says that somebody is at work on it; it ends with the process.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    if let Some(mode) = mode {
        // What was asked for at the start is cut by the mask of the process.
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_changes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("a", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(replace(&folder.path().join("nowhere/c"), b"x").is_err());
    }

    #[test]
    fn f19_what_a_killed_run_left_goes_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.sops.yaml");
        let left = folder.path().join(".secrets.sops.yaml.0123456789ab");
        let busy = folder.path().join(".secrets.sops.yaml.ba9876543210");
        let others =
            [".secrets.sops.yaml.swp", ".secrets.sops.yaml.0123456789abc", "secrets.sops.yaml.0123456789ab"];
        let others = others.map(|name| folder.path().join(name));
        for file in others.iter().chain([&left, &busy]) {
            fs::write(file, "half").unwrap();
        }
        let held = File::open(&busy).unwrap();
        flock(&held, FlockOperation::LockExclusive).unwrap();
        replace(&path, b"new").unwrap();
        assert!(!left.exists());
        assert!(busy.exists(), "somebody writes it");
        assert!(others.iter().all(|file| file.exists()));
        drop(held);
        sweep_leftovers(&path);
        assert!(!busy.exists());
    }

    #[test]
    fn c1_a_private_file_is_private_whatever_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.plan");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        replace_private(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    }
}
