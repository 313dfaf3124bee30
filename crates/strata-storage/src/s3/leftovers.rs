//! Objects that nothing names: what a server had begun to write when it was killed, or could not delete.
//!
//! An upload under way is not named either, perhaps one of another server. So an object goes only after it was unnamed for longer than any
//! upload may take, by a clock that does not jump: this process must have seen it unnamed all that time.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Leftovers {
    after: Duration,
    seen: Mutex<HashMap<String, Instant>>,
}

impl Leftovers {
    pub(super) fn after(after: Duration) -> Self {
        Self { after, seen: Mutex::default() }
    }

    /// How long an upload may take from its first part until something names it.
    pub(super) fn longest_upload(&self) -> Duration {
        self.after / 2
    }

    /// Given all objects that nothing names now: those that may go.
    pub(super) fn ripe(&self, unnamed: HashSet<String>, now: Instant) -> Vec<String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|path, _| unnamed.contains(path));
        for path in unnamed {
            seen.entry(path).or_insert(now);
        }
        let ripe = seen.iter().filter(|(_, since)| now.saturating_duration_since(**since) >= self.after);
        ripe.map(|(path, _)| path.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_unnamed_goes() {
        let leftovers = Leftovers::after(Duration::from_secs(100));
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let these = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<HashSet<_>>();
        assert!(leftovers.ripe(these(&["a", "b"]), at(0)).is_empty());
        assert!(leftovers.ripe(these(&["a", "b", "c"]), at(99)).is_empty());
        // `b` was named in between, and is not any more.
        assert_eq!(leftovers.ripe(these(&["a", "c"]), at(100)), ["a"]);
        assert_eq!(leftovers.ripe(these(&["a", "b"]), at(150)), ["a"]);
        assert_eq!(leftovers.ripe(these(&["b"]), at(250)), ["b"]);
    }
}
