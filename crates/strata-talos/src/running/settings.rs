//! Settings that only a new cluster, or a node that is built again, can have otherwise.

use std::collections::BTreeMap;

use crate::config::MachineConfig;
use crate::document::Document;
use crate::secrets::SecretsBundle;

use crate::tree::Value;

/// Who cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The cluster, from its bootstrap on.
    Cluster,
    /// The node, from its installation on.
    Node,
}

/// A setting that what runs cannot change.
pub struct Setting {
    /// As messages call it.
    pub name: &'static str,
    pub scope: Scope,
    pub reason: &'static str,
    /// What to do instead; `{stack}` and `{node}` stand for names.
    pub way: &'static str,
    /// What a configuration says about it, by volume or part; nothing where it does not say.
    read: fn(&MachineConfig) -> BTreeMap<String, Value>,
    /// Whether one value can follow the other after all.
    follows: fn(Option<&Value>, Option<&Value>) -> bool,
}

const NEW_CLUSTER: &str =
    "put it back; what should have it is a new cluster, in a folder of its own under `clusters/`";
const BY_HAND: &str = "put it back; what should have it is a new cluster, or one that you migrated by hand with `talosctl` before it was written here";
const REBUILD: &str = "put it back; or give it to one node at a time under `nodes:`, `strata talos reset {stack} {node}`, then `strata apply`";
const RECREATE: &str = "put it back; a node that should have it gets another name: `strata apply` builds it, and then removes the old one";

pub(super) static PODS: Setting = Setting {
    name: "the network of pods",
    scope: Scope::Cluster,
    reason: "pods, routes and network policies keep addresses of the old one",
    way: NEW_CLUSTER,
    read: |config| network(config, "podSubnets", || Value::texts(["10.244.0.0/16"])),
    follows: same,
};

pub(super) static SERVICES: Setting = Setting {
    name: "the network of services",
    scope: Scope::Cluster,
    reason: "services, the DNS server and the certificate of the API keep addresses of the old one",
    way: NEW_CLUSTER,
    read: |config| network(config, "serviceSubnets", || Value::texts(["10.96.0.0/12"])),
    follows: same,
};

pub(super) static DOMAIN: Setting = Setting {
    name: "the DNS domain",
    scope: Scope::Cluster,
    reason: "pods look for services under the old one until each of them is made again",
    way: NEW_CLUSTER,
    read: |config| network(config, "dnsDomain", || Value::text("cluster.local")),
    follows: same,
};

pub(super) static CNI: Setting = Setting {
    name: "the network plug-in",
    scope: Scope::Cluster,
    reason: "Talos does not remove the old one, and two of them take the network of pods apart",
    way: BY_HAND,
    read: plug_in,
    follows: same,
};

pub(super) static PROXY: Setting = Setting {
    name: "kube-proxy",
    scope: Scope::Cluster,
    reason: "Talos does not remove it, and services are lost where nothing or two programs write their rules",
    way: BY_HAND,
    read: proxy,
    follows: same,
};

pub(super) static NODE_SHARE: Setting = Setting {
    name: "the share of each node in the network of pods",
    scope: Scope::Cluster,
    reason: "nodes keep the networks that they have, and new ones would overlap with them",
    way: NEW_CLUSTER,
    read: node_share,
    follows: same,
};

pub(super) static KEYS: Setting = Setting {
    name: "the keys of the cluster",
    scope: Scope::Cluster,
    reason: "with others nodes do not know each other, and what is encrypted in etcd cannot be read",
    way: "put back the file that the cluster was made with; `talosctl rotate-ca` changes authorities of a running cluster",
    read: keys,
    follows: same,
};

pub(super) static ENCRYPTION: Setting = Setting {
    name: "disk encryption",
    scope: Scope::Node,
    reason: "the disk stays as it was written, and Talos does not boot from one that is not as its configuration says",
    way: REBUILD,
    read: encryption,
    follows: adds_keys,
};

/// Not in a configuration: the image that the node was installed from says it.
pub static SECURE_BOOT: Setting = Setting {
    name: "Secure Boot",
    scope: Scope::Node,
    reason: "Talos cannot be upgraded from an image without it to one with it, or back: its boot loader and the keys of the firmware stay",
    way: RECREATE,
    read: nothing,
    follows: same,
};

/// Likewise.
pub static ARCHITECTURE: Setting = Setting {
    name: "the processor architecture",
    scope: Scope::Node,
    reason: "a machine has the processor that it was made with",
    way: NEW_CLUSTER,
    read: nothing,
    follows: same,
};

