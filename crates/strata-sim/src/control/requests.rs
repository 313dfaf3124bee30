//! Counts requests by method and path template.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::Verb;

#[derive(Debug, Default)]
pub struct Requests {
    counts: BTreeMap<(Cow<'static, str>, Verb), u64>,
}

impl Requests {
    pub fn add(&mut self, verb: Verb, template: impl Into<Cow<'static, str>>) {
        *self.counts.entry((template.into(), verb)).or_default() += 1;
    }

    pub fn reset(&mut self) {
        self.counts.clear();
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
        json!({ "total": self.total(), "counts": counts })
    }
}
