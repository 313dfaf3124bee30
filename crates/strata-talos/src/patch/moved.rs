//! What used to be in the document with `machine` and `cluster` and has documents of its own from some version on.
//!
//! Talos refuses a configuration that says the same in both places. So a patch in the old style is translated where the
//! configuration has the new document, and refused with the document's name where that cannot be done.

mod special;

use crate::config::MachineConfig;
use crate::document::{Document, DocumentId};
use crate::patch::{PatchError, dotted};
use crate::tree::{Map, Value};

pub(crate) use special::disk_expression;

/// What a translated patch does to the configuration.
pub(super) enum Change {
    Merge(Document),
    Edit(DocumentId, Box<dyn Fn(&mut Map)>),
    /// All documents of a kind.
    Remove(&'static str),
}

/// A field that moved as it was, or nearly so.
struct Move {
    from: &'static str,
    kind: &'static str,
    to: &'static str,
    how: How,
}

enum How {
    Same,
    /// `disabled` became `enabled`.
    Not,
    /// A list of addresses became a list of mappings with an address.
    Addresses,
}

const fn same(from: &'static str, kind: &'static str, to: &'static str) -> Move {
    Move { from, kind, to, how: How::Same }
}

const fn not(from: &'static str, kind: &'static str, to: &'static str) -> Move {
    Move { from, kind, to, how: How::Not }
}

const MOVES: [Move; 62] = [
    same("machine.kubelet.image", "KubeletConfig", "image"),
    same("machine.kubelet.clusterDNS", "KubeletConfig", "clusterDNS"),
    same("machine.kubelet.extraArgs", "KubeletConfig", "extraArgs"),
    same("machine.kubelet.extraConfig", "KubeletConfig", "config"),
    same(
        "machine.kubelet.defaultRuntimeSeccompProfileEnabled",
        "KubeletConfig",
        "defaultRuntimeSeccompProfileEnabled",
    ),
    same("machine.kubelet.registerWithFQDN", "KubeNodeConfig", "registerWithFQDN"),
    same("machine.kubelet.skipNodeRegistration", "KubeNodeConfig", "skipNodeRegistration"),
    same("machine.kubelet.nodeIP", "KubeNodeConfig", "nodeIP"),
    same("machine.nodeLabels", "KubeNodeConfig", "labels"),
    same("machine.nodeAnnotations", "KubeNodeConfig", "annotations"),
    same("machine.nodeTaints", "KubeNodeConfig", "taints"),
    Move {
        from: "machine.network.nameservers",
        kind: "ResolverConfig",
        to: "nameservers",
        how: How::Addresses,
    },
    same("machine.network.searchDomains", "ResolverConfig", "searchDomains.domains"),
    same("machine.network.disableSearchDomain", "ResolverConfig", "searchDomains.disableDefault"),
    same("machine.features.hostDNS", "ResolverConfig", "hostDNS"),
    same("machine.network.kubespan.enabled", "KubeSpanConfig", "enabled"),
    same(
        "machine.network.kubespan.advertiseKubernetesNetworks",
        "KubeSpanConfig",
        "advertiseKubernetesNetworks",
    ),
    same("machine.network.kubespan.allowDownPeerBypass", "KubeSpanConfig", "allowDownPeerBypass"),
    same("machine.network.kubespan.harvestExtraEndpoints", "KubeSpanConfig", "harvestExtraEndpoints"),
    same("machine.network.kubespan.mtu", "KubeSpanConfig", "mtu"),
    same("machine.network.kubespan.filters", "KubeSpanConfig", "filters"),
    same("machine.install.image", "UnattendedInstallConfig", "installer.image"),
    same("machine.install.wipe", "UnattendedInstallConfig", "provisioning.wipe"),
    same("machine.features.kubePrism.port", "KubePrismConfig", "port"),
    not("machine.controlPlane.controllerManager.disabled", "KubeControllerManagerConfig", "enabled"),
    not("machine.controlPlane.scheduler.disabled", "KubeSchedulerConfig", "enabled"),
    same("cluster.clusterName", "KubeClusterConfig", "clusterName"),
    same("cluster.controlPlane.endpoint", "KubeClusterConfig", "endpoint"),
    same("cluster.controlPlane.localAPIServerPort", "KubeAPIServerConfig", "apiPort"),
    same("cluster.id", "DiscoveryIdentityConfig", "clusterID"),
    same("cluster.secret", "DiscoveryIdentityConfig", "clusterSecret"),
    same("cluster.network.dnsDomain", "KubeNetworkConfig", "dnsDomain"),
    same("cluster.network.podSubnets", "KubeNetworkConfig", "podSubnets"),
    same("cluster.network.serviceSubnets", "KubeNetworkConfig", "serviceSubnets"),
    same("cluster.network.cni.flannel.extraArgs", "KubeFlannelCNIConfig", "extraArgs"),
    same(
        "cluster.network.cni.flannel.kubeNetworkPoliciesEnabled",
        "KubeFlannelCNIConfig",
        "kubeNetworkPoliciesEnabled",
    ),
    same("cluster.apiServer.image", "KubeAPIServerConfig", "image"),
    same("cluster.apiServer.extraArgs", "KubeAPIServerConfig", "extraArgs"),
    same("cluster.apiServer.env", "KubeAPIServerConfig", "env"),
    same("cluster.apiServer.certSANs", "KubeAPIServerConfig", "certExtraSANs"),
    same("cluster.apiServer.resources", "KubeAPIServerConfig", "resources"),
    same("cluster.apiServer.auditPolicy", "KubeAuditPolicyConfig", "configuration"),
    same("cluster.controllerManager.image", "KubeControllerManagerConfig", "image"),
    same("cluster.controllerManager.extraArgs", "KubeControllerManagerConfig", "extraArgs"),
    same("cluster.controllerManager.env", "KubeControllerManagerConfig", "env"),
    same("cluster.controllerManager.resources", "KubeControllerManagerConfig", "resources"),
    same("cluster.scheduler.image", "KubeSchedulerConfig", "image"),
    same("cluster.scheduler.extraArgs", "KubeSchedulerConfig", "extraArgs"),
    same("cluster.scheduler.env", "KubeSchedulerConfig", "env"),
    same("cluster.scheduler.resources", "KubeSchedulerConfig", "resources"),
    same("cluster.scheduler.config", "KubeSchedulerConfig", "config"),
    not("cluster.proxy.disabled", "KubeProxyConfig", "enabled"),
    same("cluster.proxy.image", "KubeProxyConfig", "image"),
    same("cluster.proxy.mode", "KubeProxyConfig", "mode"),
    same("cluster.proxy.extraArgs", "KubeProxyConfig", "extraArgs"),
    not("cluster.coreDNS.disabled", "KubeCoreDNSConfig", "enabled"),
    same("cluster.coreDNS.image", "KubeCoreDNSConfig", "image"),
    same("cluster.discovery.registries.service.endpoint", "DiscoveryServiceConfig", "endpoint"),
    same("cluster.ca", "KubeAPIServerCAConfig", ""),
    same("cluster.aggregatorCA", "KubeAggregatorCAConfig", ""),
    same("cluster.serviceAccount", "KubeServiceAccountConfig", ""),
    same("cluster.secretboxEncryptionSecret", "KubeEtcdEncryptionConfig", ""),
];

/// Parts of the old document that Talos refuses beside a document of this kind, as a whole.
const SECTIONS: [(&str, &str); 26] = [
    ("machine.kubelet", "KubeletConfig"),
    ("machine.nodeLabels", "KubeNodeConfig"),
    ("machine.nodeAnnotations", "KubeNodeConfig"),
    ("machine.nodeTaints", "KubeNodeConfig"),
    ("machine.network.hostname", "HostnameConfig"),
    ("machine.features.stableHostname", "HostnameConfig"),
    ("machine.network.nameservers", "ResolverConfig"),
    ("machine.network.searchDomains", "ResolverConfig"),
    ("machine.network.disableSearchDomain", "ResolverConfig"),
    ("machine.features.hostDNS", "ResolverConfig"),
    ("machine.network.kubespan", "KubeSpanConfig"),
    ("machine.install", "UnattendedInstallConfig"),
    ("machine.features.kubePrism", "KubePrismConfig"),
    ("machine.controlPlane.controllerManager", "KubeControllerManagerConfig"),
    ("machine.controlPlane.scheduler", "KubeSchedulerConfig"),
    ("cluster.controlPlane.endpoint", "KubeClusterConfig"),
    ("cluster.controlPlane.localAPIServerPort", "KubeAPIServerConfig"),
    ("cluster.network", "KubeNetworkConfig"),
    ("cluster.apiServer", "KubeAPIServerConfig"),
    ("cluster.controllerManager", "KubeControllerManagerConfig"),
    ("cluster.scheduler", "KubeSchedulerConfig"),
    ("cluster.proxy", "KubeProxyConfig"),
    ("cluster.coreDNS", "KubeCoreDNSConfig"),
    ("cluster.discovery", "DiscoveryServiceConfig"),
    ("cluster.allowSchedulingOnControlPlanes", "KubeNodeConfig"),
    ("cluster.allowSchedulingOnMasters", "KubeNodeConfig"),
];

/// The document of this configuration that has what used to be at a path, if it is not there any more.
pub(super) fn owner(config: &MachineConfig, path: &[String]) -> Option<&'static str> {
    let path = dotted(path);
    let under =
        |prefix: &str| path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
    let moves = MOVES.iter().map(|moved| (moved.from, moved.kind));
    moves.chain(SECTIONS).find(|(from, kind)| under(from) && config.has(kind)).map(|(_, kind)| kind)
}

