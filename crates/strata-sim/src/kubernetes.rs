//! The simulated Kubernetes API: one for each etcd cluster that Talos machines make, and for those that tests put up.
//!
//! Objects are JSON values. Types are a table of the built-in ones and whatever definitions add. What happens in a cluster by
//! itself is brought up to the present by `World::settle_kubernetes`, as time passes; nothing waits.

mod cluster;
mod control;
mod controllers;
mod defaults;
mod delete;
mod discovery;
mod evict;
mod export;
mod failure;
mod fields;
mod handle;
mod managers;
mod manifests;
mod object;
mod openapi;
mod patch;
mod protobuf;
mod read;
mod request;
mod resource;
mod scale;
mod schema;
mod selector;
mod server;
mod shape;
mod store;
mod table;
mod tls;
mod validate;
mod watch;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gateway;
use crate::shared::Shared;
use crate::talos::clusters::KubernetesCluster;
use crate::world::World;
use cluster::{Cluster, Moment};

pub use control::apply as change;
pub use manifests::{Wanted as WantedManifests, manifests};
pub use object::has_condition;
pub use server::serve;
pub use store::Contents;

/// Every cluster that ever was, by its identity. One that is gone comes back with its objects if its etcd does.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Kubernetes {
    clusters: BTreeMap<String, Cluster>,
    /// What clusters that nobody has heard of yet begin with: their etcd comes from a snapshot of somewhere else.
    #[serde(skip)]
    recovered: BTreeMap<String, Contents>,
}

/// From now on API servers answer, and clusters that tests put up in an earlier run do so again.
pub fn open(shared: &Shared) {
    shared.network.serve_kubernetes(gateway::listener(serve));
    let clusters: Vec<KubernetesCluster> = {
        let world = shared.world();
        world.kubernetes.clusters.values().filter(|c| c.orders.standalone).map(|c| c.facts.clone()).collect()
    };
    for facts in clusters {
        control::listen(shared, &facts);
    }
}

impl Kubernetes {
    /// Changes whenever an object does.
    pub fn mark(&self) -> u64 {
        self.clusters.values().map(|cluster| cluster.store.revision()).sum()
    }

    /// The objects of a type in a cluster, by its plural.
    pub fn list(&self, id: &str, plural: &str) -> Vec<&serde_json::Value> {
        let prefix = resource::of(plural).prefix();
        let cluster = self.clusters.get(id);
        cluster
            .into_iter()
            .flat_map(|cluster| cluster.store.list(&prefix).map(|(_, object)| object))
            .collect()
    }

    /// A node, in whichever cluster it is.
    pub fn node(&self, name: &str) -> Option<&serde_json::Value> {
        let key = resource::of("nodes").key("", name);
        self.clusters.values().find_map(|cluster| cluster.store.get(&key))
    }

    /// A kubelet starts, and registers its node if it is not there.
    pub fn kubelet_restarted(&mut self, node: &str) {
        for cluster in self.clusters.values_mut() {
            if cluster.registered.remove(node).is_some() {
                cluster.settled = None;
            }
        }
    }

    /// Everything that the etcd of a cluster holds.
    pub fn contents(&self, id: &str) -> Contents {
        self.clusters.get(id).map(|cluster| cluster.store.contents()).unwrap_or_default()
    }

    /// An etcd that comes back from a snapshot has the objects of that time. What was made since then is gone.
    pub fn restore(&mut self, id: &str, contents: Contents) {
        match self.clusters.get_mut(id) {
            Some(cluster) => {
                cluster.store.restore(contents);
                cluster.settled = None;
            }
            None => {
                self.recovered.insert(id.to_owned(), contents);
            }
        }
    }
}

impl World {
    fn moment(&self) -> Moment {
        Moment { ms: self.now_ms(), second: self.second, seed: self.seed }
    }

    /// Tells every cluster what its machines say and lets it do what is due. Gives the time of what comes next, in ms since 1970.
    pub fn settle_kubernetes(&mut self) -> Option<i64> {
        let moment = self.moment();
        for facts in self.kubernetes_clusters() {
            match self.kubernetes.clusters.get_mut(&facts.id) {
                Some(cluster) => cluster.facts = facts,
                None => {
                    let recovered = self.kubernetes.recovered.remove(&facts.id);
                    let mut cluster = Cluster::new(facts);
                    if let Some(contents) = recovered {
                        cluster.store.restore(contents);
                    }
                    self.kubernetes.clusters.insert(cluster.facts.id.clone(), cluster);
                }
            }
        }
        let clusters = self.kubernetes.clusters.values_mut();
        clusters.filter_map(|cluster| controllers::settle(cluster, &moment)).min()
    }

    /// The cluster whose API answers at this address.
    fn kubernetes_facts(&self, host: &str) -> Option<KubernetesCluster> {
        let standalone = self.kubernetes.clusters.values().filter(|c| c.orders.standalone).map(|c| &c.facts);
        let mut here = standalone.filter(|facts| {
            let shared = facts.vip.as_deref() == Some(host);
            facts.nodes.iter().any(|node| node.api_up && (shared || node.addresses.iter().any(|a| a == host)))
        });
        here.next().cloned().or_else(|| self.kubernetes_at(host))
    }
}
