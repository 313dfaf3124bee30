//! Requests of nobody that the server knows, counted by where they came from. Anybody can send them, so they have a log of their own,
//! with one line for each address and minute at most: however many there are, they push nothing out of the audit log.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::http::rfc3339;
use crate::proxies::network_of;

/// Addresses that are counted apart within a minute; further ones are counted together.
const MAX_ADDRESSES: usize = 256;
/// A log of this size is moved away to make room for a new one; one old one is kept.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why somebody was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// Name, password or token were wrong.
    Wrong,
    /// Nothing was looked at, since there were too many wrong ones before.
    Throttled,
}

/// What came from one address since the last line about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    since: i64,
    wrong: u64,
    throttled: u64,
}

#[derive(Serialize)]
struct Line {
    /// The first of them, RFC 3339.
    time: String,
    action: &'static str,
    /// None: addresses beyond those that are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<IpAddr>,
    wrong: u64,
    throttled: u64,
}

#[derive(Default)]
pub(crate) struct Denials {
    /// None as a key: all addresses beyond those that are counted apart.
    tallies: Mutex<HashMap<Option<IpAddr>, Tally>>,
    path: Option<PathBuf>,
}

impl Denials {
    pub(crate) fn to_file(path: PathBuf) -> Self {
        Self { tallies: Mutex::default(), path: Some(path) }
    }

    pub(crate) fn count(&self, from: IpAddr, denial: Denial, now: i64) {
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = Some(network_of(from));
        if tallies.len() >= MAX_ADDRESSES && !tallies.contains_key(&key) {
            key = None;
        }
        let tally = tallies.entry(key).or_insert(Tally { since: now, ..Tally::default() });
        match denial {
            Denial::Wrong => tally.wrong += 1,
            Denial::Throttled => tally.throttled += 1,
        }
    }

    /// Writes down what was counted and begins again.
    pub(crate) fn flush(&self) -> std::io::Result<()> {
        let tallies = std::mem::take(&mut *self.tallies.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(path) = &self.path else { return Ok(()) };
        if tallies.is_empty() {
            return Ok(());
        }
        let mut tallies: Vec<_> = tallies.into_iter().collect();
        tallies.sort_by_key(|(from, tally)| (tally.since, *from));
        let mut lines = Vec::new();
        for (from, tally) in tallies {
            let time = rfc3339(tally.since);
            let (wrong, throttled) = (tally.wrong, tally.throttled);
            serde_json::to_writer(&mut lines, &Line { time, action: "denied", from, wrong, throttled })?;
            lines.push(b'\n');
        }
        append(path, &lines)
    }
}

fn append(path: &Path, lines: &[u8]) -> std::io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.len() >= MAX_BYTES) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)?.write_all(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_a_flood_is_a_few_lines() {
        let folder = tempfile::tempdir().unwrap();
        let denials = Denials::to_file(folder.path().join("denied.log"));
        for guess in 0..100_000_u32 {
            let from = IpAddr::from([192, 0, 2, u8::try_from(guess % 4).unwrap()]);
            denials.count(from, if guess < 50 { Denial::Wrong } else { Denial::Throttled }, 1_800_000_000);
        }
        denials.flush().unwrap();
        denials.flush().unwrap();
        let log = std::fs::read_to_string(folder.path().join("denied.log")).unwrap();
        assert_eq!(log.lines().count(), 4, "{log}");
        let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let total = first["wrong"].as_u64().unwrap() + first["throttled"].as_u64().unwrap();
        assert_eq!((total, first["from"].as_str()), (25_000, Some("192.0.2.0")));
    }

    #[test]
    fn c4_many_addresses_are_counted_together() {
        let folder = tempfile::tempdir().unwrap();
        let denials = Denials::to_file(folder.path().join("denied.log"));
        for guess in 0..20_000_u32 {
            denials.count(IpAddr::from(guess.to_be_bytes()), Denial::Wrong, 1_800_000_000);
            // A whole network of version 6 is one sender.
            let host = (u128::from(0x2001_0db8_u32) << 96) + u128::from(guess);
            denials.count(IpAddr::from(host.to_be_bytes()), Denial::Wrong, 1_800_000_000);
        }
        denials.flush().unwrap();
        let log = std::fs::read_to_string(folder.path().join("denied.log")).unwrap();
        assert_eq!(log.lines().count(), MAX_ADDRESSES + 1, "{}", log.lines().count());
        let count =
            |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["wrong"].as_u64().unwrap();
        assert_eq!(log.lines().map(count).sum::<u64>(), 40_000);
    }
}
