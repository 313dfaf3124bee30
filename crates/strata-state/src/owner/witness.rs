//! A file with a name drawn at random that a run makes on its machine: where it is, the run was.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The same for every run on a machine, whatever its variables say. In a folder that other machines share it would prove nothing.
const FOLDER: &str = "/tmp";
const PREFIX: &str = "strata-run-";
/// Runs that were killed leave theirs behind; nobody asks for one that is older.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// One run of so many removes what is older. On a machine where many are killed, a look at each file that they left costs more than a short
/// run's own work.
const SWEEPS: u8 = 64;

static OURS: Mutex<Option<String>> = Mutex::new(None);

/// Nothing that came from a store may name another file.
fn path(name: &str) -> Option<PathBuf> {
    let plain = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| PathBuf::from(FOLDER).join(format!("{PREFIX}{name}")))
}

pub(super) fn is_here(name: &str) -> bool {
    path(name).is_some_and(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file()))
}

/// None where none can be made: then nobody will know that this process has died.
pub(super) fn of_this_process() -> Option<String> {
    let mut ours = OURS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = &*ours {
        return Some(name.clone());
    }
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    if bits[0].is_multiple_of(SWEEPS) {
        sweep(Path::new(FOLDER));
    }
    let name = hex::encode(bits);
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path(&name)?).ok()?;
    ours.clone_from(&Some(name.clone()));
    Some(name)
}

pub(super) fn forget() {
    let ours = OURS.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(path) = ours.as_deref().and_then(path) {
        let _ = fs::remove_file(path);
    }
}

fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let old = |entry: &fs::DirEntry| {
        let written = entry.metadata().and_then(|found| found.modified()).ok();
        written
            .and_then(|written| SystemTime::now().duration_since(written).ok())
            .is_some_and(|age| age > KEPT)
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_prefix(PREFIX).is_some_and(|name| path(name).is_some()) && old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_witnesses_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, age: Duration| {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        let hour = Duration::from_secs(3600);
        let names = ["a", "b"].map(|digit| format!("{PREFIX}{}", digit.repeat(32)));
        write(&names[0], KEPT + hour);
        write(&names[1], KEPT - hour);
        write("strata-run-of-somebody", KEPT + hour);
        sweep(folder.path());
        let left =
            ["strata-run-of-somebody", &names[0], &names[1]].map(|name| folder.path().join(name).exists());
        assert_eq!(left, [true, false, true]);
    }
}
