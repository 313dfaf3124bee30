//! The Talos of each node, and what a cluster has once: its etcd and its Kubernetes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use strata_resource::{Address, Kind, Resource, RestartPolicy, Spec, Stage, Value};
use strata_source::cluster::nodes::Machine as Node;
use strata_source::cluster::topology::NodeRole;
use strata_source::cluster::{Cluster, Cni};
use strata_talos::{Contract, MachineConfig, config_spec};

use super::config::{endpoint, installer, kubernetes_version};
use super::{FACTORY, cluster_target, schematic, schematic_id, schematic_of};
use crate::fields::{Fields, list};
use crate::kinds;
use crate::site::Draft;

/// What the provider of a cluster works with, besides the resources.
#[derive(Clone, Default)]
pub struct ClusterPlan {
    /// As Talos and Kubernetes call it.
    pub name: String,
    /// The URL of the Kubernetes API.
    pub endpoint: String,
    /// The address that control planes share.
    pub vip: Option<String>,
    /// Somebody else installs the network plug-in.
    pub waits_for_cni: bool,
    /// An even number of control planes is what the user wants.
    pub allow_even: bool,
    /// Where each node's Talos answers.
    pub nodes: Vec<NodePlan>,
    /// What each node is told, by name. Empty where the cluster's keys are not there.
    pub configs: BTreeMap<String, MachineConfig>,
}

/// One node, as it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Its name in Talos and Kubernetes.
    pub name: String,
    /// Where its Talos answers.
    pub address: String,
    /// It runs etcd and the API servers.
    pub control_plane: bool,
    /// A DHCP server gives it the address.
    pub dhcp: bool,
    /// The hardware address of its card, where it is known.
    pub mac: Option<String>,
    /// The key that it shows in maintenance mode, as the console of the node prints it.
    pub fingerprint: Option<String>,
}

impl fmt::Debug for ClusterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterPlan")
            .field("name", &self.name)
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

