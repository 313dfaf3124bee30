//! Every provider that there is, for sessions: their kinds, their targets, the keys and nodes of clusters.
//!
//! [`AllProviders`] is what a session asks ([`strata_session::ProviderSet`]). [`Clusters`] works on one cluster of a repository, [`Takeover`]
//! on what OpenTofu built. Whoever adds a provider adds it here, and to nothing below.
//!
//! A target is connected once for a run, whichever stacks are on it. Kinds are registered before anything is read: an address of a kind that
//! nobody registered is refused.
//!
//! ```
//! use std::sync::Arc;
//! use strata_providers::{AllProviders, kinds};
//! use strata_resource::{Address, registered_kinds};
//! use strata_session::ProviderSet;
//!
//! kinds::register();
//! let address: Address = "web/vm/app".parse().unwrap();
//! assert_eq!(address.kind().table().identity, ["vmid"]);
//! assert!(registered_kinds().iter().all(|table| !table.proof.is_empty()), "each kind says what proves that an object is ours");
//! // A session asks for connections by this.
//! let providers: Arc<dyn ProviderSet> = Arc::new(AllProviders::default());
//! # drop(providers);
//! ```

mod accept;
mod adopt;
mod bundle;
mod cluster;
mod complete;
mod guest_acts;
mod hosts;
mod infrastructure;
mod inventory;
pub mod kinds;
mod orphans;
mod placement;
mod role;
mod snapshots;
mod takeover;
mod targets;
mod token_keeper;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use strata_blueprint::placement::Homes;
use strata_blueprint::{Blueprint, cluster_target};
use strata_cluster::{ClusterProvider, GuardedProvider, RemovedCluster};
use strata_engine::Providers;
use strata_proxmox::ProxmoxProvider;
use strata_resource::{Address, ResourceGraph};
use strata_session::{
    Capacity, Connections, DrawnStack, HeldState, Measure, ProviderSet, Purpose, SessionError, Workspace,
};
use strata_source::EffectiveStack;
use strata_source::stack::Layer;
use strata_talos::SecretsBundle;
use strata_truenas::DatasetProvider;

pub use accept::Acceptance;
pub use adopt::{Adopted, FileEdit, LeftOut, Proposal, Proposed, Wish};
pub use cluster::{Clusters, DrawnCluster};
pub use guest_acts::GuestSession;
pub use hosts::{HostSession, HostedByUs};
pub use infrastructure::missing_infrastructure;
pub use inventory::inventory;
pub use orphans::{Look, Orphan, Orphans};
pub use role::required_role;
pub use snapshots::ReadSnapshot;
pub use strata_adopt::{DiffLine, GroupBy, line_diff};
pub use strata_proxmox::{
    Archive, Archives, BackupRequest, GuestOnHost, MaintenanceMark, Movable, Snapshot, Stage, Whose,
};
pub use takeover::{ExpectedObjects, KeptBundle, KeptConfigs, Matched, Takeover};

use cluster::Connecting;

/// Every provider that there is, with what a run has connected and asked for.
#[derive(Default)]
pub struct AllProviders {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Every Proxmox that this run has connected, by target.
    proxmox: BTreeMap<String, Arc<ProxmoxProvider>>,
    /// Every TrueNAS, likewise.
    truenas: BTreeMap<String, Arc<DatasetProvider>>,
    /// The VMIDs that the source asks for in this run, with their targets.
    wanted: BTreeSet<(String, u32)>,
    /// What places are chosen from, by target, with what was chosen in this run.
    datacenters: BTreeMap<String, strata_blueprint::placement::Datacenter>,
}

impl AllProviders {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, target: &str, provider: &Arc<ProxmoxProvider>) {
        self.seen().proxmox.insert(target.to_owned(), Arc::clone(provider));
    }

    fn proxmox(&self) -> BTreeMap<String, Arc<ProxmoxProvider>> {
        self.seen().proxmox.clone()
    }

    fn remember_truenas(&self, target: &str, provider: &Arc<DatasetProvider>) {
        self.seen().truenas.insert(target.to_owned(), Arc::clone(provider));
    }

    fn truenas(&self) -> BTreeMap<String, Arc<DatasetProvider>> {
        self.seen().truenas.clone()
    }

    fn wanted(&self, target: &str) -> BTreeSet<u32> {
        self.seen().wanted.iter().filter(|(on, _)| on == target).map(|(_, vmid)| *vmid).collect()
    }

    fn remember_wanted(&self, graph: &ResourceGraph) {
        let guests = graph.iter().filter(|resource| strata_proxmox::kinds::is_guest(resource.kind()));
        let wanted =
            guests.filter_map(|resource| Some((resource.target.clone(), orphans::vmid(&resource.spec)?)));
        self.seen().wanted.extend(wanted);
    }
}

