//! What Kubernetes is told of the machines, and who holds the shared address.

use std::net::IpAddr;

use super::config::MachineConfig;
use super::etcd::EtcdCluster;
use super::machine::Machine;
use crate::world::World;
use strata_sim_kubernetes::{KubeNode, KubernetesCluster, ReportedCluster};

/// An API server answers this long after its etcd has a leader, in seconds.
pub const START: f64 = 2.0;
/// A kubelet reports this long after its machine came up, in seconds.
pub const READY: f64 = 3.0;

impl World<'_> {
    /// The API server on this machine answers.
    pub fn api_server_up(&self, key: &str) -> bool {
        let boot = self.talos.machines.get(key).filter(|machine| machine.is_running());
        let since = boot.and_then(|machine| machine.boot.as_ref()).and_then(|boot| boot.etcd_since);
        since.is_some_and(|since| since + self.scaled_ms(START) <= self.now_ms())
            && self.etcd_of(key).is_some_and(|(cluster, member)| {
                !member.learner && self.etcd_up(cluster, member) && self.has_quorum(cluster)
            })
    }

    /// The machine that holds a shared address: the leader of etcd if it wants it, or the first that does.
    pub fn vip_holder(&self, address: &str) -> Option<String> {
        self.talos.etcd.values().find_map(|cluster| {
            if !self.has_quorum(cluster) {
                return None;
            }
            let wants = |key: &str| {
                let config = self.talos.machines.get(key).and_then(Machine::config);
                config.is_some_and(|config| config.vip() == Some(address))
            };
            let mut voters: Vec<_> =
                cluster.voters().filter(|member| self.etcd_up(cluster, member)).collect();
            voters.sort_by_key(|member| (cluster.leader != Some(member.id), member.id));
            voters.iter().find(|member| wants(&member.machine)).map(|member| member.machine.clone())
        })
    }

    /// The identity of the Kubernetes cluster that a machine is a node of, and whether its API answers.
    pub fn kubernetes_of(&self, key: &str) -> Option<(String, bool)> {
        let hostname = self.talos_hostname(key);
        let mut clusters = self.kubernetes_clusters().into_iter();
        let own = clusters.find(|cluster| cluster.nodes.iter().any(|node| node.name == hostname))?;
        Some((own.id, own.api_up))
    }

    /// Every Kubernetes cluster whose control planes are known.
    pub fn kubernetes_clusters(&self) -> Vec<KubernetesCluster> {
        self.talos.etcd.values().filter_map(|cluster| self.kubernetes_cluster(cluster)).collect()
    }

    /// What Kubernetes is told: every cluster, and at which addresses its API answers.
    pub fn told(&self) -> Vec<ReportedCluster> {
        let tell = |facts: KubernetesCluster| {
            let own = facts.nodes.iter().filter(|node| node.api_up).flat_map(|node| &node.addresses);
            let here = |address: &&String| self.api_cluster_at(address).is_some_and(|id| id == facts.id);
            let answers_at = own.chain(&facts.vip).filter(here).cloned().collect();
            ReportedCluster { facts, answers_at }
        };
        self.kubernetes_clusters().into_iter().map(tell).collect()
    }

    /// An API server answers at an address: of a control plane, or the shared one.
    pub fn has_api_server(&self, address: &str) -> bool {
        self.api_cluster_at(address).is_some()
    }

    /// The identity of the cluster whose API answers there.
    fn api_cluster_at(&self, address: &str) -> Option<&str> {
        let (key, _) = self.talos_at(address)?;
        let (cluster, _) = self.etcd_of(key).filter(|_| self.api_server_up(key))?;
        Some(&cluster.id)
    }

    /// The machine's configuration: the one in effect, or the one on its disk.
    fn known_config(&self, key: &str) -> Option<&MachineConfig> {
        let live = self.talos.machines.get(key).and_then(Machine::config);
        live.or_else(|| self.talos_disk(key).and_then(|disk| disk.config.as_ref()))
    }

    fn kubernetes_cluster(&self, cluster: &EtcdCluster) -> Option<KubernetesCluster> {
        // The leader's word counts; after it, that of any member.
        let mut members: Vec<_> = cluster.members.iter().collect();
        members.sort_by_key(|member| (cluster.leader != Some(member.id), member.learner));
        let config = members.iter().find_map(|member| self.known_config(&member.machine))?;
        let authority = config.kubernetes_authority()?;
        let mut nodes: Vec<KubeNode> = self
            .talos
            .machines
            .keys()
            .filter_map(|key| self.kube_node(key, cluster, &authority.certificate))
            .collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let vip = config.vip().filter(|vip| self.vip_holder(vip).is_some()).map(str::to_owned);
        Some(KubernetesCluster {
            id: cluster.id.clone(),
            name: config.cluster_name().to_owned(),
            endpoint: config.endpoint().to_owned(),
            ca_pem: authority.certificate,
            ca_key_pem: authority.key.unwrap_or_default(),
            service_account_pem: config.service_account_key().unwrap_or_default(),
            cert_sans: config.api_server_sans(),
            service_subnets: config.service_subnets(),
            pod_subnets: config.pod_subnets(),
            dns_domain: config.dns_domain(),
            cni: config.cni().to_owned(),
            proxy: config.has_proxy(),
            api_up: nodes.iter().any(|node| node.api_up),
            vip,
            nodes,
        })
    }

    /// The machine as a node of that cluster, if it is one: a member, or a worker whose endpoint leads there.
    fn kube_node(&self, key: &str, cluster: &EtcdCluster, authority: &str) -> Option<KubeNode> {
        let machine = self.talos.machines.get(key)?;
        let config = self.known_config(key)?;
        let belongs = if config.is_control_plane() {
            // Its kubelet goes on through the API servers of the others when etcd has removed its member.
            let data = self.talos_disk(key).and_then(|disk| disk.etcd.as_ref());
            data.is_some_and(|data| data.cluster == cluster.id)
        } else {
            config.cluster_id() == Some(&cluster.talos) && self.serves(config.endpoint(), cluster, authority)
        };
        if !belongs {
            return None;
        }
        let boot = machine.boot.as_ref();
        let image =
            boot.and_then(|b| b.image.as_ref()).or_else(|| self.talos_disk(key).map(|disk| &disk.image));
        let since = boot.and_then(|boot| boot.running_since);
        let ready = machine.is_running()
            && !machine.cut_off
            && since.is_some_and(|since| since + self.scaled_ms(READY) <= self.now_ms());
        let addresses = boot.map_or_else(|| config.addresses(), |boot| boot.addresses());
        Some(KubeNode {
            name: self.known_hostname(key, config),
            addresses: addresses.into_iter().filter(|a| a.parse::<IpAddr>().is_ok()).collect(),
            control_plane: config.is_control_plane(),
            labels: config.node_labels(),
            annotations: config.node_annotations(),
            taints: config.node_taints(),
            kubelet_version: config.kubelet_version().unwrap_or_default(),
            talos_version: image.map(|image| image.version.clone()).unwrap_or_default(),
            api_version: config.api_server_version().filter(|_| config.is_control_plane()),
            api_up: self.api_server_up(key),
            ready,
            boot_id: boot.map(|boot| boot.id.clone()).unwrap_or_default(),
            images: config.component_images(),
        })
    }

    fn known_hostname(&self, key: &str, config: &MachineConfig) -> String {
        config.hostname().map_or_else(|| self.talos_hostname(key), str::to_owned)
    }

    /// The endpoint leads to a member of the cluster, or to nobody in particular: a name, or an address that nobody has.
    fn serves(&self, endpoint: &str, cluster: &EtcdCluster, authority: &str) -> bool {
        let host = endpoint.split("://").nth(1).unwrap_or(endpoint);
        let host = host.split('/').next().unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let trusted = cluster.members.iter().filter_map(|member| self.known_config(&member.machine));
        let trusted =
            trusted.filter_map(MachineConfig::kubernetes_authority).any(|ca| ca.certificate == authority);
        match self.talos_at(host) {
            Some((key, _)) => self.etcd_of(key).is_some_and(|(own, _)| own.id == cluster.id),
            None => trusted,
        }
    }
}
