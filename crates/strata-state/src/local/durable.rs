//! Files that are there whole or not at all, also after the power failed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use crate::StoreError;

/// Temporary file, fsync, rename, fsync of the folder.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let temporary = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut file = create_private(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_folder(path)
    };
    write().map_err(|source| super::io("cannot write", path, source))
}

/// A folder that is still there after the power failed, with all folders above it that had to be made.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    let make = || -> std::io::Result<()> {
        let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
        fs::create_dir_all(path)?;
        missing.into_iter().try_for_each(sync_folder)
    };
    make().map_err(|source| super::io("cannot make", path, source))
}

/// States name machines and addresses of a datacenter: only the user reads them.
fn create_private(path: &Path) -> std::io::Result<fs::File> {
    let file = open_private(path)?;
    file.set_len(0)?;
    Ok(file)
}

/// Opens for writing, as it is; made if it is not there.
pub(super) fn open_private(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Makes durable that `path` is in its folder, or is not any more.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => fs::File::open(".")?.sync_all(),
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// A file time in the form of RFC 3339, in UTC.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest % 3600 / 60, rest % 60)
}

/// Days since 1970 as a date, counted in eras of 400 years that begin on the first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_read_as_dates() {
        let at = |seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_794_771_666), "2026-11-15T19:41:06Z");
    }
}
