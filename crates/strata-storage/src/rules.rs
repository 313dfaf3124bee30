//! What may be done to a state: one pure function. Every storage calls it in the same atomic step in which it does what the decision says.

use bytes::Bytes;

use crate::head::{Head, Version};
use crate::lock::{Beat, Lock, LockKind};

/// A wish of a client.
#[derive(Debug, Clone)]
pub enum Command {
    /// `lapsed` names a lease that is known to have lapsed.
    Lock {
        lock: Lock,
        lapsed: Option<Beat>,
    },
    Heartbeat {
        id: String,
        user: String,
    },
    /// Without an id whoever holds it loses it. `may_break`: also a lock of another user.
    Unlock {
        id: Option<String>,
        user: String,
        may_break: bool,
    },
    Write(Write),
    Delete {
        lock: Option<String>,
        user: String,
        force: bool,
    },
    AppendJournal {
        lock: String,
        user: String,
        lines: Bytes,
    },
    ClearJournal {
        lock: String,
        user: String,
    },
}

#[derive(Debug, Clone)]
pub struct Write {
    pub content: Content,
    pub serial: Option<u64>,
    pub lineage: Option<String>,
    pub size: u64,
    pub md5: String,
    /// The lock that the writer holds as far as it knows.
    pub lock: Option<String>,
    pub replaces: Replaces,
    pub force: bool,
    pub by: String,
    pub written: i64,
}

/// What a write takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// What is there, if its serial is lower.
    Whatever,
    /// What has this serial as far as the writer knows; 0 for none.
    Serial(u64),
    /// It joins the history of a state that is not there, and no further.
    Nothing,
    /// The current version, by its number: what it holds cannot be read, so its serial does not count.
    Unreadable(u64),
}

/// The bytes of a state.
#[derive(Debug, Clone)]
pub enum Content {
    Inline(Bytes),
    /// Given to the storage before, under this name.
    Staged(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `from`: whose lapsed lease it was.
    Locked {
        from: Option<Lock>,
    },
    Renewed(Lock),
    Unlocked(Option<Lock>),
    Written(Version),
    /// It is there already: a request that was sent again.
    Unchanged(Version),
    Deleted(bool),
    Journaled,
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the state is locked by another")]
    Held(Box<Lock>),
    #[error("the lock `{id}` does not hold the state any more")]
    LockLost { id: String, holder: Option<Box<Lock>> },
    #[error("another user holds the lock")]
    NotYours(Box<Lock>),
    #[error("the state has serial {found}, not {expected}: somebody else wrote it")]
    Moved { expected: u64, found: u64 },
    #[error("the state has serial {found}, which is not older than {sent}")]
    Older { found: u64, sent: u64 },
    #[error("the state has another lineage")]
    Lineage,
}

/// What a storage does, all of it or nothing.
#[derive(Debug, Clone)]
pub enum Effect {
    SetLock(Option<Lock>),
    /// Joins the history, with the content of the command. It becomes the current version, or the state has none before and after.
    PutVersion {
        version: Version,
        current: bool,
    },
    RemoveCurrent,
    AppendJournal(Bytes),
    ClearJournal,
}

#[derive(Debug, Clone)]
pub struct Decision {
    pub outcome: Outcome,
    pub effect: Option<Effect>,
}

impl Command {
    /// Whether the answer waits until it is on the disk. If the power fails, a lock that was just given back is held again and a heartbeat
    /// is forgotten: neither loses a write nor makes two holders, and the next synced commit takes both with it.
    pub(crate) fn is_durable(&self) -> bool {
        !matches!(self, Self::Unlock { .. } | Self::Heartbeat { .. })
    }
}

impl Decision {
    fn new(outcome: Outcome, effect: Effect) -> Result<Self, Refusal> {
        Ok(Self { outcome, effect: Some(effect) })
    }

