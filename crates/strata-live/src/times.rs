//! How long steps took in earlier runs: what a step is expected to take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};

/// What counts of an earlier run, beside what the last one says.
const EARLIER: f64 = 0.6;

/// Seconds by kind and action: `vm create`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times(BTreeMap<String, f64>);

impl Times {
    /// What a file of an earlier run says; nothing of a file that says something else.
    pub fn read(text: &str) -> Self {
        let json: Json = serde_json::from_str(text).unwrap_or_default();
        let seconds = json["seconds"].as_object().into_iter().flatten();
        let sound = |seconds: &f64| seconds.is_finite() && (0.0..1e6).contains(seconds);
        Self(
            seconds
                .filter_map(|(what, seconds)| Some((what.clone(), seconds.as_f64().filter(sound)?)))
                .collect(),
        )
    }

    pub fn write(&self) -> String {
        let seconds: BTreeMap<&String, f64> =
            self.0.iter().map(|(what, seconds)| (what, (seconds * 10.0).round() / 10.0)).collect();
        format!("{:#}\n", json!({"seconds": seconds}))
    }

    pub fn expected(&self, what: &str) -> Option<Duration> {
        self.0.get(what).map(|seconds| Duration::from_secs_f64(*seconds))
    }

    pub(crate) fn learn(&mut self, what: &str, took: Duration) {
        let took = took.as_secs_f64();
        let known = self.0.entry(what.to_owned()).or_insert(took);
        *known = *known * EARLIER + took * (1.0 - EARLIER);
    }
}

/// `42 s`, `3 min 5 s`, `1 h 12 min`.
pub(crate) fn said(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
