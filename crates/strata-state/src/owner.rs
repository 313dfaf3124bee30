//! Who holds a lock: enough to tell people, and to know for certain when the holder is dead.

mod witness;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::LeaseTerms;

/// Who holds a lock, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockOwner {
    pub id: String,
    /// `user@host`.
    pub who: String,
    #[serde(default)]
    pub pid: u32,
    /// `apply`, `destroy`, …
    pub operation: String,
    /// RFC 3339.
    pub since: String,
    /// What makes the pid unmistakable; none where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessMark>,
}

impl LockOwner {
    /// Whether the holder ran on this machine and has ended. False where that cannot be known.
    pub fn is_dead_here(&self) -> bool {
        let (Some(theirs), Some(ours)) = (&self.process, ProcessMark::read(std::process::id())) else {
            return false;
        };
        theirs.boot == ours.boot
            && theirs.namespace == ours.namespace
            && theirs.witness.as_deref().is_some_and(witness::is_here)
            && ProcessMark::read(self.pid).is_none_or(|now| now.started != theirs.started)
    }

    /// A holder of whom nothing is known.
    pub(crate) fn unknown() -> Self {
        Self {
            id: String::new(),
            who: "somebody".to_owned(),
            pid: 0,
            operation: "?".to_owned(),
            since: "?".to_owned(),
            process: None,
        }
    }
}

impl fmt::Display for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.who)?;
        if self.pid != 0 {
            write!(f, " (pid {})", self.pid)?;
        }
        if !matches!(self.operation.as_str(), "" | "?") {
            write!(f, " for `{}`", self.operation)?;
        }
        write!(f, " since {}", self.since)
    }
}

/// A process among all that ever ran: pids come again, and every container counts its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    /// The boot of the kernel that it runs on.
    pub boot: String,
    /// The namespace that its pid belongs to.
    pub namespace: String,
    /// When it began, in ticks since the boot.
    pub started: u64,
    /// The name of a file that it made on this machine. Machines that were restored from one snapshot have the same boot and give out the
    /// same pids; what one of them does afterwards the others do not have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
}

impl ProcessMark {
    /// None if there is no such process, or the system does not tell. Of this process itself there is a witness, made when this is first
    /// asked.
    pub fn of(pid: u32) -> Option<Self> {
        let mark = Self::read(pid)?;
        let witness = (pid == std::process::id()).then(witness::of_this_process).flatten();
        Some(Self { witness, ..mark })
    }

    /// Takes back the witness of this process: it has ended well, and holds no lock.
    pub fn forget() {
        witness::forget();
    }

    fn read(pid: u32) -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { boot, namespace, started: started(&stat)?, witness: None })
    }
}

/// The name of a program can hold anything, so the fields are counted from its closing bracket.
fn started(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // A zombie has ended; only its parent has not asked yet.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// How long a lock is held if nothing more is heard of its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Until it is released or taken away.
    Endless,
    /// For this long.
    Running(Duration),
    Lapsed,
}

/// A lock that somebody holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub owner: LockOwner,
    pub lease: Lease,
}

impl Holder {
    /// Whether the lock can be taken over without asking anybody: its holder starts no remote write any more.
    pub fn is_gone(&self) -> bool {
        self.lease == Lease::Lapsed || self.owner.is_dead_here()
    }

    /// How long its requests may still arrive after its lock was taken away: it may not have noticed yet, and goes by its lease until then.
    pub fn outstanding(&self, terms: &LeaseTerms) -> Duration {
        match self.lease {
            _ if self.owner.is_dead_here() => Duration::ZERO,
            Lease::Running(left) => left + terms.write_timeout(),
            Lease::Lapsed => terms.write_timeout(),
            Lease::Endless => Duration::ZERO,
        }
    }

    pub(crate) fn endless(owner: LockOwner) -> Self {
        Self { owner, lease: Lease::Endless }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.owner.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(pid: u32, process: Option<ProcessMark>) -> LockOwner {
        LockOwner { pid, process, ..LockOwner::unknown() }
    }

    #[test]
    fn a_holder_is_dead_only_if_that_is_known() {
        let me = std::process::id();
        let mark = ProcessMark::of(me).unwrap();
        assert!(!owner(me, Some(mark.clone())).is_dead_here());
        assert!(!owner(me, None).is_dead_here(), "it says nothing about itself");
        let earlier = ProcessMark { started: mark.started.wrapping_sub(1), ..mark.clone() };
        assert!(owner(me, Some(earlier)).is_dead_here(), "another process had this pid");
        let elsewhere = ProcessMark { boot: "another".into(), started: 0, ..mark.clone() };
        assert!(!owner(me, Some(elsewhere)).is_dead_here());
        let contained = ProcessMark { namespace: "pid:[1]".into(), started: 0, ..mark };
        assert!(!owner(me, Some(contained)).is_dead_here());
    }

    /// Two machines that were restored from one snapshot: one boot id, one namespace, and the pid of a run on the one is free on the other.
    #[test]
    fn a12_a_run_on_a_twin_of_this_machine_is_not_dead() {
        let me = std::process::id();
        let mark = ProcessMark::of(me).unwrap();
        let earlier = mark.started.wrapping_sub(1);
        for witness in
            [None, Some("0123456789abcdef".into()), Some("../../etc/passwd".into()), Some(String::new())]
        {
            let twin = ProcessMark { started: earlier, witness: witness.clone(), ..mark.clone() };
            assert!(!owner(me, Some(twin.clone())).is_dead_here(), "{witness:?}");
            assert!(!owner(u32::MAX, Some(twin)).is_dead_here(), "{witness:?}");
        }
        assert!(owner(me, Some(ProcessMark { started: earlier, ..mark })).is_dead_here());
    }

    #[test]
    fn a_killed_process_is_dead_before_it_is_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let witness = ProcessMark::of(std::process::id()).unwrap().witness;
        let process = ProcessMark { witness, ..ProcessMark::of(child.id()).unwrap() };
        let held = owner(child.id(), Some(process));
        assert!(!held.is_dead_here());
        child.kill().unwrap();
        while ProcessMark::of(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(held.is_dead_here());
        child.wait().unwrap();
        assert!(held.is_dead_here());
    }

    #[test]
    fn a_program_can_have_any_name() {
        let stat = "7 (a) R (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        assert_eq!(started(stat), Some(4242));
        assert_eq!(started("7 (a) Z 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1"), None);
        assert_eq!(started(""), None);
    }
}
