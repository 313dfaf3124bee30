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

#[derive(Clone)]
pub(crate) struct Audit {
    lines: Option<SyncSender<Vec<u8>>>,
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
        if let Err(TrySendError::Full(line)) = lines.try_send(line) {
            let lines = lines.clone();
            let _ = tokio::task::spawn_blocking(move || lines.send(line)).await;
        }
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

    fn run(mut self, queue: &Receiver<Vec<u8>>, failures: &AtomicU64) {
        while let Ok(mut lines) = queue.recv() {
            let mut count = 1;
            while let Ok(line) = queue.try_recv() {
                lines.extend_from_slice(&line);
                count += 1;
            }
            if self.write(&lines).is_err() {
                failures.fetch_add(count, Ordering::Relaxed);
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
