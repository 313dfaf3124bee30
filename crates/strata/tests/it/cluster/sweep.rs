//! A sweep over the requests of a cold boot: which of them this process tries, and what went wrong at any.
//!
//! A whole sweep takes long. `STRATA_PART=2/4` tries the second quarter of it, so that several processes can share it, and
//! `STRATA_ONLY=lost:117` one single case again.

use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) struct Sweep {
    only: Option<(String, u64)>,
    part: u64,
    parts: u64,
    seen: u64,
    tried: u64,
    failed: Vec<String>,
}

impl Sweep {
    pub(super) fn new() -> Self {
        let only = std::env::var("STRATA_ONLY").ok().map(|only| {
            let (what, k) = only.split_once(':').expect("STRATA_ONLY is WHAT:NUMBER");
            (what.to_owned(), k.parse().expect("STRATA_ONLY is WHAT:NUMBER"))
        });
        let part = std::env::var("STRATA_PART").unwrap_or_else(|_| "1/1".to_owned());
        let (part, parts) = part.split_once('/').expect("STRATA_PART is I/N");
        let (part, parts): (u64, u64) = (part.parse().unwrap(), parts.parse().unwrap());
        assert!((1..=parts).contains(&part), "STRATA_PART is I/N");
        Self { only, part: part - 1, parts, seen: 0, tried: 0, failed: Vec::new() }
    }

    /// Whether the case is one of ours.
    pub(super) fn has(&mut self, what: &str, k: u64) -> bool {
        self.seen += 1;
        match &self.only {
            Some((only, number)) => only == what && *number == k,
            None => self.seen % self.parts == self.part,
        }
    }

    /// Tries a case. One that fails does not keep the others from being tried.
    pub(super) fn case(&mut self, what: &str, k: u64, run: impl FnOnce() -> bool) -> bool {
        self.tried += 1;
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
            println!("FAILED {what}:{k}");
            self.failed.push(format!("{what}:{k}"));
            true
        })
    }

    #[track_caller]
    pub(super) fn end(self) {
        assert!(self.tried > 0, "nothing was tried");
        assert!(
            self.failed.is_empty(),
            "{} of {} failed: {}",
            self.failed.len(),
            self.tried,
            self.failed.join(" ")
        );
    }
}