#[async_trait]
impl ProviderSet for AllProviders {
    fn check(&self, workspace: &Workspace, stacks: &[&EffectiveStack]) -> Result<(), SessionError> {
        targets::check(workspace, stacks)
    }

    async fn connect(&self, workspace: &Workspace, stack: &EffectiveStack, connections: &mut Connections) {
        self.connect_targets(workspace, stack, connections).await;
    }

    async fn keys(
        &self,
        workspace: &Workspace,
        stack: &EffectiveStack,
        purpose: &Purpose,
        state: &mut HeldState,
    ) -> Result<Option<SecretsBundle>, SessionError> {
        match stack.cluster() {
            Some(_) => Clusters::of(workspace).keys(stack, purpose, state).await.map(Some),
            None => Ok(None),
        }
    }

    async fn capacity(&self) -> BTreeMap<String, Capacity> {
        let mut found = BTreeMap::new();
        for provider in self.proxmox().values() {
            let place = provider.endpoint().to_owned();
            if found.contains_key(&place) {
                continue;
            }
            // Half of a sum says nothing.
            let Ok(own) = provider.capacity().await else { return BTreeMap::new() };
            let measure = |total, taken| Measure { total, taken };
            let capacity = Capacity {
                cores: measure(own.cores, own.given_cores),
                memory: measure(own.memory, own.given_memory),
                disk: measure(own.disk, own.used_disk),
            };
            found.insert(place, capacity);
        }
        found
    }

    async fn place(&self, drawn: &Blueprint) -> Result<Homes, SessionError> {
        self.choose_homes(drawn).await
    }

    fn complete(&self, workspace: &Workspace, drawn: &mut Blueprint) {
        complete::complete(workspace, drawn);
    }

    async fn attach(
        &self,
        workspace: &Workspace,
        drawn: DrawnStack<'_>,
        providers: &mut Providers,
    ) -> Result<(), SessionError> {
        let DrawnStack { stack, purpose, graph, cluster, state, key } = drawn;
        let clusters = Clusters::of(workspace);
        if !purpose.destroy {
            clusters.prove_age_key(graph)?;
        }
        if let Some((plan, bundle)) = cluster {
            let target = Clusters::vm_target(graph, state);
            let proxmox = target.as_ref().and_then(|target| self.seen().proxmox.get(target).cloned());
            // Without its keys a cluster is still known by its state.
            let id = bundle::known_cluster(Some(state)).unwrap_or(&bundle.cluster_id).to_owned();
            let key = key.cloned();
            let connecting = Connecting { stack, state, key, purpose, plan, bundle, graph, proxmox };
            let cluster = clusters.cluster(connecting)?;
            providers
                .insert(&cluster_target(&stack.name), Arc::new(ClusterProvider::new(Arc::clone(&cluster))));
            // The guard around the VMs of its nodes.
            if let Some(target) = target
                && let Ok(inner) = providers.get(&target).cloned()
            {
                let guarded = vec![(stack.name.clone(), Arc::clone(&cluster))];
                providers.insert(&target, Arc::new(GuardedProvider::new(inner, guarded)));
            }
            if purpose.destroy {
                clusters.refuse_shared_etcd(stack, &cluster, &id).await?;
            }
        }
        self.remember_wanted(graph);
        Ok(())
    }

    fn attach_removed(&self, stack: &EffectiveStack, providers: &mut Providers) {
        providers.insert(&cluster_target(&stack.name), Arc::new(RemovedCluster::new(&stack.name)));
    }

    fn layer_of(&self, addresses: &[&Address]) -> Layer {
        use strata_blueprint::kinds::{BOOTSTRAP, KUBERNETES, MACHINE};
        let kinds = || addresses.iter().map(|address| address.kind());
        if kinds().any(strata_proxmox::kinds::is_datacenter) {
            return Layer::Hypervisors;
        }
        let of_cluster = |kind| matches!(kind, MACHINE | BOOTSTRAP | KUBERNETES);
        if kinds().any(of_cluster) { Layer::Platforms } else { Layer::Workloads }
    }
}