/// Takes what moved out of a patch of the old document, and says what to do instead.
pub(super) fn translate(config: &MachineConfig, body: &mut Map) -> Result<Vec<Change>, PatchError> {
    let mut translation = Translation { config, body, documents: Vec::new(), changes: Vec::new() };
    special::translate(&mut translation)?;
    for moved in &MOVES {
        translation.field(moved)?;
    }
    for (path, kind) in SECTIONS {
        translation.refuse_rest(path, kind)?;
    }
    Ok(translation.finish())
}

struct Translation<'c, 'b> {
    config: &'c MachineConfig,
    body: &'b mut Map,
    documents: Vec<Document>,
    changes: Vec<Change>,
}

impl Translation<'_, '_> {
    /// Takes a value out of the patch if the configuration has a document of this kind.
    fn take(&mut self, path: &str, kind: &str) -> Option<Value> {
        if !self.config.has(kind) {
            return None;
        }
        let steps: Vec<&str> = path.split('.').collect();
        take(self.body, &steps)
    }

    /// Sets a field in the document that will be merged.
    fn set(&mut self, kind: &'static str, path: &str, value: Value) {
        let document = match self.documents.iter().position(|document| document.kind() == kind) {
            Some(index) => &mut self.documents[index],
            None => {
                self.documents.push(Document::new(kind, Value::Map(Map::new())));
                self.documents.last_mut().expect("it was just pushed")
            }
        };
        let mut map = document.body_mut();
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                map.insert(step.to_owned(), value);
                return;
            }
            let below = map.entry(step.to_owned()).or_insert_with(|| Value::Map(Map::new()));
            map = below.as_map_mut().expect("a part of a document is a mapping");
        }
    }

    fn field(&mut self, moved: &Move) -> Result<(), PatchError> {
        let Some(value) = self.take(moved.from, moved.kind) else { return Ok(()) };
        if moved.to.is_empty() {
            return Err(PatchError::Moved { path: moved.from.to_owned(), kind: moved.kind });
        }
        let value = match (&moved.how, value) {
            (How::Not, Value::Bool(value)) => Value::Bool(!value),
            (How::Addresses, Value::List(items)) => {
                Value::List(items.into_iter().map(|address| Value::map([("address", address)])).collect())
            }
            (_, value) => value,
        };
        self.set(moved.kind, moved.to, value);
        Ok(())
    }

    /// What is left of a part that moved has no place in the new document. An empty part is dropped.
    fn refuse_rest(&mut self, path: &str, kind: &'static str) -> Result<(), PatchError> {
        let mut steps: Vec<String> = path.split('.').map(str::to_owned).collect();
        let Some(mut value) = self.take(path, kind) else { return Ok(()) };
        while let Value::Map(map) = value {
            let Some((key, below)) = map.into_iter().next() else { return Ok(()) };
            steps.push(key);
            value = below;
        }
        Err(PatchError::Moved { path: dotted(&steps), kind })
    }

    fn finish(mut self) -> Vec<Change> {
        let merges = std::mem::take(&mut self.documents).into_iter().map(|document| {
            let document = special::with_identity(self.config, document);
            Change::Merge(document)
        });
        self.changes.into_iter().chain(merges.collect::<Vec<_>>()).collect()
    }
}

/// Removes the value at a path, and every mapping that is empty then, except `machine` and `cluster` themselves.
fn take(map: &mut Map, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return map.shift_remove(*first);
    }
    let below = map.get_mut(*first)?.as_map_mut()?;
    let value = take(below, rest)?;
    if below.is_empty() && !matches!(*first, "machine" | "cluster") {
        map.shift_remove(*first);
    }
    Some(value)
}
