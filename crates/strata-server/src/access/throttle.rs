//! Slows down whoever guesses passwords.
//!
//! A try is counted before the password is looked at, so that a thousand guesses at once are no better than one after the other. Who was
//! right gets the try back; others that came at the same moment wait until it is known.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::proxies::network_of;

const WINDOW: Duration = Duration::from_secs(60);
/// Failures within the window from one address with one name, and from one address in all.
const FOR_NAME: u32 = 10;
const FOR_ADDRESS: u32 = 100;
/// Senders that are told apart; all beyond them are one, with a limit of its own.
const MAX_TRACKED: usize = 10_000;
const FOR_THE_REST: u32 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// A name can be as long as a header: its digest is not.
    Name(IpAddr, [u8; 16]),
    Address(IpAddr),
    Rest,
}

impl Key {
    fn limit(self) -> u32 {
        match self {
            Self::Name(..) => FOR_NAME,
            Self::Address(_) => FOR_ADDRESS,
            Self::Rest => FOR_THE_REST,
        }
    }
}

#[derive(Clone, Copy)]
struct Tries {
    failed: u32,
    /// Being looked at now.
    open: u32,
    since: Duration,
}

#[derive(Default)]
pub(super) struct Throttle {
    tries: Mutex<HashMap<Key, Tries>>,
    /// Something that was open is not any more.
    ended: Notify,
}

/// What becomes of a wish to try.
pub(super) enum Admission<'t> {
    Try(Try<'t>),
    /// As many are being looked at as may fail: ask again after this.
    Full(Notified<'t>),
    /// Too many failed; this long.
    Wait(Duration),
}

impl Throttle {
    pub(super) fn admit(&self, from: IpAddr, name: &str, now: Duration) -> Admission<'_> {
        // Whatever ends after this is heard of.
        let ended = self.ended.notified();
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = keys(&mut tries, from, name, now);
        let mut full = false;
        for key in keys {
            let Some(found) = tries.get_mut(&key) else { continue };
            let passed = now.saturating_sub(found.since);
            if passed >= WINDOW {
                (found.failed, found.since) = (0, now);
            } else if found.failed >= key.limit() {
                return Admission::Wait(WINDOW - passed);
            }
            full |= found.failed + found.open >= key.limit();
        }
        if full {
            return Admission::Full(ended);
        }
        for key in keys {
            tries.entry(key).or_insert(Tries { failed: 0, open: 0, since: now }).open += 1;
        }
        Admission::Try(Try { throttle: self, keys, right: false })
    }
}

/// The two that a try counts for.
fn keys(tries: &mut HashMap<Key, Tries>, from: IpAddr, name: &str, now: Duration) -> [Key; 2] {
    let from = network_of(from);
    let digest = Sha256::digest(name.as_bytes());
    let mut short = [0; 16];
    short.copy_from_slice(&digest[..16]);
    let keys = [Key::Name(from, short), Key::Address(from)];
    if tries.len() >= MAX_TRACKED {
        tries.retain(|_, found| found.open > 0 || now.saturating_sub(found.since) < WINDOW);
    }
    let room = tries.len() < MAX_TRACKED;
    keys.map(|key| if room || tries.contains_key(&key) { key } else { Key::Rest })
}

/// A try under way. It failed unless it is said to have been right: also if the client went away.
pub(super) struct Try<'t> {
    throttle: &'t Throttle,
    keys: [Key; 2],
    right: bool,
}

impl Try<'_> {
    pub(super) fn was_right(mut self) {
        self.right = true;
    }

    pub(super) fn was_not_looked_at(self) {
        self.was_right();
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        let mut tries = self.throttle.tries.lock().unwrap_or_else(PoisonError::into_inner);
        for key in self.keys {
            if let Some(found) = tries.get_mut(&key) {
                found.open = found.open.saturating_sub(1);
                found.failed = found.failed.saturating_add(u32::from(!self.right));
            }
        }
        drop(tries);
        self.throttle.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> IpAddr {
        IpAddr::from([192, 0, 2, 1])
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn fail(throttle: &Throttle, from: IpAddr, name: &str, now: Duration) -> Option<Duration> {
        match throttle.admit(from, name, now) {
            Admission::Try(_) => None,
            Admission::Wait(wait) => Some(wait),
            Admission::Full(_) => panic!("nothing is open"),
        }
    }

    #[test]
    fn ten_failures_are_enough_for_a_minute() {
        let throttle = Throttle::default();
        let there = IpAddr::from([192, 0, 2, 2]);
        for _ in 0..10 {
            assert_eq!(fail(&throttle, here(), "ci", at(5)), None);
        }
        assert_eq!(fail(&throttle, here(), "ci", at(15)), Some(at(50)));
        assert_eq!(fail(&throttle, here(), "other", at(15)), None);
        assert_eq!(fail(&throttle, there, "ci", at(15)), None);
        assert_eq!(fail(&throttle, here(), "ci", at(65)), None);
        for guess in 0..100 {
            fail(&throttle, here(), &format!("user-{guess}"), at(70));
        }
        assert!(fail(&throttle, here(), "somebody", at(71)).is_some(), "many names from one address");
    }

    #[test]
    fn c4_guesses_at_once_count_before_they_are_looked_at() {
        let throttle = Throttle::default();
        let mut open = Vec::new();
        for _ in 0..400 {
            if let Admission::Try(one) = throttle.admit(here(), "ann", at(0)) {
                open.push(one);
            }
        }
        assert_eq!(open.len(), 10);
        // One was right: there is room for one more, and for no more than that.
        open.pop().unwrap().was_right();
        let Admission::Try(one) = throttle.admit(here(), "ann", at(0)) else { panic!("no room") };
        assert!(matches!(throttle.admit(here(), "ann", at(0)), Admission::Full(_)));
        one.was_right();
        drop(open);
        assert!(matches!(throttle.admit(here(), "ann", at(0)), Admission::Try(_)));
        assert!(matches!(throttle.admit(here(), "ann", at(0)), Admission::Wait(_)));
    }

    #[test]
    fn c4_a_network_of_version_6_is_one_sender() {
        let throttle = Throttle::default();
        let host = |last: u16| -> IpAddr { format!("2001:db8::{last:x}").parse().unwrap() };
        for guess in 0..10 {
            assert_eq!(fail(&throttle, host(guess), "ann", at(0)), None);
        }
        assert!(fail(&throttle, host(99), "ann", at(0)).is_some());
        assert_eq!(fail(&throttle, "2001:db8:0:1::1".parse().unwrap(), "ann", at(0)), None);
    }

    #[test]
    fn c4_more_senders_than_are_told_apart_forget_nobody() {
        let throttle = Throttle::default();
        for _ in 0..10 {
            fail(&throttle, here(), "ann", at(0));
        }
        for sender in 0..20_000_u32 {
            fail(&throttle, IpAddr::from(sender.to_be_bytes()), "ann", at(1));
        }
        assert!(fail(&throttle, here(), "ann", at(2)).is_some(), "the first is still known");
        assert!(throttle.tries.lock().unwrap().len() <= MAX_TRACKED + 2);
        assert!(fail(&throttle, IpAddr::from([198, 51, 100, 9]), "ann", at(2)).is_some());
        assert_eq!(fail(&throttle, IpAddr::from([198, 51, 100, 9]), "ann", at(62)), None);
    }
}
