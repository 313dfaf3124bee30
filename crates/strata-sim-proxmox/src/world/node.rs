//! A node: its address, size, network interfaces and the few files that the API edits.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

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
    /// The node's own options: description and so on.
    pub config: IndexMap<String, String>,
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
            ..Self::default()
        }
    }

    /// Whether a guest can be plugged into this bridge.
    pub fn has_bridge(&self, name: &str) -> bool {
        self.ifaces.get(name).is_some_and(|iface| iface.kind.ends_with("ridge") || iface.kind == "vnet")
    }
}
