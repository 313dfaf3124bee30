//! A host, and all of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use strata_resource::{Address, Layer};

/// What a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostKind {
    /// A virtual machine.
    Vm,
    /// A container.
    Container,
    /// A machine of metal.
    Metal,
}

/// A guest, or a machine of metal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Host {
    /// Its name; of two that have the same one, with their stacks in front. Letters, digits, `.`, `-` and `_` only.
    pub name: String,
    /// What it is.
    pub kind: HostKind,
    /// The address in the state.
    pub resource: Address,
    /// Where it is declared.
    pub stack: String,
    /// That of its stack.
    pub environment: String,
    /// That of its stack.
    pub layer: Layer,
    /// The target that it lives on.
    pub target: String,
    /// The address to reach it at, where one is known.
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Every address that is known, that one first.
    #[schemars(with = "Vec<String>")]
    pub addresses: Vec<IpAddr>,
    /// None for a machine that is no guest.
    pub vmid: Option<i64>,
    /// The hypervisor.
    pub node: Option<String>,
    /// The pool that it is in.
    pub pool: Option<String>,
    /// Each becomes a group.
    pub tags: Vec<String>,
    /// `controlplane` or `worker`, of the nodes of a cluster.
    pub role: Option<String>,
    /// The user that cloud-init makes.
    pub user: Option<String>,
}

impl Host {
    /// The groups that it is in: of which sort, and which of them.
    pub(crate) fn memberships(&self) -> Vec<(&'static str, &str)> {
        let mut found = vec![
            ("environment", self.environment.as_str()),
            ("layer", self.layer.as_str()),
            ("stack", self.stack.as_str()),
        ];
        found.extend(self.pool.iter().map(|pool| ("pool", pool.as_str())));
        found.extend(self.role.iter().map(|role| ("role", role.as_str())));
        found.extend(self.tags.iter().map(|tag| ("tag", tag.as_str())));
        found
    }
}

/// Every host of some stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Inventory {
    /// In the order of their names.
    pub hosts: Vec<Host>,
    /// The names of hosts by group: `stack_web`, `layer_platforms`, `pool_production`, `tag_app`, `environment_test`,
    /// `role_controlplane`.
    pub groups: BTreeMap<String, Vec<String>>,
}

impl Inventory {
    /// By the name that other programs get.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The same with this host alone.
    #[must_use]
    pub fn only(mut self, name: &str) -> Option<Self> {
        self.hosts.retain(|host| host.name == name);
        self.groups.values_mut().for_each(|hosts| hosts.retain(|host| host == name));
        self.groups.retain(|_, hosts| !hosts.is_empty());
        (!self.hosts.is_empty()).then_some(self)
    }
}
