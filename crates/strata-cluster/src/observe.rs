//! Looking at a cluster: each node once, Kubernetes once, and from that everything that is asked.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};
use strata_engine::{Evidence, Observed, ProviderError, Sighting, Wanted};
use strata_kubernetes::flux::LiveFlux;
use strata_kubernetes::{Object, Selector};
use strata_resource::{Spec, Value};

use crate::cluster::Cluster;
use crate::error::kube;
use crate::etcd::Membership;
use crate::kinds;
use crate::kinds::managed::Asks;
use crate::node::Contact;
use crate::rolling::{CORDONED_BY, REBOOT_DUE};

/// What was seen of Kubernetes.
pub(crate) enum Api {
    /// There is none yet.
    None,
    Unreachable(String),
    Seen,
}

pub(crate) async fn observe_all(
    cluster: &Cluster,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Sighting>, ProviderError> {
    if cluster.options.ending {
        return Ok(wanted.iter().map(as_recorded).collect());
    }
    let asks = |says: fn(Asks) -> bool| {
        wanted.iter().filter_map(|one| kinds::of(one.address.kind())).any(|managed| says(managed.asks()))
    };
    let contacts = contacts(cluster, wanted, asks(|asks| asks.nodes)).await?;
    let etcd = match asks(|asks| asks.etcd) || !cluster.is_bootstrapped() {
        true => cluster.membership().await?,
        false => None,
    };
    let alive = cluster.is_bootstrapped() || etcd.is_some();
    let api = if alive { api(cluster).await? } else { Api::None };
    let left = LeftInKubernetes::seen(cluster, &api, &contacts).await?;
    let flux = match (&api, asks(|asks| asks.flux)) {
        (Api::Seen, true) => cluster.kube().observe_flux().await.map_err(kube)?,
        _ => LiveFlux::default(),
    };
    let look = Look { cluster, contacts, etcd, api, left, flux };
    let mut sightings = Vec::with_capacity(wanted.len());
    for one in wanted {
        let managed = kinds::of(one.address.kind()).ok_or_else(|| kinds::unknown(one.address.kind()))?;
        sightings.push(managed.observe(&look, one).await?);
    }
    Ok(sightings)
}

/// One look at a cluster: each node once, etcd, Kubernetes and Flux once.
pub(crate) struct Look<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) contacts: BTreeMap<String, Contact>,
    pub(crate) etcd: Option<Membership>,
    pub(crate) api: Api,
    pub(crate) left: LeftInKubernetes,
    pub(crate) flux: LiveFlux,
}

impl Look<'_> {
    /// What is to be said of every object in Kubernetes where it cannot be asked.
    pub(crate) fn without_kubernetes(&self) -> Option<Sighting> {
        match &self.api {
            Api::None => Some(Sighting::Absent),
            Api::Unreachable(why) => Some(Sighting::Unreachable(why.clone())),
            Api::Seen => None,
        }
    }
}

pub(crate) fn as_recorded(wanted: &Wanted<'_>) -> Sighting {
    wanted.recorded.map_or(Sighting::Absent, |recorded| ours(recorded.spec.clone()))
}

pub(crate) fn with_facts(spec: Spec, facts: Spec) -> Sighting {
    match ours(spec) {
        Sighting::Ours(observed) => Sighting::Ours(Observed { facts, ..observed }),
        other => other,
    }
}

pub(crate) fn ours(spec: Spec) -> Sighting {
    let digest =
        hex::encode(Sha256::digest(serde_json::Value::from(Value::Map(spec.clone()).stored()).to_string()));
    Sighting::Ours(Observed {
        spec,
        facts: Spec::new(),
        digest,
        pending: Vec::new(),
        running: None,
        evidence: Evidence::default(),
    })
}

/// What is live is compared by its digests: the live values themselves go nowhere.
pub(crate) fn sealed(cluster: &Cluster, wanted: &Wanted<'_>, spec: Spec) -> Sighting {
    let value = match &cluster.options.digest_key {
        Some(key) => Value::Map(spec).sealed(key, wanted.address),
        None => Value::Map(spec),
    };
    match value {
        Value::Map(spec) => ours(spec),
        _ => Sighting::Absent,
    }
}

