//! One cluster: who it is, where its nodes answer, and the keys that open them.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use jiff::Timestamp;
use strata_engine::{OperationContext, ProviderError};
use strata_kubernetes::{KubeClient, KubeOptions};
use strata_net::{DialMap, TlsTrust};
use strata_resource::Address;
use strata_secret::{DigestKey, Redactor};
use strata_secrets::OsRandom;
use strata_talos::{MachineConfig, SecretsBundle};
use strata_talos_client::{Credentials, SpkiPin, TalosClient, Timeouts};

use crate::connections::Connections;
use crate::error::{internal, talos};
use crate::rollout::Rollout;
use crate::snapshot::SnapshotSink;
use crate::wait::Deadlines;

/// The port of the Talos API.
const TALOS_PORT: u16 = 50000;
const KUBERNETES_PORT: u16 = 6443;
/// The certificate with which the Kubernetes API is asked lives as long as a long apply.
const CLIENT_VALIDITY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A node and where its Talos answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    pub name: String,
    pub address: String,
    pub control_plane: bool,
    /// Its address is given by DHCP, to this card where it is known.
    pub lease: Option<Lease>,
    /// The key that it must show while it waits for a configuration.
    pub pin: Option<SpkiPin>,
}

/// An address that a DHCP server keeps for a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub mac: Option<String>,
}

/// The drive that a node was installed from.
#[async_trait]
pub trait Media: Send + Sync {
    /// Whether there is anything in it.
    async fn is_inserted(&self, node: &str) -> Result<bool, ProviderError>;
    async fn eject(
        &self,
        node: &str,
        before_write: &(dyn Fn() -> Result<(), ProviderError> + Sync),
    ) -> Result<(), ProviderError>;
}

pub struct ClusterOptions {
    /// The stack that it is, for messages.
    pub stack: String,
    /// As Talos and Kubernetes call it.
    pub name: String,
    /// The URL of the Kubernetes API.
    pub endpoint: String,
    pub vip: Option<String>,
    /// The version of Talos that the source asks for.
    pub talos_version: String,
    /// The nodes that the source asks for.
    pub nodes: Vec<NodePlace>,
    /// Nodes that the state knows, by name; those that left the source are still part of the cluster.
    pub known: Vec<NodePlace>,
    /// Nodes that the source protects: nothing of them is wiped.
    pub protected: BTreeSet<String>,
    /// What each node is told.
    pub configs: BTreeMap<String, MachineConfig>,
    pub secrets: SecretsBundle,
    /// The state says that etcd was begun.
    pub bootstrapped: bool,
    /// The names under which the state knows its etcd: the one that the source gives it, and what another name left.
    pub bootstrapped_as: BTreeSet<String>,
    /// The whole cluster is destroyed: its machines go, and nobody has to be asked.
    pub ending: bool,
    /// Somebody else installs the network plug-in.
    pub waits_for_cni: bool,
    pub allow_even: bool,
    /// Another cluster may be begun in the place of one that was lost.
    pub new_cluster: bool,
    /// An etcd snapshot that it begins from, where it was lost.
    pub restoring: Option<std::sync::Arc<strata_secret::SecretBytes>>,
    pub deadlines: Deadlines,
    pub dial: DialMap,
    /// Told of every request to the API of Kubernetes.
    pub trace: Option<std::sync::Arc<dyn strata_net::TraceSink>>,
    /// For jitter between attempts.
    pub random: strata_net::Random,
    pub redactor: Redactor,
    pub digest_key: Option<DigestKey>,
    pub media: Option<Box<dyn Media>>,
    pub snapshots: Option<Box<dyn SnapshotSink>>,
    /// Where a URL is fetched from.
    pub mirror: Box<dyn Fn(&str) -> String + Send + Sync>,
    /// What a server outside of the cluster must show: the image factory, the place of Flux' manifests.
    pub outside_tls: TlsTrust,
    /// The folder that `file:` sources are in.
    pub root: std::path::PathBuf,
}

pub struct Cluster {
    pub(crate) options: ClusterOptions,
    credentials: Credentials,
    kube: KubeClient,
    connections: Connections,
    pub(crate) rollout: Rollout,
}

impl Cluster {
    pub fn new(options: ClusterOptions, now: Timestamp) -> Result<Self, ProviderError> {
        let failed =
            |error: strata_talos::PkiError| internal(format!("the cluster's keys cannot be used: {error}"));
        let credentials = Credentials::issue(&options.secrets, now, &mut OsRandom).map_err(failed)?;
        let kube = kube_client(&options, now)?;
        // Nodes answer where the state knows them until they have moved to where the source wants them.
        let known = options.known.iter().map(|known| (known.name.clone(), known.address.clone()));
        let connections = Connections::to(known);
        let rollout = Rollout::new(has_etcd(&options));
        Ok(Self { options, credentials, kube, connections, rollout })
    }

    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Whether there is an etcd to look after, by the state.
    pub(crate) fn is_bootstrapped(&self) -> bool {
        has_etcd(&self.options)
    }

    /// Whether there is an etcd to look after by now.
    pub(crate) fn is_alive(&self) -> bool {
        self.rollout.etcd_runs()
    }

    pub(crate) fn now_alive(&self) {
        self.rollout.now_runs();
    }

