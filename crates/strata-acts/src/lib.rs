//! What is done outside any plan, as verbs: `strata backup` and `strata snapshot` to one guest, `strata hypervisor` to hosts.
//!
//! [`run`] takes an [`Act`] with its arguments; what it says goes to a [`Terminal`], which also asks. An act takes the lock of the guest's stack, writes
//! its journal entry before it writes anything remote, and proves what came of it (`strata_providers::GuestSession`). What a guest loses is
//! said before anybody agrees to it.
//!
//! ```no_run
//! # use strata_acts::Act;
//! # use strata_session::{SessionError, Workspace};
//! # async fn example(act: &Act, workspace: &Workspace, terminal: &dyn strata_events::Terminal) -> Result<(), SessionError> {
//! let providers = strata_providers::AllProviders::default();
//! let stop = strata_engine::StopSignal::default();
//! strata_acts::run(act, workspace, &providers, terminal, &stop).await
//! # }
//! ```

#![warn(missing_docs)]

mod backup;
mod hypervisor;
mod snapshot;

use strata_engine::StopSignal;
use strata_events::Terminal;
use strata_providers::{AllProviders, GuestSession};
use strata_session::{SessionError, Workspace};

pub use backup::BackupArgs;
pub use hypervisor::HypervisorArgs;
pub use snapshot::SnapshotArgs;

/// A verb with its arguments.
#[derive(Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "the help of a verb is that of its arguments")]
pub enum Act {
    Backup(BackupArgs),
    Snapshot(SnapshotArgs),
    Hypervisor(HypervisorArgs),
}

/// What a verb works with.
struct Desk<'d> {
    workspace: &'d Workspace,
    providers: &'d AllProviders,
    terminal: &'d dyn Terminal,
    stop: &'d StopSignal,
}

/// Does what the verb says, and gives the lock back whatever came of it.
pub async fn run(
    act: &Act,
    workspace: &Workspace,
    providers: &AllProviders,
    terminal: &dyn Terminal,
    stop: &StopSignal,
) -> Result<(), SessionError> {
    let desk = Desk { workspace, providers, terminal, stop };
    match act {
        Act::Backup(args) => backup::run(args, &desk).await,
        Act::Snapshot(args) => snapshot::run(args, &desk).await,
        Act::Hypervisor(args) => hypervisor::run(args, &desk).await,
    }
}

impl Desk<'_> {
    /// Says what is lost, and asks.
    fn agree(&self, yes: bool, loss: &str, question: &str) -> Result<(), SessionError> {
        self.terminal.note(loss);
        if yes { Ok(()) } else { self.terminal.ask(question) }
    }

    /// Gives the lock back, whatever came of the act; the first error is the one to tell.
    async fn end<T>(&self, guest: GuestSession, outcome: Result<T, SessionError>) -> Result<T, SessionError> {
        let released = guest.release().await;
        let outcome = outcome?;
        released?;
        Ok(outcome)
    }
}

/// `2026-11-18 20:11:05 UTC`.
fn time(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// As RFC 3339, for programs.
fn timestamp(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let fits = |power: &usize| bytes < 1 << (10 * (power + 2));
    let power = (0..UNITS.len()).find(fits).unwrap_or(UNITS.len() - 1);
    let tenths = (u128::from(bytes) * 10) >> (10 * (power + 1));
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power])
}

/// Notes as one line.
fn one_line(notes: &str) -> String {
    let lines = notes.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_by_people() {
        assert_eq!(size(0), "0.0 KiB");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!((size((1 << 20) - 1), size(1 << 20)), ("1023.9 KiB".to_owned(), "1.0 MiB".to_owned()));
        assert_eq!(size(5 << 50), "5120.0 TiB");
        assert_eq!(time(1_794_916_800), "2026-11-17 12:00:00 UTC");
        assert_eq!(timestamp(1_794_916_800), "2026-11-17T12:00:00Z");
        assert_eq!(one_line("a\n\n b \n"), "a / b");
    }
}