/// Likewise, of its resource.
pub static ROLE: Setting = Setting {
    name: "the role",
    scope: Scope::Node,
    reason: "a node is a control plane or a worker from its installation on",
    way: RECREATE,
    read: nothing,
    follows: same,
};

/// Likewise, of the cluster's.
pub static CLUSTER_NAME: Setting = Setting {
    name: "the name of the cluster",
    scope: Scope::Cluster,
    reason: "its etcd was bootstrapped under the name that it has, and its nodes are called after it",
    way: NEW_CLUSTER,
    read: nothing,
    follows: same,
};

/// Those that a configuration tells of.
pub static SETTINGS: [&Setting; 8] =
    [&PODS, &SERVICES, &DOMAIN, &CNI, &PROXY, &NODE_SHARE, &KEYS, &ENCRYPTION];

impl Setting {
    /// Whether a machine that has the one configuration cannot have the other.
    pub(super) fn breaks(&self, live: &MachineConfig, wanted: &MachineConfig) -> bool {
        let (live, wanted) = ((self.read)(live), (self.read)(wanted));
        let keys = live.keys().chain(wanted.keys());
        keys.into_iter().any(|key| !(self.follows)(live.get(key), wanted.get(key)))
    }

    /// Whether two configurations say the same about it.
    pub fn is_same(&self, one: &MachineConfig, other: &MachineConfig) -> bool {
        (self.read)(one) == (self.read)(other)
    }