    /// No control plane comes up in this run: it failed with each of them, or does not come to it.
    pub(crate) fn has_no_control_plane(&self, machine: &Address, context: &dyn OperationContext) -> bool {
        let given_up = |node: &NodePlace| context.given_up(&machine.named(&node.name));
        self.control_planes().iter().all(given_up)
    }

    /// The user said that etcd is bootstrapped again where it was lost.
    pub(crate) fn may_begin_again(&self) -> bool {
        self.options.new_cluster || self.options.restoring.is_some()
    }

    pub(crate) fn kube(&self) -> &KubeClient {
        &self.kube
    }

    /// A node's Talos, with our certificate.
    pub(crate) fn talos(&self, address: &str) -> Result<TalosClient, ProviderError> {
        let connect = || {
            let client = TalosClient::connect(&place(address), &self.options.dial, &self.credentials)?;
            Ok(client.with_timeouts(timeouts()).with_redactor(self.options.redactor.clone()))
        };
        self.connections.client(address, connect).map_err(talos)
    }

    /// A node that has no configuration yet.
    pub(crate) fn maintenance(&self, address: &str) -> Result<TalosClient, ProviderError> {
        let pin = self.options.nodes.iter().find(|node| node.address == address).and_then(|node| node.pin);
        let client = TalosClient::maintenance(&place(address), &self.options.dial, pin).map_err(talos)?;
        Ok(client.with_timeouts(timeouts()).with_redactor(self.options.redactor.clone()))
    }

    /// Forgets connections to a node: after a reboot the old one leads nowhere.
    pub(crate) fn hang_up(&self, address: &str) {
        self.connections.hang_up(address);
    }

    /// The control planes that should be there, by the source; or, where it names none, by the state.
    pub(crate) fn control_planes(&self) -> Vec<NodePlace> {
        self.places().into_iter().filter(|node| node.control_plane).collect()
    }

    /// All nodes: those that the source asks for, then those that only the state knows. Each where it answers now.
    pub(crate) fn places(&self) -> Vec<NodePlace> {
        let wanted = &self.options.nodes;
        let left =
            self.options.known.iter().filter(|known| wanted.iter().all(|node| node.name != known.name));
        wanted.iter().chain(left).map(|node| self.now(node)).collect()
    }

    /// The names of all nodes, of the source and of the state.
    pub fn node_names(&self) -> Vec<String> {
        self.places().into_iter().map(|node| node.name).collect()
    }

    /// Every address that the source or the state gives to a node.
    pub fn node_addresses(&self) -> Vec<String> {
        let all = self.options.nodes.iter().chain(&self.options.known);
        all.map(|node| node.address.clone()).collect()
    }

    pub(crate) fn place(&self, name: &str) -> Option<NodePlace> {
        self.places().into_iter().find(|node| node.name == name)
    }

    /// The node where it answers now, if it is not at its address yet.
    pub(crate) fn now(&self, node: &NodePlace) -> NodePlace {
        let address = self.connections.reached_at(&node.name).unwrap_or_else(|| node.address.clone());
        NodePlace { address, ..node.clone() }
    }

    /// A node was seen at an address: from now on it is asked there.
    pub(crate) fn answers_at(&self, name: &str, address: &str) {
        self.connections.reached(name, address);
    }
}

/// Where etcd may be bootstrapped again there is none to look after, until somebody is seen who has it.
fn has_etcd(options: &ClusterOptions) -> bool {
    options.bootstrapped && !options.new_cluster && options.restoring.is_none()
}

fn timeouts() -> Timeouts {
    Timeouts { connect: std::time::Duration::from_secs(5), ..Timeouts::default() }
}

/// `host:port`, with brackets where the host has colons.
fn place(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]:{TALOS_PORT}")
    } else {
        format!("{address}:{TALOS_PORT}")
    }
}

fn kube_client(options: &ClusterOptions, now: Timestamp) -> Result<KubeClient, ProviderError> {
    let failed =
        |error: strata_talos::PkiError| internal(format!("the keys of Kubernetes cannot be used: {error}"));
    let admin = options.secrets.kubernetes_admin(now, CLIENT_VALIDITY, &mut OsRandom).map_err(failed)?;
    let ca = options.secrets.kubernetes.certificate.clone();
    let key = admin.key.clone().into_string().map_err(|_| internal("the key of Kubernetes is no text"))?;
    let mut kube = KubeOptions::new(options.endpoint.clone(), ca, admin.certificate.clone(), key);
    kube.endpoints = endpoints(options);
    kube.dial = options.dial.clone();
    kube.redactor = options.redactor.clone();
    kube.trace = options.trace.clone();
    kube.random = options.random.clone();
    KubeClient::new(kube).map_err(crate::error::kube)
}

/// Until the shared address answers, the API is reached at the control planes, each once: their addresses are in its
/// certificate. One whose address changes answers at the one that it has.
fn endpoints(options: &ClusterOptions) -> Vec<String> {
    let mut endpoints = vec![options.endpoint.clone()];
    for node in options.nodes.iter().chain(&options.known).filter(|node| node.control_plane) {
        let host =
            if node.address.contains(':') { format!("[{}]", node.address) } else { node.address.clone() };
        let endpoint = format!("https://{host}:{KUBERNETES_PORT}");
        if !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    endpoints
}

#[cfg(test)]
mod tests;
