//! Counts requests by method and path template, and keeps the order in which the latest arrived, with a digest of what they carried.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Verb;

/// So many requests are kept in their order.
const KEPT: usize = 10_000;

/// How many requests of each kind arrived, and the latest ones.
#[derive(Debug, Default)]
pub struct Requests {
    counts: BTreeMap<(Cow<'static, str>, Verb), u64>,
    latest: VecDeque<String>,
    /// Those with a body, and the SHA-256 of both: a body may hold secrets, and these are looked for in what is kept here.
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

    /// Keeps a digest of a request and its body as they arrived. Of a file that is uploaded there is none.
    pub fn keep_body(&mut self, verb: Verb, path: &str, body: &[u8]) {
        if self.written.len() == KEPT {
            self.written.pop_front();
        }
        let request = format!("{} {path}", verb.name());
        let digest = Sha256::new().chain_update(&request).chain_update("\n").chain_update(body).finalize();
        self.written.push_back((request, hex::encode(digest)));
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
        let written: Vec<Value> = self
            .written
            .iter()
            .map(|(request, digest)| json!({ "request": request, "sha256": digest }))
            .collect();
        json!({ "total": self.total(), "counts": counts, "latest": self.latest, "written": written })
    }
}
