//! How much may happen at once, and how much does: shared by all stacks of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How much may happen at once.
#[derive(Debug, Clone)]
pub struct Limits {
    pub total: usize,
    pub per_target: usize,
    pub per_storage: usize,
    pub per_template: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 16, per_target: 8, per_storage: 4, per_template: 4 }
    }
}

impl Limits {
    /// One after the other.
    pub fn serial() -> Self {
        Self { total: 1, per_target: 1, per_storage: 1, per_template: 1 }
    }

    fn of(&self, key: &str) -> usize {
        let limit = match key.split_once(':').map_or("", |(kind, _)| kind) {
            "target" => self.per_target,
            "storage" => self.per_storage,
            "template" => self.per_template,
            _ => self.total,
        };
        limit.max(1)
    }
}

/// The limits of a run, and what is taken of them. Clones share it.
#[derive(Clone)]
pub struct Capacity(Arc<Shared>);

struct Shared {
    limits: Limits,
    used: Mutex<Used>,
    /// Counts what was given back, so that whoever waits for a place tries again.
    freed: watch::Sender<u64>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_key: BTreeMap<String, usize>,
}

/// Why a step cannot begin now.
pub(crate) enum Full {
    Total,
    Key(String),
}

impl Capacity {
    pub fn new(limits: Limits) -> Self {
        let (used, freed) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Shared { limits, used, freed }))
    }

    /// A place for a step that uses all of these, or the first of them that is full.
    pub(crate) fn take(&self, keys: &[String]) -> Result<Seat, Full> {
        let limits = &self.0.limits;
        let mut used = self.used();
        if used.total >= limits.total.max(1) {
            return Err(Full::Total);
        }
        if let Some(full) = keys.iter().find(|key| used.of(key) >= limits.of(key)) {
            return Err(Full::Key(full.clone()));
        }
        used.total += 1;
        for key in keys {
            *used.by_key.entry(key.clone()).or_default() += 1;
        }
        Ok(Seat { capacity: self.clone(), keys: keys.to_vec() })
    }

    pub(crate) fn has_room(&self, key: &str) -> bool {
        self.used().of(key) < self.0.limits.of(key)
    }

    /// Hears of every place that becomes free from now on.
    pub(crate) fn freed(&self) -> watch::Receiver<u64> {
        self.0.freed.subscribe()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    fn of(&self, key: &str) -> usize {
        self.by_key.get(key).copied().unwrap_or(0)
    }
}

/// What a running step has taken; given back when it is dropped.
pub(crate) struct Seat {
    capacity: Capacity,
    keys: Vec<String>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut used = self.capacity.used();
        used.total -= 1;
        for key in &self.keys {
            if let Some(count) = used.by_key.get_mut(key) {
                *count -= 1;
            }
        }
        drop(used);
        self.capacity.0.freed.send_modify(|count| *count += 1);
    }
}
