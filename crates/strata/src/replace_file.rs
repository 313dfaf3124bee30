//! Replacing a file as a whole: whoever reads it finds the old content or the new, also after a crash.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::context::random_hex;

/// Writes new content. A file that is there keeps its mode; a link keeps pointing to its file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, None)
}

/// The same for a file that only its owner may read.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write(path, bytes, Some(0o600))
}

fn write(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let kept = fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777);
    let mode = mode.or(kept);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}", random_hex(6)));
    let outcome = fill(&temporary, bytes, mode).and_then(|()| fs::rename(&temporary, path));
    if outcome.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    outcome?;
    File::open(folder)?.sync_all()
}

fn fill(path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode.unwrap_or(0o644)).open(path)?;
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
}
