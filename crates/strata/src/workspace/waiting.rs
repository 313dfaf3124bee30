//! A store whose locks are waited for: `--lock-timeout`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use strata_state::{
    Holder, JournalRecord, Lease, LockOwner, LockedState, StateDocument, Store, StoreError, Version,
};
use tokio::time::Instant;

use crate::context::timestamp;
use crate::printer::Printer;

/// How often a lock is asked for. Short at first: most runs that are in the way are about to end.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Who waits is told again after this long that it goes on.
const REMINDER: Duration = Duration::from_secs(60);

/// Asks again for a lock that somebody else holds, until the time is over; everything else is as it is.
pub(super) struct WaitingStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) patience: Duration,
    pub(super) printer: Printer,
}

impl WaitingStore {
    fn tell(&self, key: &str, holder: &Holder, left: Duration) {
        let seconds = left.as_secs().max(1);
        self.printer.event(&json!({
            "event": "waiting", "key": key, "holder": holder.to_string(), "lock": holder.owner.id, "seconds": seconds,
        }));
        let lease = match holder.lease {
            Lease::Running(left) => {
                format!("; unless it is heard of, its lock ends in {} s", left.as_secs().max(1))
            }
            Lease::Endless | Lease::Lapsed => String::new(),
        };
        self.printer
            .note(format!("waiting up to {seconds} s for the lock on `{key}`, held by {holder}{lease}"));
    }
}

#[async_trait]
impl Store for WaitingStore {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn caveat(&self) -> Option<String> {
        self.store.caveat()
    }

    fn kept(&self) -> Option<usize> {
        self.store.kept()
    }

    async fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.store.keys().await
    }

    async fn lists(&self) -> Result<bool, StoreError> {
        self.store.lists().await
    }

    async fn read(&self, key: &str) -> Result<Option<StateDocument>, StoreError> {
        self.store.read(key).await
    }

    async fn read_journal(&self, key: &str) -> Result<Vec<JournalRecord>, StoreError> {
        self.store.read_journal(key).await
    }

    async fn lock(&self, key: &str, owner: LockOwner) -> Result<Box<dyn LockedState>, StoreError> {
        let until = Instant::now() + self.patience;
        let mut told: Option<(String, Instant)> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            // The lock is held since it was got, not since it was wanted.
            let owner = LockOwner { since: timestamp(), ..owner.clone() };
            let holder = match self.store.lock(key, owner).await {
                Err(StoreError::Locked { holder, .. }) => holder,
                other => return other,
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Locked { key: key.to_owned(), holder });
            }
            let known =
                told.as_ref().is_some_and(|(id, when)| *id == holder.owner.id && when.elapsed() < REMINDER);
            if !known {
                self.tell(key, &holder, left);
                told = Some((holder.owner.id.clone(), Instant::now()));
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn holder(&self, key: &str) -> Result<Option<Holder>, StoreError> {
        self.store.holder(key).await
    }

    async fn break_lock(&self, key: &str, id: &str) -> Result<(), StoreError> {
        self.store.break_lock(key, id).await
    }

    async fn history(&self, key: &str) -> Result<Vec<Version>, StoreError> {
        self.store.history(key).await
    }

    async fn read_version(&self, key: &str, serial: u64) -> Result<StateDocument, StoreError> {
        self.store.read_version(key, serial).await
    }
}

/// `90`, `90s`, `10m`, `1h30m`: at most a day.
pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is such as `30s`, `10m` or `1h30m`".to_owned();
    let mut seconds: u64 = 0;
    let mut number = String::new();
    for letter in text.trim().chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return Err(wrong()),
        };
        let amount: u64 = number.parse().map_err(|_| wrong())?;
        number.clear();
        seconds = amount.checked_mul(unit).and_then(|more| seconds.checked_add(more)).ok_or_else(wrong)?;
    }
    if !number.is_empty() {
        let amount: u64 = number.parse().map_err(|_| wrong())?;
        seconds = seconds.checked_add(amount).ok_or_else(wrong)?;
    } else if text.trim().is_empty() {
        return Err(wrong());
    }
    if seconds > 24 * 3600 {
        return Err("nobody waits longer than a day".to_owned());
    }
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, seconds) in
            [("0", 0), ("90", 90), ("30s", 30), ("10m", 600), ("1h30m", 5400), (" 2h ", 7200)]
        {
            assert_eq!(read_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "m5", "-1", "1d", "ten", "25h", "99999999999999999999s", "1.5h"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }
}
