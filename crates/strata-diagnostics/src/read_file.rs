//! Reading a file that somebody names: a file, of a size that fits into memory, or a word about what it is instead.

use std::fs::{self, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// More than any source, secret or document has.
pub const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// More than a state, a plan or an encrypted file has, and less than a machine's memory.
pub const LARGEST_DOCUMENT: u64 = 1024 * 1024 * 1024;

/// The content of a file, or of what the shell opened for this run, such as `<(pass show key)`. Anything else is not even opened: a FIFO
/// would wait for a writer, and a device may never end.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("it is larger than {}", size(most)));
    let found = fs::metadata(path)?;
    if let Some(kind) = other_kind(found.file_type()).filter(|_| !is_open_already(path)) {
        return Err(io::Error::other(format!("it is {kind}, not a file")));
    }
    if found.len() > most {
        return Err(too_large());
    }
    // Some files tell no size, and some grow.
    let mut content = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    fs::File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|length| length > most) {
        return Err(too_large());
    }
    Ok(content)
}

/// As [`read_file`], for text.
pub fn read_text_file(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_file(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// A descriptor that whoever started this run gave it. Only by its own name: a link in a repository that leads there is nobody's wish.
fn is_open_already(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn size(bytes: u64) -> String {
    match bytes / (1024 * 1024) {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// What it is, unless it is a file.
fn other_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a folder")
    } else if kind.is_fifo() {
        Some("a FIFO")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        Some("something else")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f19_what_is_no_file_is_told() {
        let told = |path: &str| read_file(Path::new(path), 10).unwrap_err().to_string();
        assert_eq!(told("/dev/zero"), "it is a device, not a file");
        assert_eq!(told("/"), "it is a folder, not a file");
        assert_eq!(read_file(Path::new("/nowhere"), 10).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn f19_what_the_shell_opened_is_read() {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"a password").unwrap();
        drop(writer);
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(read_file(Path::new(&path), 10).unwrap(), b"a password");
        let endless = fs::File::open("/dev/zero").unwrap();
        let path = format!("/proc/self/fd/{}", endless.as_raw_fd());
        assert_eq!(read_file(Path::new(&path), 16).unwrap_err().to_string(), "it is larger than 16 bytes");
    }

    #[test]
    fn f19_a_file_is_read_up_to_its_limit() {
        // It tells no size.
        let path = Path::new("/proc/self/status");
        assert_eq!(read_file(path, 16).unwrap_err().to_string(), "it is larger than 16 bytes");
        assert!(read_text_file(path, LARGEST_FILE).unwrap().starts_with("Name:"));
    }
}
