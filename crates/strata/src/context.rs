//! What a command is given from outside: options, environment, time, randomness.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rand::RngCore;
use strata_engine::Clock;
use strata_state::{LockOwner, ProcessMark};

use crate::cli::Global;
use crate::printer::Printer;

pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) printer: Printer,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Context {
    pub(crate) fn new(global: Global, printer: Printer) -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { global, printer, environment }
    }

    /// Where the command was told to work; the repository is this folder or one above it.
    pub(crate) fn start(&self) -> PathBuf {
        self.global.directory.clone().unwrap_or_else(|| PathBuf::from("."))
    }

    /// What another repository is read from, by a path that starts where the program did, or where `-C` says.
    pub(crate) fn elsewhere(&self, given: &Path) -> PathBuf {
        let here = self.global.started_in.join(given);
        if here.exists() { here } else { crate::secrets::absolute(self, given) }
    }

    pub(crate) fn lock_owner(&self, operation: &str) -> LockOwner {
        let user = ["USER", "LOGNAME"].iter().find_map(|name| self.environment.get(*name)).cloned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        LockOwner {
            id: random_hex(8),
            who: format!("{}@{host}", user.unwrap_or_else(|| "somebody".to_owned())),
            pid: std::process::id(),
            operation: operation.to_owned(),
            since: timestamp(),
            process: ProcessMark::of(std::process::id()),
        }
    }
}

/// Now, in RFC 3339.
pub(crate) fn timestamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    rand::rng().fill_bytes(&mut random);
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second()
    }
}
