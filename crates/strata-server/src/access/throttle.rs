//! Slows down whoever guesses passwords.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(60);
/// Failures within the window from one address with one name, and from one address in all.
const FOR_NAME: u32 = 10;
const FOR_ADDRESS: u32 = 100;
/// Beyond this many the oldest are forgotten.
const MAX_TRACKED: usize = 10_000;

#[derive(Default)]
pub(super) struct Throttle(Mutex<HashMap<(IpAddr, Option<String>), Failures>>);

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    since: Duration,
}

impl Throttle {
    /// How long to wait before the next try.
    pub(super) fn wait(&self, from: IpAddr, name: &str, now: Duration) -> Option<Duration> {
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = |key: &(IpAddr, Option<String>), limit| {
            let found = failures.get(key)?;
            let passed = now.saturating_sub(found.since);
            (found.count >= limit && passed < WINDOW).then(|| WINDOW - passed)
        };
        left(&(from, Some(name.to_owned())), FOR_NAME).or_else(|| left(&(from, None), FOR_ADDRESS))
    }

    pub(super) fn failed(&self, from: IpAddr, name: &str, now: Duration) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MAX_TRACKED {
            failures.retain(|_, found| now.saturating_sub(found.since) < WINDOW);
        }
        if failures.len() >= MAX_TRACKED {
            failures.clear();
        }
        for key in [(from, Some(name.to_owned())), (from, None)] {
            let found = failures.entry(key).or_insert(Failures { count: 0, since: now });
            if now.saturating_sub(found.since) >= WINDOW {
                *found = Failures { count: 0, since: now };
            }
            found.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_failures_are_enough_for_a_minute() {
        let throttle = Throttle::default();
        let (here, there) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let at = Duration::from_secs;
        for _ in 0..10 {
            assert_eq!(throttle.wait(here, "ci", at(5)), None);
            throttle.failed(here, "ci", at(5));
        }
        assert_eq!(throttle.wait(here, "ci", at(15)), Some(at(50)));
        assert_eq!(throttle.wait(here, "other", at(15)), None);
        assert_eq!(throttle.wait(there, "ci", at(15)), None);
        assert_eq!(throttle.wait(here, "ci", at(65)), None);
        for guess in 0..100 {
            throttle.failed(here, &format!("user-{guess}"), at(70));
        }
        assert!(throttle.wait(here, "somebody", at(71)).is_some(), "many names from one address");
    }
}
