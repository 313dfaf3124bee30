//! A node: its address, size, network interfaces and the few files that the API edits.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::disks::{Disk, Disks};

/// One network interface as its configuration file has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Iface {
    /// `bridge`, `eth`, `bond`, `vlan`, …
    pub kind: String,
    /// Everything else, as text: address, cidr, bridge_ports, autostart, …
    pub props: IndexMap<String, String>,
    /// There is a device of that name.
    pub active: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    pub chain: String,
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// The file that names it.
    pub path: String,
    pub uri: String,
    pub suite: String,
    pub component: String,
    pub enabled: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub ip: String,
    pub cpus: u32,
    pub memory: u64,
    pub disk: u64,
    pub ifaces: IndexMap<String, Iface>,
    /// Interfaces as they will be after the next reload, if that differs.
    pub staged: Option<IndexMap<String, Iface>>,
    /// dns1, dns2, dns3, search.
    pub dns: IndexMap<String, String>,
    pub hosts: String,
    pub timezone: String,
    /// The others of the cluster cannot reach it.
    #[serde(default)]
    pub down: bool,
    /// When it booted, in seconds since 1970; 0 for a day ago.
    #[serde(default)]
    pub booted: i64,
    /// Packages that it could upgrade, and to which version.
    #[serde(default)]
    pub updates: Vec<(String, String)>,
    /// The node's own options: description and so on.
    pub config: IndexMap<String, String>,
    #[serde(default)]
    pub disks: Disks,
    /// A certificate that was uploaded.
    #[serde(default)]
    pub certificate: Option<Certificate>,
    /// The key of a subscription.
    #[serde(default)]
    pub subscription: Option<String>,
    /// Where packages come from.
    #[serde(default)]
    pub repositories: Vec<Repository>,
}

impl Node {
    pub fn new(name: &str, ip: &str) -> Self {
        let gib = 1_u64 << 30;
        Self {
            name: name.to_owned(),
            ip: ip.to_owned(),
            cpus: 16,
            memory: 128 * gib,
            disk: 252 * gib,
            dns: [("search", "example.test"), ("dns1", "192.0.2.53")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            hosts: format!("127.0.0.1 localhost.localdomain localhost\n{ip} {name}.example.test {name}\n"),
            timezone: "UTC".to_owned(),
            disks: Disks { all: vec![system_disk(252 * gib)], made: vec![] },
            repositories: repositories(),
            ..Self::default()
        }
    }

    /// Seconds since it booted.
    pub fn uptime(&self, now: i64) -> i64 {
        if self.booted == 0 { 86_400 } else { now - self.booted }
    }

    /// Whether a guest can be plugged into this bridge.
    pub fn has_bridge(&self, name: &str) -> bool {
        self.ifaces.get(name).is_some_and(|iface| iface.kind.ends_with("ridge") || iface.kind == "vnet")
    }
}

/// The disk that the node runs from.
fn system_disk(size: u64) -> Disk {
    Disk { path: "/dev/vda".to_owned(), size, used: Some("mounted".to_owned()), ..Disk::default() }
}

/// What a new installation has.
fn repositories() -> Vec<Repository> {
    let one = |path: &str, uri: &str, suite: &str, component: &str| Repository {
        path: path.to_owned(),
        uri: uri.to_owned(),
        suite: suite.to_owned(),
        component: component.to_owned(),
        enabled: true,
    };
    let debian = "/etc/apt/sources.list.d/debian.sources";
    let enterprise = "/etc/apt/sources.list.d/pve-enterprise.sources";
    vec![
        one(debian, "http://mirror.example/debian/", "trixie", "main"),
        one(debian, "http://mirror.example/debian-security/", "trixie-security", "main"),
        one(enterprise, "https://enterprise.proxmox.com/debian/pve", "trixie", "pve-enterprise"),
    ]
}
