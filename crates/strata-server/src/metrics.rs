//! Numbers for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds in milliseconds.
const BUCKETS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 250, 1000, 5000];

#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), u64>>,
    durations: Mutex<BTreeMap<&'static str, Histogram>>,
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) denied: AtomicU64,
    pub(crate) connections: AtomicU64,
}

#[derive(Default)]
struct Histogram {
    counts: [u64; BUCKETS.len()],
    count: u64,
    micros: u64,
}

impl Metrics {
    pub(crate) fn answered(&self, action: &'static str, status: u16, took: Duration) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner).entry((action, status)).or_default() +=
            1;
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = durations.entry(action).or_default();
        histogram.count += 1;
        histogram.micros += u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BUCKETS.iter().position(|bound| took <= Duration::from_millis(*bound)) {
            histogram.counts[bucket] += 1;
        }
    }

    /// In Prometheus' text format, with further numbers: name, help, value.
    pub(crate) fn render(&self, further: &[(&str, &str, u64)]) -> String {
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(&mut text, "strata_requests_total", "counter", "Requests by action and status.");
        for ((action, status), count) in self.requests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ =
                writeln!(text, "strata_requests_total{{action=\"{action}\",status=\"{status}\"}} {count}");
        }
        head(&mut text, "strata_request_duration_seconds", "histogram", "How long requests took.");
        for (action, histogram) in self.durations.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            histogram.render(&mut text, action);
        }
        let own = [
            ("strata_received_bytes_total", "Bytes of states that came in.", &self.received),
            ("strata_sent_bytes_total", "Bytes of states that went out.", &self.sent),
            ("strata_denied_total", "Requests without a known user.", &self.denied),
            ("strata_connections_total", "Connections.", &self.connections),
        ];
        let own = own.map(|(name, help, value)| (name, help, value.load(Ordering::Relaxed)));
        for (name, help, value) in own.iter().chain(further) {
            head(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

impl Histogram {
    fn render(&self, text: &mut String, action: &str) {
        let name = "strata_request_duration_seconds";
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(self.counts) {
            below += count;
            let seconds = *bound as f64 / 1000.0;
            let _ = writeln!(text, "{name}_bucket{{action=\"{action}\",le=\"{seconds}\"}} {below}");
        }
        let seconds = self.micros as f64 / 1e6;
        let _ = writeln!(text, "{name}_bucket{{action=\"{action}\",le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(text, "{name}_sum{{action=\"{action}\"}} {seconds}");
        let _ = writeln!(text, "{name}_count{{action=\"{action}\"}} {}", self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let metrics = Metrics::default();
        metrics.answered("read", 200, Duration::from_millis(3));
        metrics.answered("read", 200, Duration::from_secs(60));
        metrics.answered("read", 404, Duration::from_micros(10));
        let text = metrics.render(&[("strata_commits_total", "Commits.", 7)]);
        for line in [
            "strata_requests_total{action=\"read\",status=\"200\"} 2",
            "strata_request_duration_seconds_bucket{action=\"read\",le=\"0.001\"} 1",
            "strata_request_duration_seconds_bucket{action=\"read\",le=\"5\"} 2",
            "strata_request_duration_seconds_bucket{action=\"read\",le=\"+Inf\"} 3",
            "strata_commits_total 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }
}
