//! Counts requests by method and path template, and keeps the order in which the latest arrived, with what they carried.

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
    /// Those with a body, and its bytes.
    written: VecDeque<(String, String)>,
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

    /// Keeps the body of a request as it arrived. Of a file that is uploaded there is none.
    pub fn keep_body(&mut self, verb: Verb, path: &str, body: &[u8]) {
        if self.written.len() == KEPT {
            self.written.pop_front();
        }
        let body = String::from_utf8_lossy(body).into_owned();
        self.written.push_back((format!("{} {path}", verb.name()), body));
    }

    pub fn reset(&mut self) {
        self.counts.clear();
        self.latest.clear();
        self.written.clear();
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
        let written: Vec<Value> =
            self.written.iter().map(|(request, body)| json!({ "request": request, "body": body })).collect();
        json!({ "total": self.total(), "counts": counts, "latest": self.latest, "written": written })
    }
}
