//! One cluster's API: its objects, what the machines under it say, and what tests made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use strata_sim_core::Shared;

use super::object::{metadata, timestamp};
use super::resource::{self, Resource};
use super::store::Store;
use crate::facts::KubernetesCluster;

/// What time it is, how long a second takes, and what made-up values derive from.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub ms: i64,
    /// Real seconds that one second of the simulation takes.
    pub second: f64,
    pub seed: u64,
}

impl Moment {
    /// Now.
    pub fn of(shared: &Shared) -> Self {
        let clock = shared.clock();
        Self { ms: clock.now_ms(), second: clock.second, seed: shared.seed.0 }
    }

    pub fn text(&self) -> String {
        timestamp(self.ms)
    }
}

/// What tests ordered.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct TestOrders {
    /// Globs of images that cannot be pulled.
    pub no_images: Vec<String>,
    /// Whether there is a network for pods, whatever runs in the cluster.
    pub cni: Option<bool>,
    /// Globs of URLs of sources, and what goes wrong with them.
    pub bad_sources: BTreeMap<String, String>,
    /// Machines that no Talos side looks after.
    pub standalone: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Cluster {
    pub facts: KubernetesCluster,
    pub store: Store,
    #[serde(default)]
    pub orders: TestOrders,
    /// The boot in which each machine's kubelet registered its node.
    #[serde(default)]
    pub registered: BTreeMap<String, String>,
    /// When what waits happens, in ms since 1970.
    #[serde(skip)]
    pub timers: BTreeMap<String, i64>,
    /// The timers of the last round; those that nobody asks for again are forgotten.
    #[serde(skip)]
    pub older: BTreeMap<String, i64>,
    /// The last revision that the controllers saw, and the facts they saw it with.
    #[serde(skip)]
    pub settled: Option<(u64, KubernetesCluster)>,
}

impl Cluster {
    pub fn new(facts: KubernetesCluster) -> Self {
        Self {
            facts,
            store: Store::default(),
            orders: TestOrders::default(),
            registered: BTreeMap::new(),
            timers: BTreeMap::new(),
            older: BTreeMap::new(),
            settled: None,
        }
    }

    /// The type at a group, version and plural.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Resource> {
        let custom =
            || self.custom().find(|r| r.group == group && r.version == version && r.plural == plural);
        resource::find_builtin(group, version, plural).or_else(custom)
    }

    /// Every type that is served, the built-in ones first.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        resource::builtin().chain(self.custom())
    }

    fn custom(&self) -> impl Iterator<Item = Resource> {
        self.store
            .list("apiextensions.k8s.io/customresourcedefinitions/")
            .flat_map(|(_, definition)| resource::defined_by(definition))
    }

    /// The schema of a custom type.
    pub fn schema(&self, resource: &Resource) -> Option<Value> {
        if !resource.custom {
            return None;
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let definition = self.store.get(&resource::of("customresourcedefinitions").key("", &name))?;
        let versions = super::object::list(definition, "/spec/versions");
        let version = versions.iter().find(|v| v["name"] == resource.version.as_str())?;
        version.pointer("/schema/openAPIV3Schema").cloned()
    }

    /// 32 bytes that belong to these words in this cluster.
    pub fn derive(&self, moment: &Moment, words: &[&str]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(moment.seed.to_be_bytes());
        for word in [self.facts.id.as_str()].iter().chain(words) {
            hash.update((word.len() as u64).to_be_bytes());
            hash.update(word.as_bytes());
        }
        hash.finalize().into()
    }

    /// Letters and digits such as end the names of pods.
    pub fn suffix(&self, moment: &Moment, words: &[&str], length: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let bytes = self.derive(moment, words);
        bytes.iter().take(length).map(|b| char::from(LETTERS[usize::from(*b) % LETTERS.len()])).collect()
    }

    /// Gives a new object what only the server knows.
    pub fn stamp(&mut self, resource: &Resource, key: &str, object: &mut Value, moment: &Moment, dry: bool) {
        let number = if dry { 0 } else { self.store.incarnation(key) };
        let mut bytes = self.derive(moment, &["uid", key, &number.to_string()]);
        bytes[6] = 0x40 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        let hex = hex::encode(&bytes[..16]);
        let uid = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let meta = metadata(object);
        meta.insert("uid".to_owned(), json!(uid));
        meta.insert("creationTimestamp".to_owned(), json!(moment.text()));
        if has_generation(resource) {
            meta.insert("generation".to_owned(), json!(1));
        }
    }

    /// An object of the cluster's own making, if there is none of its name.
    pub fn ensure(&mut self, resource: &Resource, mut object: Value, moment: &Moment) -> bool {
        let key = resource.key(super::object::namespace(&object), super::object::name(&object));
        if self.store.get(&key).is_some() {
            return false;
        }
        if let Value::Object(map) = &mut object {
            map.insert("apiVersion".to_owned(), json!(resource.api_version()));
            map.insert("kind".to_owned(), json!(resource.kind));
        }
        super::defaults::fill(resource, &mut object, moment, self);
        self.stamp(resource, &key, &mut object, moment, false);
        self.store.put(&key, object);
        true
    }

    /// A change by a controller; none if the object stays as it is.
    pub fn change(&mut self, key: &str, change: impl FnOnce(&mut Value)) {
        let Some(old) = self.store.get(key) else { return };
        let mut new = old.clone();
        change(&mut new);
        if new != *old {
            self.store.put(key, new);
        }
    }

    /// True once the time of this event has come: so many seconds after it was first asked for.
    pub fn is_due(&mut self, what: &str, seconds: f64, moment: &Moment) -> bool {
        #[allow(clippy::cast_possible_truncation)]
        let wait = (seconds * moment.second * 1000.0) as i64;
        let set = self.older.get(what).copied().unwrap_or(moment.ms + wait);
        let at = *self.timers.entry(what.to_owned()).or_insert(set);
        at <= moment.ms
    }

    /// The address that a service would get.
    pub fn service_address(&self, moment: &Moment, namespace: &str, name: &str) -> String {
        let subnet = self.facts.service_subnets.first().map_or("10.96.0.0/12", String::as_str);
        let base: Vec<&str> = subnet.split('.').take(2).collect();
        let bytes = self.derive(moment, &["service", namespace, name]);
        match base.as_slice() {
            [a, b] if !subnet.contains(':') => format!("{a}.{b}.{}.{}", bytes[0], bytes[1].max(2)),
            _ => format!("fd00:10:96::{:x}{:02x}", bytes[0].max(1), bytes[1]),
        }
    }
}

/// Types that count changes of what is wanted.
pub fn has_generation(resource: &Resource) -> bool {
    const GROUPS: &[&str] = &[
        "apps",
        "apiextensions.k8s.io",
        "networking.k8s.io",
        "policy",
        "batch",
        "admissionregistration.k8s.io",
    ];
    resource.custom || GROUPS.contains(&resource.group.as_str())
}
