//! The simulated Kubernetes API: one for each etcd cluster that Talos machines make, and for those that tests put up.
//!
//! Objects are JSON values. Types are a table of the built-in ones and whatever definitions add. What happens in a cluster by
//! itself is brought up to the present by [`Kubernetes::advance`], as time passes; nothing waits.
//!
//! # Main types
//! - [`Clusters`]: every API behind its lock, and what it shares with the rest of the simulator.
//! - [`Kubernetes`]: the state, as it is kept across runs.
//! - [`KubernetesCluster`], [`KubeNode`], [`ReportedCluster`]: what machines say of the clusters that they make. This crate asks no machine anything.
//!
//! # Invariants
//! - A request is carried out under the lock, from start to end, without waiting.
//! - A cluster belongs to an etcd cluster: it is there as long as that is, and comes back with it.
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use strata_sim_core::{Pace, Seed, Shared};
//! use strata_sim_kubernetes::{Clusters, Kubernetes};
//!
//! let shared = Arc::new(Shared::new(Seed(1), Pace::INSTANT));
//! let clusters = Clusters::open(&shared, Kubernetes::default());
//! // No machine said anything yet.
//! assert_eq!(clusters.state().export(), json!([]));
//! assert!(clusters.change(&json!({ "cni": true })).is_err());
//! ```

// The modules are private: `pub` in them means "for the rest of this crate".
#![allow(unreachable_pub)]

mod cluster;
mod control;
mod controllers;
mod defaults;
mod delete;
mod discovery;
mod evict;
mod export;
mod facts;
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strata_sim_core::Shared;
use strata_sim_core::network::{Listener, listener};

use cluster::Cluster;

pub use cluster::Moment;
pub use facts::{
    CONTROL_PLANE_PARTS, KubeNode, KubernetesCluster, ReportedCluster, config_version, content_version,
};
pub use manifests::{Wanted as WantedManifests, manifests};
pub use object::has_condition;
pub use store::Contents;

/// Where an API server listens.
pub const PORT: u16 = 6443;

/// Every cluster that ever was, by its identity. One that is gone comes back with its objects if its etcd does.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Kubernetes {
    clusters: BTreeMap<String, Cluster>,
    /// What clusters that nobody has heard of yet begin with: their etcd comes from a snapshot of somewhere else.
    #[serde(skip)]
    recovered: BTreeMap<String, Contents>,
    /// The clusters that machines make at present, and the addresses at which their APIs answer.
    #[serde(skip)]
    told: BTreeMap<String, Vec<String>>,
}

/// The clusters behind their lock, and what they share with the rest of the simulator.
pub struct Clusters {
    shared: Arc<Shared>,
    state: Mutex<Kubernetes>,
}

impl Clusters {
    /// From now on API servers can answer, and those of clusters that tests put up in an earlier run do so again.
    pub fn open(shared: &Arc<Shared>, kept: Kubernetes) -> Arc<Self> {
        let standalone = kept.clusters.values().filter(|cluster| cluster.orders.standalone);
        let again: Vec<KubernetesCluster> = standalone.map(|cluster| cluster.facts.clone()).collect();
        let clusters = Arc::new(Self { shared: Arc::clone(shared), state: Mutex::new(kept) });
        for facts in again {
            control::listen(&clusters, &facts);
        }
        clusters
    }

    /// Every cluster, for as long as the guard lives.
    pub fn state(&self) -> MutexGuard<'_, Kubernetes> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What answers at port 6443 of a control plane whose API server runs, and of the shared address in front of them.
    pub fn listener(self: &Arc<Self>) -> Listener {
        listener(self, server::serve)
    }

    /// Carries out `{"kubernetes": …}` of a change.
    pub fn change(self: &Arc<Self>, change: &Value) -> Result<Value, String> {
        control::apply(self, change)
    }

    fn moment(&self) -> Moment {
        Moment::of(&self.shared)
    }
}

impl Kubernetes {
    /// Changes whenever an object does.
    pub fn mark(&self) -> u64 {
        self.clusters.values().map(|cluster| cluster.store.revision()).sum()
    }

    /// The objects of a type in a cluster, by its plural.
    pub fn list(&self, id: &str, plural: &str) -> Vec<&Value> {
        let prefix = resource::of(plural).prefix();
        let cluster = self.clusters.get(id);
        cluster
            .into_iter()
            .flat_map(|cluster| cluster.store.list(&prefix).map(|(_, object)| object))
            .collect()
    }

    /// A node, in whichever cluster it is.
    pub fn node(&self, name: &str) -> Option<&Value> {
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

    /// What machines say of every cluster that they make. A cluster that is not named has no machines any more.
    pub fn tell(&mut self, told: Vec<ReportedCluster>) {
        self.told.clear();
        for ReportedCluster { facts, answers_at } in told {
            self.told.insert(facts.id.clone(), answers_at);
            match self.clusters.get_mut(&facts.id) {
                Some(cluster) => cluster.facts = facts,
                None => {
                    let recovered = self.recovered.remove(&facts.id);
                    let mut cluster = Cluster::new(facts);
                    if let Some(contents) = recovered {
                        cluster.store.restore(contents);
                    }
                    self.clusters.insert(cluster.facts.id.clone(), cluster);
                }
            }
        }
    }

    /// Lets every cluster do what is due. Gives the time of what comes next, in ms since 1970.
    pub fn advance(&mut self, moment: &Moment) -> Option<i64> {
        self.clusters.values_mut().filter_map(|cluster| controllers::reconcile(cluster, moment)).min()
    }

    /// The cluster whose API answers at this address.
    fn facts_at(&self, host: &str) -> Option<KubernetesCluster> {
        let standalone = self.clusters.values().filter(|c| c.orders.standalone).map(|c| &c.facts);
        let mut here = standalone.filter(|facts| {
            let shared = facts.vip.as_deref() == Some(host);
            facts.nodes.iter().any(|node| node.api_up && (shared || node.addresses.iter().any(|a| a == host)))
        });
        let of_machines = || {
            let (id, _) = self.told.iter().find(|(_, at)| at.iter().any(|address| address == host))?;
            self.clusters.get(id).map(|cluster| &cluster.facts)
        };
        here.next().or_else(of_machines).cloned()
    }
}