impl Draft<'_> {
    /// Everything above the VMs.
    pub(super) fn talos(&mut self, cluster: &Cluster, nodes: &[Node<'_>]) {
        if !self.versions(cluster) {
            return;
        }
        let Some(endpoint) = endpoint(cluster, nodes) else {
            let place = cluster.cluster.places.owner();
            return self.refuse("no-endpoint", "the Kubernetes API of the cluster has no address", place);
        };
        let topology = cluster.cluster.topology.as_ref();
        let kubernetes = cluster.cluster.kubernetes.as_ref();
        let vip = cluster.cluster.network.as_ref().and_then(|network| network.vip.as_ref());
        let mut plan = ClusterPlan {
            name: cluster.cluster_name(self.site.stack).to_owned(),
            endpoint,
            vip: vip.map(|vip| vip.0.to_string()),
            waits_for_cni: kubernetes.is_some_and(|kubernetes| kubernetes.cni == Some(Cni::None)),
            allow_even: topology.is_some_and(|topology| topology.allow_even),
            ..ClusterPlan::default()
        };
        let mut machines = BTreeMap::new();
        for node in nodes {
            let Some(address) = node.address else {
                let message = format!("`{}` has no address: its Talos is reached at one", node.name);
                self.refuse("no-address", message, node.span);
                continue;
            };
            let control_plane = node.role == NodeRole::ControlPlane;
            plan.nodes.push(NodePlan {
                name: node.name.clone(),
                address: address.value.to_string(),
                control_plane,
                dhcp: cluster.asks_dhcp(node),
                mac: self.card(node),
                fingerprint: node.fingerprint.map(|fingerprint| fingerprint.value.clone()),
            });
            let own = self.machine(cluster, nodes, node, &address.value.to_string(), &mut plan);
            machines.insert(own, control_plane);
        }
        self.once(cluster, &machines, &plan);
        self.blueprint.cluster = Some(plan);
    }

    /// Versions that nothing is known about, and such that do not go together, are refused before anything is drawn from them.
    fn versions(&mut self, cluster: &Cluster) -> bool {
        let talos = &cluster.cluster.talos.version;
        let Ok(contract) = talos.parse::<Contract>() else {
            let known: Vec<String> = Contract::ALL.iter().map(ToString::to_string).collect();
            let message = format!("Talos `{talos}` is not supported; supported are {}", known.join(", "));
            self.refuse("talos-version", message, talos.span);
            return false;
        };
        let written = cluster.cluster.kubernetes.as_ref().and_then(|own| own.version.as_ref());
        let Some(kubernetes) = written.filter(|version| !contract.runs_kubernetes(version)) else {
            return true;
        };
        let range = contract.kubernetes_range();
        let message = format!("Talos `{talos}` does not run Kubernetes `{kubernetes}`, but {range}");
        self.refuse("kubernetes-version", message, kubernetes.span);
        false
    }

    /// The hardware address of a node's card: the one of its VM, or the one that is written.
    fn card(&self, node: &Node<'_>) -> Option<String> {
        let vm = self.blueprint.graph.get(&self.address(kinds::VM, &node.name));
        vm.map_or_else(|| node.mac.map(|mac| mac.value.to_string()), |vm| mac_of(&vm.spec))
    }

    fn machine(
        &mut self,
        cluster: &Cluster,
        nodes: &[Node<'_>],
        node: &Node<'_>,
        at: &str,
        plan: &mut ClusterPlan,
    ) -> Address {
        let vm = self.address(kinds::VM, &node.name);
        let on_vm = self.blueprint.graph.get(&vm);
        let mac = self.card(node);
        let is_vm = on_vm.is_some();
        // A machine of metal has no VM that could be protected: it says so itself.
        let own = || node.setting(|settings| settings.protect).unwrap_or(false);
        let protect = on_vm.map_or_else(own, |vm| vm.protect);
        // A machine of metal is installed with the image of its schematic, too.
        let below = if is_vm { Some(vm.clone()) } else { self.schematic(cluster, node) };
        let depends_on: BTreeSet<Address> = below.into_iter().collect();
        let address = self.address(kinds::MACHINE, &node.name);
        let mut spec = Spec::new();
        spec.put("machine", node.name.as_str());
        spec.put("role", if node.role == NodeRole::ControlPlane { "controlplane" } else { "worker" });
        spec.put("address", at);
        spec.put("version", format!("v{}", cluster.cluster.talos.version.trim_start_matches('v')));
        spec.put("cordoned", false);
        spec.put("unregistered", false);
        if node.role == NodeRole::ControlPlane {
            spec.put("left_etcd", false);
            spec.put("stale_etcd_data", false);
        }
        spec.put_some("installer", installer(cluster, node, self.site.mirror));
        let arch = cluster.cluster.talos.arch.map(|arch| arch.to_string());
        spec.put("arch", arch.unwrap_or_else(|| "amd64".to_owned()));
        if is_vm {
            spec.put("vm", Value::Input { address: Box::new(vm), output: "uuid".to_owned() });
            spec.put("media", "ejected");
        }
        if let Some((config, public)) = self.machine_config(cluster, nodes, node, mac) {
            spec.put("config", config_spec(&config, public.shown(), self.site.is_secret));
            spec.put("foreign", list(Vec::<String>::new()));
            plan.configs.insert(node.name.clone(), config);
        }
        self.insert(Resource {
            address: address.clone(),
            target: cluster_target(self.site.stack),
            spec,
            depends_on,
            stage: Stage::Config,
            protect,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: self.origin(node.span),
        });
        address
    }

    /// The etcd and the Kubernetes of the cluster, then what runs on it.
    fn once(&mut self, cluster: &Cluster, machines: &BTreeMap<Address, bool>, plan: &ClusterPlan) {
        let version = &cluster.cluster.talos.version;
        let Ok(contract) = version.parse::<Contract>() else { return };
        let control_planes = machines.iter().filter(|(_, control_plane)| **control_plane);
        let mut spec = Spec::new();
        spec.put("etcd", plan.name.as_str());
        if let Some(secrets) = self.site.cluster_secrets {
            spec.put("id", secrets.cluster_id.as_str());
        }
        let needs = control_planes.map(|(address, _)| address.clone()).collect();
        let bootstrap =
            self.of_cluster(kinds::BOOTSTRAP, &plan.name, Stage::Cluster, spec, needs, version.span);
        let mut spec = Spec::new();
        spec.put("kubernetes", plan.name.as_str());
        spec.put("version", kubernetes_version(cluster, contract));
        let needs = machines.keys().cloned().chain([bootstrap]).collect();
        let kubernetes =
            self.of_cluster(kinds::KUBERNETES, &plan.name, Stage::Cluster, spec, needs, version.span);
        self.gitops(cluster, &kubernetes);
    }

    /// One object inside of the cluster.
    pub(super) fn of_cluster(
        &mut self,
        kind: Kind,
        name: &str,
        stage: Stage,
        spec: Spec,
        depends_on: BTreeSet<Address>,
        span: strata_diagnostics::Span,
    ) -> Address {
        let address = self.address(kind, name);
        self.insert(Resource {
            address: address.clone(),
            target: cluster_target(self.site.stack),
            spec,
            depends_on,
            stage,
            protect: false,
            on_change: RestartPolicy::default(),
            ignore: Vec::new(),
            limits: Vec::new(),
            origin: self.origin(span),
        });
        address
    }

    /// What the image factory must be told before it has an image; nothing where the user names a schematic that it knows.
    pub(super) fn schematic(&mut self, cluster: &Cluster, node: &Node<'_>) -> Option<Address> {
        let written = schematic_of(cluster, node)?;
        let content = schematic::content(written)?;
        let id = schematic_id(cluster, node);
        let name = id.chars().take(12).collect::<String>();
        let mut spec = Spec::new();
        spec.put("schematic", id);
        spec.put("content", content);
        spec.put("factory", (self.site.mirror)(FACTORY));
        let span = cluster.cluster.talos.version.span;
        Some(self.of_cluster(kinds::SCHEMATIC, &name, Stage::Prereqs, spec, BTreeSet::new(), span))
    }

    /// Datasets on a TrueNAS.
    pub(super) fn datasets(&mut self, cluster: &Cluster) {
        let Some(truenas) = cluster.storage.as_ref().and_then(|storage| storage.truenas.as_ref()) else {
            return;
        };
        for dataset in &truenas.datasets {
            let name = &dataset.name;
            let mut spec = Spec::new();
            spec.put("dataset", name.as_str());
            let properties = dataset.properties.iter().map(|(key, value)| (key.as_str(), value));
            spec.put_full("properties", crate::guest::raw(properties));
            let resource = Resource {
                address: self.address(kinds::DATASET, &name.replace('/', "-")),
                target: truenas.target.value.clone(),
                spec,
                depends_on: BTreeSet::new(),
                stage: Stage::Storage,
                protect: false,
                on_change: RestartPolicy::default(),
                ignore: Vec::new(),
                limits: Vec::new(),
                origin: self.origin(name.span),
            };
            self.insert(resource);
        }
    }
}

fn mac_of(vm: &Spec) -> Option<String> {
    let network = vm.get("networks")?.as_map()?.get("net0")?.as_map()?;
    network.get("mac")?.as_text().map(str::to_owned)
}
