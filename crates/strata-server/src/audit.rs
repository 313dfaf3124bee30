//! The audit log: who did what to which state, from where. One JSON object a line; nothing of what a state holds.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use serde::Serialize;

/// Lines that wait to be written. When the disk is too slow for them a request waits instead of a line being lost.
const QUEUE: usize = 4096;
/// A log of this size is moved away to make room for a new one; so many old ones are kept. Only users add to it, but one that may do
/// nothing but read must not be able to push out within minutes what the others did.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
const KEPT: u32 = 9;

#[derive(Debug, Serialize)]
pub(crate) struct AuditEntry {
    /// RFC 3339.
    pub(crate) time: String,
    pub(crate) user: String,
    pub(crate) from: IpAddr,
    pub(crate) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// The HTTP status that it was answered with.
    pub(crate) status: u16,
    #[serde(flatten)]
    pub(crate) details: AuditDetails,
}

/// What a handler knows beyond the request itself.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AuditDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serial: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<String>,
    /// A rule spoke against it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) forced: bool,
    /// The id of the lock that was taken away from somebody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) taken: Option<String>,
}

/// What the thread that writes is told.
enum Told {
    Line(Vec<u8>),
    /// Everything before this is to be written, and then said so.
    Flush(SyncSender<()>),
}

#[derive(Clone)]
pub(crate) struct Audit {
    lines: Option<SyncSender<Told>>,
    failures: Arc<AtomicU64>,
}

impl Audit {
    pub(crate) fn none() -> Self {
        Self { lines: None, failures: Arc::default() }
    }

    pub(crate) fn to_file(path: &Path) -> std::io::Result<Self> {
        let file = Log::open(path)?;
        let (lines, queue) = sync_channel(QUEUE);
        let failures = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&failures);
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || file.run(&queue, &counted))?;
        Ok(Self { lines: Some(lines), failures })
    }

    pub(crate) async fn record(&self, entry: &AuditEntry) {
        let Some(lines) = &self.lines else { return };
        let Ok(mut line) = serde_json::to_vec(entry) else { return };
        line.push(b'\n');
        if let Err(TrySendError::Full(line)) = lines.try_send(Told::Line(line)) {
            let lines = lines.clone();
            let _ = tokio::task::spawn_blocking(move || lines.send(line)).await;
        }
    }

    /// Waits until every line is written. A server that ends loses none.
    pub(crate) async fn flush(&self) {
        let Some(lines) = self.lines.clone() else { return };
        let flushed = move || {
            let (told, written) = sync_channel(1);
            lines.send(Told::Flush(told)).is_ok() && written.recv().is_ok()
        };
        let _ = tokio::task::spawn_blocking(flushed).await;
    }

    /// Lines that could not be written.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

struct Log {
    path: PathBuf,
    file: fs::File,
    size: u64,
}

impl Log {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, size })
    }

    fn run(mut self, queue: &Receiver<Told>, failures: &AtomicU64) {
        while let Ok(first) = queue.recv() {
            let (mut lines, mut count, mut flushed) = (Vec::new(), 0, Vec::new());
            for told in std::iter::once(first).chain(queue.try_iter()) {
                match told {
                    Told::Line(line) => {
                        lines.extend_from_slice(&line);
                        count += 1;
                    }
                    Told::Flush(written) => flushed.push(written),
                }
            }
            if count > 0 && self.write(&lines).is_err() {
                failures.fetch_add(count, Ordering::Relaxed);
            }
            for written in flushed {
                // Whoever asked may have gone.
                let _ = written.send(());
            }
        }
    }

    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        if self.size >= MAX_BYTES {
            let old = |number: u32| self.path.with_extension(format!("log.{number}"));
            for number in (1..KEPT).rev() {
                match fs::rename(old(number), old(number + 1)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::rename(&self.path, old(1))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(lines)?;
        self.size += lines.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn after_a_flush_every_line_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let audit = Audit::to_file(&path).unwrap();
        for version in 0..20_000 {
            let details = AuditDetails { version: Some(version), ..AuditDetails::default() };
            let entry = AuditEntry {
                time: String::new(),
                user: "ann".to_owned(),
                from: IpAddr::from([192, 0, 2, 1]),
                action: "read",
                state: None,
                status: 200,
                details,
            };
            audit.record(&entry).await;
        }
        audit.flush().await;
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 20_000);
        assert_eq!(audit.failures(), 0);
    }
}