    fn nothing(outcome: Outcome) -> Result<Self, Refusal> {
        Ok(Self { outcome, effect: None })
    }
}

pub fn decide(head: &Head, command: &Command) -> Result<Decision, Refusal> {
    match command {
        Command::Lock { lock, lapsed } => take_lock(head, lock, lapsed.as_ref()),
        Command::Heartbeat { id, user } => {
            let held = holder(head, id, user)?;
            let renewed = Lock { beat: held.beat + 1, ..held.clone() };
            Decision::new(Outcome::Renewed(renewed.clone()), Effect::SetLock(Some(renewed)))
        }
        Command::Unlock { id, user, may_break } => unlock(head, id.as_deref(), user, *may_break),
        Command::Write(write) => decide_write(head, write),
        Command::Delete { lock, user, force } => {
            if !force {
                check_lock(head, lock.as_deref(), user)?;
            }
            match head.current {
                Some(_) => Decision::new(Outcome::Deleted(true), Effect::RemoveCurrent),
                None => Decision::nothing(Outcome::Deleted(false)),
            }
        }
        Command::AppendJournal { lock, user, lines } => {
            holder(head, lock, user)?;
            Decision::new(Outcome::Journaled, Effect::AppendJournal(lines.clone()))
        }
        Command::ClearJournal { lock, user } => {
            holder(head, lock, user)?;
            Decision::new(Outcome::Journaled, Effect::ClearJournal)
        }
    }
}

fn take_lock(head: &Head, wanted: &Lock, lapsed: Option<&Beat>) -> Result<Decision, Refusal> {
    let granted = |from| Decision::new(Outcome::Locked { from }, Effect::SetLock(Some(wanted.clone())));
    let Some(held) = &head.lock else { return granted(None) };
    if held.id == wanted.id && held.kind == wanted.kind && held.user == wanted.user {
        return Decision::nothing(Outcome::Locked { from: None });
    }
    let gone = held.kind == LockKind::Lease && lapsed.is_some_and(|beat| held.is_at(beat));
    if gone { granted(Some(held.clone())) } else { Err(Refusal::Held(Box::new(held.clone()))) }
}

fn unlock(head: &Head, id: Option<&str>, user: &str, may_break: bool) -> Result<Decision, Refusal> {
    let Some(held) = &head.lock else { return Decision::nothing(Outcome::Unlocked(None)) };
    // The user comes first: whoever may not take the lock away is not told whether the id was right.
    if held.user != user && !may_break {
        return Err(Refusal::NotYours(Box::new(held.clone())));
    }
    if let Some(id) = id
        && held.id != id
    {
        return Err(Refusal::LockLost { id: id.to_owned(), holder: Some(Box::new(held.clone())) });
    }
    Decision::new(Outcome::Unlocked(Some(held.clone())), Effect::SetLock(None))
}

/// The lock, if it is the one that the client names and this user's. An id is no key: it is printed, logged and told, so another user
/// who names it is answered as if it were wrong.
fn holder<'h>(head: &'h Head, id: &str, user: &str) -> Result<&'h Lock, Refusal> {
    match &head.lock {
        Some(held) if held.id == id && held.user == user => Ok(held),
        other => Err(Refusal::LockLost { id: id.to_owned(), holder: other.clone().map(Box::new) }),
    }
}

fn check_lock(head: &Head, id: Option<&str>, user: &str) -> Result<(), Refusal> {
    match (&head.lock, id) {
        (None, None) => Ok(()),
        (Some(held), Some(id)) if held.id == id && held.user == user => Ok(()),
        (Some(held), _) => Err(Refusal::Held(Box::new(held.clone()))),
        (None, Some(id)) => Err(Refusal::LockLost { id: id.to_owned(), holder: None }),
    }
}

fn decide_write(head: &Head, write: &Write) -> Result<Decision, Refusal> {
    if write.replaces == Replaces::Nothing {
        check_lock(head, write.lock.as_deref(), &write.by)?;
        if let Some(current) = &head.current {
            return Err(Refusal::Moved { expected: 0, found: current.serial.unwrap_or(0) });
        }
        let version = next_version(head, write, false);
        return Decision::new(
            Outcome::Written(version.clone()),
            Effect::PutVersion { version, current: false },
        );
    }
    if let Replaces::Unreadable(expected) = write.replaces {
        check_lock(head, write.lock.as_deref(), &write.by)?;
        let current = head.current.as_ref();
        if current.map(|current| current.version) != Some(expected) {
            let found = current.and_then(|current| current.serial).unwrap_or(0);
            return Err(Refusal::Moved { expected: write.serial.unwrap_or(0).saturating_sub(1), found });
        }
        let version = next_version(head, write, false);
        return Decision::new(
            Outcome::Written(version.clone()),
            Effect::PutVersion { version, current: true },
        );
    }
    let broken =
        check_lock(head, write.lock.as_deref(), &write.by).err().or_else(|| check_content(head, write).err());
    let forced = match broken {
        Some(refusal) if !write.force => return Err(refusal),
        broken => broken.is_some(),
    };
    if let Some(current) = head.current.as_ref().filter(|current| is_same(current, write)) {
        return Decision::nothing(Outcome::Unchanged(current.clone()));
    }
    let version = next_version(head, write, forced);
    Decision::new(Outcome::Written(version.clone()), Effect::PutVersion { version, current: true })
}

fn next_version(head: &Head, write: &Write, forced: bool) -> Version {
    Version {
        version: head.last_version + 1,
        serial: write.serial,
        lineage: write.lineage.clone(),
        size: write.size,
        md5: write.md5.clone(),
        written: write.written,
        by: write.by.clone(),
        forced,
    }
}

fn is_same(current: &Version, write: &Write) -> bool {
    current.md5 == write.md5 && current.size == write.size && current.serial == write.serial
}

fn check_content(head: &Head, write: &Write) -> Result<(), Refusal> {
    if head.current.as_ref().is_some_and(|current| is_same(current, write)) {
        return Ok(());
    }
    let found = head.current.as_ref().and_then(|current| current.serial).unwrap_or(0);
    if let Replaces::Serial(expected) = write.replaces
        && expected != found
    {
        return Err(Refusal::Moved { expected, found });
    }
    let Some(current) = &head.current else { return Ok(()) };
    if current.lineage.is_some() && current.lineage != write.lineage {
        return Err(Refusal::Lineage);
    }
    match (current.serial, write.serial.unwrap_or(0)) {
        (Some(found), sent) if sent <= found => Err(Refusal::Older { found, sent }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
