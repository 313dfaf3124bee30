//! A virtual machine or container: its configuration with pending values and snapshots, and its power.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::made_up::sha1_hex;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestKind {
    Qemu,
    Lxc,
}

impl GuestKind {
    /// The folder of its configuration files.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Qemu => "qemu-server",
            Self::Lxc => "lxc",
        }
    }

    /// Its name in ids and paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qemu => "qemu",
            Self::Lxc => "lxc",
        }
    }
}

/// Options that a container gives its runtime as they are: lines `lxc.KEY: VALUE`. Only an editor writes them.
pub const RAW: &str = "lxc";

/// Options by name, as text.
pub type Config = BTreeMap<String, String>;

/// A change that waits for the guest to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pending {
    Set(String),
    Delete { force: bool },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Power {
    pub running: bool,
    pub paused: bool,
    /// Seconds since 1970.
    pub since: i64,
    /// The machine it was started with, as the monitor reports it.
    pub machine: String,
    /// Its process, another one after each start.
    #[serde(default)]
    pub pid: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Guest {
    pub vmid: u32,
    pub node: String,
    pub kind: GuestKind,
    pub config: Config,
    pub pending: BTreeMap<String, Pending>,
    /// Oldest first; each has its own `snaptime`, `parent` and so on among its options.
    pub snapshots: IndexMap<String, Config>,
    pub power: Power,
    /// Who made it, which goes into the values that are made up for it.
    pub creator: String,
    /// Milliseconds since 1970; the statistics of the cluster do not know younger guests.
    pub created: i64,
    /// What was last written to the cloud-init drive.
    pub cloudinit: Config,
    /// How often it was started or reset.
    #[serde(default)]
    pub starts: u64,
}

impl Guest {
    pub fn new(vmid: u32, node: &str, kind: GuestKind, creator: &str, created: i64) -> Self {
        Self {
            vmid,
            node: node.to_owned(),
            kind,
            config: Config::new(),
            pending: BTreeMap::new(),
            snapshots: IndexMap::new(),
            power: Power::default(),
            creator: creator.to_owned(),
            created,
            cloudinit: Config::new(),
            starts: 0,
        }
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.config.get(key).map(String::as_str)
    }

    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some("1")
    }

    pub fn lock(&self) -> Option<&str> {
        self.get("lock")
    }

    /// `VM` or `CT`, as messages name it.
    pub fn word(&self) -> &'static str {
        match self.kind {
            GuestKind::Qemu => "VM",
            GuestKind::Lxc => "CT",
        }
    }

    /// The configuration file. Its SHA-1 is the digest that clients send back.
    pub fn text(&self) -> String {
        let mut out = String::new();
        section(&mut out, &self.config);
        if !self.pending.is_empty() {
            out.push_str("\n[PENDING]\n");
            let deletes: Vec<String> = self
                .pending
                .iter()
                .filter_map(|(key, change)| match change {
                    Pending::Delete { force: true } => Some(format!("!{key}")),
                    Pending::Delete { force: false } => Some(key.clone()),
                    Pending::Set(_) => None,
                })
                .collect();
            if !deletes.is_empty() {
                let _ = writeln!(out, "delete: {}", deletes.join(","));
            }
            for (key, change) in &self.pending {
                if let Pending::Set(value) = change {
                    let _ = writeln!(out, "{key}: {value}");
                }
            }
        }
        for (name, config) in &self.snapshots {
            let _ = write!(out, "\n[{name}]\n");
            section(&mut out, config);
        }
        out
    }

    pub fn digest(&self) -> String {
        sha1_hex(&self.text())
    }
}

fn section(out: &mut String, config: &Config) {
    for line in config.get("description").map_or("", String::as_str).lines() {
        let _ = writeln!(out, "#{line}");
    }
    for (key, value) in config.iter().filter(|(key, _)| !matches!(key.as_str(), "description" | RAW)) {
        let _ = writeln!(out, "{key}: {value}");
    }
    out.push_str(config.get(RAW).map_or("", String::as_str));
}