/// In order: an unreachable address costs a time-out, so it is dialled once.
fn each_once(places: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for place in places {
        if !seen.contains(&place) {
            seen.push(place);
        }
    }
    seen
}

/// Every node that is asked about, at the address where it should be, or else where the state knows it.
async fn contacts(
    cluster: &Cluster,
    wanted: &[Wanted<'_>],
    all: bool,
) -> Result<BTreeMap<String, Contact>, ProviderError> {
    let mut addresses: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in wanted.iter().filter(|one| one.address.kind() == kinds::MACHINE) {
        let of = |spec: &Spec| spec.get("address").and_then(Value::as_text).map(str::to_owned);
        let known = one.recorded.and_then(|recorded| of(&recorded.spec));
        let place = cluster.place(one.address.name()).map(|node| node.address);
        let places = known.into_iter().chain(of(one.spec)).chain(place);
        addresses.insert(one.address.name().to_owned(), each_once(places));
    }
    // Kubernetes and etcd are asked of all nodes, whichever machines are.
    if all {
        for node in cluster.places() {
            let should = cluster.wanted(&node).address;
            addresses.entry(node.name).or_insert_with(|| each_once([node.address, should]));
        }
    }
    let looks = addresses.into_iter().map(|(name, places)| async move {
        let mut seen = Contact::Unreachable(format!("`{name}` has no address"));
        for address in places {
            seen = cluster.contact(&address).await?;
            if let Contact::Running(_) | Contact::Maintenance = seen {
                cluster.answers_at(&name, &address);
            }
            if !matches!(seen, Contact::Unreachable(_)) {
                break;
            }
        }
        Ok::<_, ProviderError>((name, seen))
    });
    futures::future::try_join_all(looks).await.map(|seen| seen.into_iter().collect())
}

async fn api(cluster: &Cluster) -> Result<Api, ProviderError> {
    match cluster.kube().ready().await {
        Ok(()) => Ok(Api::Seen),
        Err(error) if error.is_transient() => Ok(Api::Unreachable(error.to_string())),
        Err(error) => Err(kube(error)),
    }
}

/// What an interrupted run, or somebody else, left in Kubernetes that no node puts right by itself.
#[derive(Default)]
pub(crate) struct LeftInKubernetes {
    /// Nodes that a run of ours cordoned and did not get to uncordon.
    pub(crate) cordoned: BTreeSet<String>,
    /// Nodes that run and are not known to Kubernetes: a kubelet registers when it starts, and never again.
    pub(crate) unregistered: BTreeSet<String>,
}

impl LeftInKubernetes {
    async fn seen(
        cluster: &Cluster,
        api: &Api,
        contacts: &BTreeMap<String, Contact>,
    ) -> Result<Self, ProviderError> {
        if !matches!(api, Api::Seen) {
            return Ok(Self::default());
        }
        let nodes = cluster.kube().list("v1", "Node", &Selector::all()).await.map_err(kube)?;
        // Where somebody else had cordoned it before, only the reboot that we owe it tells.
        let ours =
            |node: &&Object| [CORDONED_BY, REBOOT_DUE].iter().any(|own| node.annotation(own).is_some());
        let cordoned = nodes.iter().filter(ours).map(|node| node.name().to_owned()).collect();
        let known = |name: &str| nodes.iter().any(|node| node.name() == name);
        let runs = contacts.iter().filter(|(_, contact)| matches!(contact, Contact::Running(_)));
        // All at once: each is given the time that it takes to register.
        let looks = runs.filter(|(name, _)| !known(name)).map(|(name, _)| async move {
            Ok::<_, ProviderError>(cluster.stays_unregistered(name).await?.then(|| name.clone()))
        });
        let unregistered = futures::future::try_join_all(looks).await?.into_iter().flatten().collect();
        Ok(Self { cordoned, unregistered })
    }
}
