//! Counts requests by method and path template, and keeps the order in which the latest arrived.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::Verb;

/// So many requests are kept in their order.
const KEPT: usize = 10_000;

/// How many requests of each kind arrived, and the latest ones.
#[derive(Debug, Default)]
pub struct Requests {
    counts: BTreeMap<(Cow<'static, str>, Verb), u64>,
    latest: VecDeque<String>,
}

impl Requests {
    pub fn add(&mut self, verb: Verb, template: impl Into<Cow<'static, str>>) {
        *self.counts.entry((template.into(), verb)).or_default() += 1;
    }

    /// Keeps a request of the Proxmox API, with its whole path.
    pub fn keep(&mut self, verb: Verb, path: &str) {
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(format!("{} {path}", verb.name()));
    }

    pub fn reset(&mut self) {
        self.counts.clear();
        self.latest.clear();
    }

    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn to_json(&self) -> Value {
        let counts: Vec<Value> = self
            .counts
            .iter()
            .map(|((template, verb), count)| json!({ "method": verb.name(), "path": template, "count": count }))
            .collect();
        json!({ "total": self.total(), "counts": counts, "latest": self.latest })
    }
}
