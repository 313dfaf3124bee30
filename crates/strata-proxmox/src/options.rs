//! How to reach a Proxmox cluster, and as whom.

use std::sync::Arc;
use std::time::Duration;

use strata_net::{Clock, DialMap, Random, RetryPolicy, SystemClock, TlsTrust, TraceSink};
use strata_secret::{Redactor, SecretString};

use crate::TokenKeeper;

/// A user and its password, for a ticket.
#[derive(Clone)]
pub struct Login {
    /// `root@pam`
    pub user: String,
    pub password: SecretString,
}

/// Where a Proxmox cluster is, who we are there, and how patient we are.
#[derive(Clone)]
pub struct ProxmoxOptions {
    /// `https://host:8006`
    pub endpoint: String,
    /// `user@realm!name=uuid`
    pub token: Option<SecretString>,
    /// Used where there is no token, and for the keys that only root may set.
    pub login: Option<Login>,
    pub tls: TlsTrust,
    pub dial: DialMap,
    pub connect_timeout: Duration,
    /// For the first connection, which is tried once: what does not answer then is told at once.
    pub first_connect_timeout: Duration,
    pub request_timeout: Duration,
    /// Where the run holds a lease that others may take over: how long a write may take that carries no digest. It arrives within that
    /// time or not at all.
    pub write_timeout: Option<Duration>,
    /// Requests in flight at once.
    pub parallelism: usize,
    pub retry: RetryPolicy,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
    pub trace: Option<Arc<dyn TraceSink>>,
    /// Learns every secret that is sent, and scrubs what the server says.
    pub redactor: Redactor,
    /// Where values of new API tokens are kept.
    pub keeper: Option<Arc<dyn TokenKeeper>>,
}

impl ProxmoxOptions {
    /// Options with the usual patience. `random` is only used for jitter.
    pub fn new(endpoint: impl Into<String>, random: Random) -> Self {
        Self {
            endpoint: endpoint.into(),
            token: None,
            login: None,
            tls: TlsTrust::System,
            dial: DialMap::new(),
            connect_timeout: Duration::from_secs(10),
            first_connect_timeout: Duration::from_secs(3),
            request_timeout: Duration::from_secs(60),
            write_timeout: None,
            parallelism: 12,
            retry: RetryPolicy::default(),
            clock: Arc::new(SystemClock::new()),
            random,
            trace: None,
            redactor: Redactor::new(),
            keeper: None,
        }
    }
}
