//! How long each kind of step may take.

use std::time::Duration;

use strata_resource::{Spec, Value};

/// A kind of step that takes time. The spec's `timeouts` go before the usual values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Create,
    Clone,
    Start,
    Shutdown,
    Migrate,
    /// Moving or growing a disk.
    Disk,
    Download,
    Delete,
}

impl Patience {
    pub(crate) fn of(self, spec: &Spec) -> Duration {
        let (name, usual) = match self {
            Self::Create => ("create", 1800),
            Self::Clone => ("clone", 1800),
            Self::Start => ("start", 300),
            Self::Shutdown => ("shutdown", 180),
            Self::Migrate => ("migrate", 3600),
            Self::Disk => ("disk", 3600),
            Self::Download => ("download", 3600),
            Self::Delete => ("delete", 600),
        };
        let said =
            spec.get("timeouts").and_then(|timeouts| timeouts.as_map()?.get(name)).and_then(Value::as_int);
        Duration::from_secs(said.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(usual))
    }
}