    /// What to do instead.
    pub fn way(&self, stack: &str, node: &str) -> String {
        self.way.replace("{stack}", stack).replace("{node}", node)
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn same(live: Option<&Value>, wanted: Option<&Value>) -> bool {
    match (live, wanted) {
        (Some(live), Some(wanted)) => live == wanted,
        // One of the two does not say: a worker's configuration has less in it than a control plane's.
        _ => true,
    }
}

fn nothing(_: &MachineConfig) -> BTreeMap<String, Value> {
    BTreeMap::new()
}

fn one(value: Option<Value>) -> BTreeMap<String, Value> {
    value.map(|value| (String::new(), value)).into_iter().collect()
}

/// A key of the cluster's network, wherever this version has it.
fn network(config: &MachineConfig, key: &str, default: impl FnOnce() -> Value) -> BTreeMap<String, Value> {
    let document = config.document("KubeNetworkConfig").and_then(|document| document.at(&[key]));
    let legacy = || config.v1alpha1()?.at(&["cluster", "network", key]);
    one(Some(document.or_else(legacy).cloned().unwrap_or_else(default)))
}

/// Whether a control plane has Kubernetes in documents of their own.
fn has_documents(config: &MachineConfig) -> bool {
    config.has("KubeNetworkConfig")
}

fn plug_in(config: &MachineConfig) -> BTreeMap<String, Value> {
    if config.is_control_plane() != Some(true) {
        return BTreeMap::new();
    }
    let is_custom = |document: &Document| {
        document.kind() == "KubeExternalManifestConfig"
            && document.name().is_some_and(|name| name.starts_with("custom-cni"))
    };
    let name = match has_documents(config) {
        true if config.has("KubeFlannelCNIConfig") => "flannel",
        true if config.documents().iter().any(is_custom) => "custom",
        true => "none",
        false => {
            let cni =
                config.v1alpha1().and_then(|document| document.at(&["cluster", "network", "cni", "name"]));
            cni.and_then(Value::as_text).filter(|name| !name.is_empty()).unwrap_or("flannel")
        }
    };
    one(Some(Value::text(name)))
}

fn proxy(config: &MachineConfig) -> BTreeMap<String, Value> {
    if config.is_control_plane() != Some(true) {
        return BTreeMap::new();
    }
    let runs = match config.document("KubeProxyConfig") {
        Some(document) => document.at(&["enabled"]).and_then(Value::as_bool).unwrap_or(true),
        None if has_documents(config) => false,
        None => {
            let disabled =
                config.v1alpha1().and_then(|document| document.at(&["cluster", "proxy", "disabled"]));
            !disabled.and_then(Value::as_bool).unwrap_or(false)
        }
    };
    one(Some(Value::Bool(runs)))
}

/// Arguments of the controller manager that say which networks it hands out. Not set is a value, too.
fn node_share(config: &MachineConfig) -> BTreeMap<String, Value> {
    const ARGUMENTS: [&str; 5] = [
        "node-cidr-mask-size",
        "node-cidr-mask-size-ipv4",
        "node-cidr-mask-size-ipv6",
        "cluster-cidr",
        "allocate-node-cidrs",
    ];
    if config.is_control_plane() != Some(true) {
        return BTreeMap::new();
    }
    let document =
        config.document("KubeControllerManagerConfig").and_then(|document| document.at(&["extraArgs"]));
    let legacy = || config.v1alpha1()?.at(&["cluster", "controllerManager", "extraArgs"]);
    let arguments = document.or_else(legacy).and_then(Value::as_map);
    let value = |name: &str| arguments.and_then(|map| map.get(name)).cloned().unwrap_or(Value::Null);
    ARGUMENTS.iter().map(|name| ((*name).to_owned(), value(name))).collect()
}

/// Authorities and encryption keys. Tokens are not among them: new ones only concern who joins.
fn keys(config: &MachineConfig) -> BTreeMap<String, Value> {
    let Ok(bundle) = SecretsBundle::from_config(config) else { return BTreeMap::new() };
    let bytes = |bytes: &[u8]| Value::text(String::from_utf8_lossy(bytes).trim().to_owned());
    let mut found: BTreeMap<String, Value> = BTreeMap::new();
    found.insert("id".to_owned(), Value::text(bundle.cluster_id.as_str()));
    for (name, authority) in bundle.authorities() {
        found.insert(name.to_owned(), bytes(&authority.certificate));
    }
    found.insert("service accounts".to_owned(), bytes(bundle.service_account_key.expose()));
    for (name, secret) in [("secretbox", &bundle.secretbox_secret), ("aescbc", &bundle.aescbc_secret)] {
        found.insert(
            name.to_owned(),
            secret.as_ref().map_or(Value::Null, |secret| Value::text(secret.expose())),
        );
    }
    found
}

/// How each volume is encrypted. The volumes of Talos itself are there in any case; others only where somebody asks for them.
fn encryption(config: &MachineConfig) -> BTreeMap<String, Value> {
    let mut found: BTreeMap<String, Value> =
        ["STATE", "EPHEMERAL"].map(|name| (format!("VolumeConfig/{name}"), Value::Null)).into();
    let legacy = config.v1alpha1().and_then(|document| document.at(&["machine", "systemDiskEncryption"]));
    for (key, name) in [("state", "STATE"), ("ephemeral", "EPHEMERAL")] {
        if let Some(value) = legacy.and_then(|legacy| legacy.at(&[key])) {
            found.insert(format!("VolumeConfig/{name}"), value.clone());
        }
    }
    const VOLUMES: [&str; 4] = ["VolumeConfig", "UserVolumeConfig", "RawVolumeConfig", "SwapVolumeConfig"];
    for document in config.documents().iter().filter(|document| VOLUMES.contains(&document.kind())) {
        let value = document.at(&["encryption"]).cloned().unwrap_or(Value::Null);
        let name = format!("{}/{}", document.kind(), document.name().unwrap_or_default());
        let entry = found.entry(name).or_insert(Value::Null);
        if value != Value::Null {
            *entry = value;
        }
    }
    found
}

/// Keys can be added to a volume that one of the old ones opens; nothing else about it can change.
fn adds_keys(live: Option<&Value>, wanted: Option<&Value>) -> bool {
    let (Some(live), Some(wanted)) = (live, wanted) else { return true };
    let keys = |value: &Value| -> Vec<Value> {
        let list = value.at(&["keys"]).and_then(Value::as_list).unwrap_or_default();
        list.iter().map(with_slot).collect()
    };
    let provider = |value: &Value| value.at(&["provider"]).and_then(Value::as_text).map(str::to_owned);
    let wanted_keys = keys(wanted);
    is_set(live) == is_set(wanted)
        && provider(live) == provider(wanted)
        && keys(live).iter().all(|key| wanted_keys.contains(key))
}

fn is_set(value: &Value) -> bool {
    value.as_map().is_some_and(|map| !map.is_empty())
}

/// Slot zero is the same as none.
fn with_slot(key: &Value) -> Value {
    let mut key = key.clone();
    if let Value::Map(map) = &mut key {
        let slot = map.shift_remove("slot").and_then(|slot| slot.as_int()).unwrap_or(0);
        map.insert("slot".to_owned(), Value::Int(slot));
    }
    key
}
