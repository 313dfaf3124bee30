//! Files that are in no folder: in memory, open as long as somebody has them, and gone with the last one.
//!
//! A child opens one by the number that it inherits. What OpenTofu says goes into such a file too, not through a pipe: a pipe would
//! break with Strata, and a broken pipe would end OpenTofu in the middle of its work.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

pub(super) struct MemoryFile(File);

impl MemoryFile {
    /// One that children inherit.
    pub(super) fn inherited() -> io::Result<Self> {
        let file = anonymous()?;
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
        Ok(Self(file))
    }

    /// One that a child is given as its standard output.
    pub(super) fn private() -> io::Result<Self> {
        Ok(Self(anonymous()?))
    }

    /// The path that a child opens it by.
    pub(super) fn path(&self) -> String {
        format!("/dev/fd/{}", self.0.as_raw_fd())
    }

    pub(super) fn stdio(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(OwnedFd::from(self.0.try_clone()?)))
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, 0)
    }

    /// What is in it from a place on. A child's place is its own: reading moves nothing.
    pub(super) fn read_from(&self, start: u64) -> io::Result<Vec<u8>> {
        let length = self.0.metadata()?.len().saturating_sub(start);
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }
}

#[cfg(target_os = "linux")]
fn anonymous() -> io::Result<File> {
    let made = rustix::fs::memfd_create("strata", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(made))
}

/// A file whose name is taken away at once.
#[cfg(not(target_os = "linux"))]
fn anonymous() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("strata-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_writes_and_reads_it() {
        let (own, said) = (MemoryFile::inherited().unwrap(), MemoryFile::private().unwrap());
        own.write(b"one\n").unwrap();
        let script = format!("cat {0}; echo two > {0}", own.path());
        let status = Command::new("sh").args(["-c", &script]).stdout(said.stdio().unwrap()).status().unwrap();
        assert!(status.success());
        assert_eq!(said.read_from(0).unwrap(), b"one\n");
        assert_eq!(said.read_from(2).unwrap(), b"e\n");
        assert_eq!(own.read_from(0).unwrap(), b"two\n");
        assert_eq!(said.read_from(99).unwrap(), b"");
    }
}
