//! From a topology to concrete machines: names, numbers, addresses, hypervisors.

use std::collections::BTreeMap;
use std::net::IpAddr;

use strata_diagnostics::{Diagnostic, Diagnostics, Span, nearest};
use strata_yaml::{Map, Spanned};

use crate::cluster::topology::{ClusterNode, NodeRole, NodeSettings, Pool, Resources};
use crate::cluster::{Cluster, ClusterVm};
use crate::spread::{Seat, spread};
use crate::value::address::Mac;
use crate::value::size::{DiskSize, MemorySize};

/// How machines are called unless the cluster says otherwise.
pub const NAMING: &str = "{cluster}-{role}-{n}";

/// Workers are numbered this far from the control planes, and each named pool from the one before.
const ID_STEP: u32 = 10;

/// One machine of a cluster.
#[derive(Debug, Clone)]
pub struct Machine<'a> {
    pub name: String,
    pub role: NodeRole,
    /// The named pool it belongs to.
    pub pool: Option<&'a str>,
    /// Counted from 0 within its pool; `None` for a machine of no pool.
    pub index: Option<u32>,
    /// `None` only on bare metal.
    pub vm_id: Option<Spanned<u32>>,
    /// Where it is expected, whoever gives it that address. `None` only where the cluster has no `network`.
    pub address: Option<Spanned<IpAddr>>,
    pub mac: Option<Spanned<Mac>>,
    /// The key that it must show in maintenance mode.
    pub fingerprint: Option<&'a Spanned<String>>,
    pub hypervisor: Option<Spanned<String>>,
    /// The nodes that it may be put on, where the source names a list and none for it alone.
    pub over: &'a [Spanned<String>],
    pub cores: Option<u32>,
    pub sockets: Option<u32>,
    pub memory: Option<MemorySize>,
    pub disk: Option<DiskSize>,
    /// From the machine itself to its pool: the first that says something wins.
    pub settings: Vec<&'a NodeSettings>,
    /// Where it was written: its own entry, or its pool's count.
    pub span: Span,
}

impl<'a> Machine<'a> {
    /// The first that is said, from the machine itself to its pool.
    pub fn setting<T>(&self, get: impl Fn(&'a NodeSettings) -> Option<T>) -> Option<T> {
        self.settings.iter().find_map(|settings| get(settings))
    }

    /// Control planes are kept apart, and so are the workers of each pool.
    pub fn seat(&self) -> Seat<'_> {
        let group = match self.role {
            NodeRole::ControlPlane => "",
            NodeRole::Worker => self.pool.unwrap_or("worker"),
        };
        let written = self.hypervisor.as_ref().filter(|_| self.over.is_empty());
        Seat { group, written, over: self.over }
    }

    /// Labels, annotations or taints: the machine's own over its pool's.
    pub fn merged(&self, get: impl Fn(&'a NodeSettings) -> &'a Map<String>) -> BTreeMap<&'a str, &'a str> {
        let layers = self.settings.iter().rev().map(|settings| get(settings));
        layers.flat_map(|map| map.iter().map(|(key, value)| (key.as_str(), value.as_str()))).collect()
    }
}

/// A kind of machine, before it is counted out.
struct Kind<'a> {
    role: NodeRole,
    /// What stands for `{role}` in the name.
    word: &'a str,
    named: Option<&'a str>,
    pool: &'a Pool,
    id_base: Option<Spanned<u32>>,
}

impl Cluster {
    /// The name that the cluster has inside Talos and Kubernetes.
    pub fn cluster_name<'a>(&'a self, stack: &'a str) -> &'a str {
        self.cluster.talos.cluster_name.as_ref().map_or(stack, |name| name.value.as_str())
    }

    /// Whether a DHCP server gives a machine its address.
    pub fn asks_dhcp(&self, machine: &Machine<'_>) -> bool {
        let all = self.cluster.network.as_ref().is_some_and(|network| network.dhcp);
        machine.setting(|settings| settings.dhcp).unwrap_or(all)
    }

    fn vm(&self) -> Option<&ClusterVm> {
        self.proxmox.as_ref()?.vm.as_ref()
    }

    /// Every machine, control planes first; what cannot be is reported.
    pub fn machines(&self, stack: &str, diagnostics: &mut Diagnostics) -> Vec<Machine<'_>> {
        let mut machines = Vec::new();
        let kinds = self.kinds();
        for kind in &kinds {
            self.check_pool(kind, &kinds, diagnostics);
            machines.extend((0..kind.pool.count).map(|index| self.member(stack, kind, index, &kinds)));
        }
        self.add_loners(&mut machines, diagnostics);
        let seats: Vec<Seat<'_>> = machines.iter().map(Machine::seat).collect();
        let nodes: Vec<Option<Spanned<String>>> =
            spread(&seats, |_| None).into_iter().map(|node| node.cloned()).collect();
        for (machine, node) in machines.iter_mut().zip(nodes) {
            machine.hypervisor = node;
        }
        self.check_majority(&machines, diagnostics);
        for machine in &machines {
            self.check_machine(machine, diagnostics);
        }
        machines
    }

    fn kinds(&self) -> Vec<Kind<'_>> {
        let Some(topology) = &self.cluster.topology else { return Vec::new() };
        let base = self.vm().and_then(|vm| vm.id_base);
        let numbered = |pool: &Pool, steps: u32| {
            pool.id_base.or_else(|| base.map(|base| base.map(|id| id.saturating_add(steps * ID_STEP))))
        };
        let mut kinds = Vec::new();
        if let Some(pool) = &topology.control_plane {
            let id_base = numbered(pool, 0);
            kinds.push(Kind { role: NodeRole::ControlPlane, word: "cp", named: None, pool, id_base });
        }
        if let Some(pool) = &topology.workers {
            let id_base = numbered(pool, 1);
            kinds.push(Kind { role: NodeRole::Worker, word: "worker", named: None, pool, id_base });
        }
        for (place, named) in (2..).zip(&topology.pools) {
            let (word, pool) = (named.name.as_str(), &named.pool);
            let id_base = numbered(pool, place);
            kinds.push(Kind { role: NodeRole::Worker, word, named: Some(word), pool, id_base });
        }
        kinds
    }

    fn member<'a>(&'a self, stack: &str, kind: &Kind<'a>, index: u32, kinds: &[Kind<'a>]) -> Machine<'a> {
        let naming = self.cluster.naming.as_ref().map_or(NAMING, |naming| naming.value.as_str());
        let name = naming
            .replace("{cluster}", self.cluster_name(stack))
            .replace("{role}", kind.word)
            .replace("{n}", &(index + 1).to_string());
        let own = self.cluster.nodes.entry(&name);
        let mut settings: Vec<&NodeSettings> = own.iter().map(|(_, node)| &node.settings).collect();
        settings.push(&kind.pool.settings);
        let address = address_of(kind, index, kinds);
        let vm_id = kind.id_base.map(|base| base.map(|id| id.saturating_add(index)));
        self.resolve(Machine {
            role: kind.role,
            pool: kind.named,
            index: Some(index),
            vm_id: own.and_then(|(_, node)| node.vm_id).or(vm_id),
            address: own.and_then(|(_, node)| node.address).map(|address| address.map(|ip| ip.0)).or(address),
            mac: own.and_then(|(_, node)| node.mac),
            fingerprint: own.and_then(|(_, node)| node.maintenance_fingerprint.as_ref()),
            over: &kind.pool.hypervisors,
            span: own.map_or(kind.pool.places.value("count"), |(key, _)| key.span),
            ..Machine::unresolved(name, settings)
        })
    }

    /// Machines of no pool, and entries that fit no machine.
    fn add_loners<'a>(&'a self, machines: &mut Vec<Machine<'a>>, diagnostics: &mut Diagnostics) {
        let pooled = machines.len();
        for (name, node) in &self.cluster.nodes {
            if let Some(member) = machines[..pooled].iter().find(|machine| machine.name == name.value) {
                if node.role.is_some_and(|role| role != member.role) {
                    let message = format!("`{name}` is a {} of its pool", member.role);
                    let problem =
                        Diagnostic::error("conflicting-keys", message).at(node.places.value("role"));
                    diagnostics.push(problem.hint("remove `role`, or give the machine another name"));
                }
                continue;
            }
            match node.role {
                Some(role) => machines.push(self.loner(name, node, role)),
                None => diagnostics.push(unknown_node(name, &machines[..pooled])),
            }
        }
    }

    fn loner<'a>(&'a self, name: &'a Spanned<String>, node: &'a ClusterNode, role: NodeRole) -> Machine<'a> {
        self.resolve(Machine {
            role,
            vm_id: node.vm_id,
            address: node.address.map(|address| address.map(|ip| ip.0)),
            mac: node.mac,
            fingerprint: node.maintenance_fingerprint.as_ref(),
            span: name.span,
            ..Machine::unresolved(name.value.clone(), vec![&node.settings])
        })
    }

    /// Fills in what the machine and its pool say, and then what the cluster says of all.
    fn resolve<'a>(&'a self, mut machine: Machine<'a>) -> Machine<'a> {
        let hardware = self.vm().map(|vm| &vm.hardware);
        machine.cores = sized(&machine, |s| s.cores, |r| r.cores).or_else(|| hardware?.cores);
        machine.sockets = sized(&machine, |s| s.sockets, |r| r.sockets).or_else(|| hardware?.sockets);
        machine.memory = sized(&machine, |s| s.memory, |r| r.memory).or_else(|| hardware?.memory);
        machine.disk = sized(&machine, |s| s.disk, |r| r.disk).or_else(|| hardware?.disk.as_ref()?.size);
        let proxmox = self.proxmox.as_ref();
        machine.hypervisor = machine.setting(|settings| settings.hypervisor.clone());
        match proxmox {
            _ if machine.hypervisor.is_some() => machine.over = &[],
            Some(proxmox) if machine.over.is_empty() => {
                machine.hypervisor = proxmox.node.clone();
                machine.over = &proxmox.nodes;
            }
            _ => {}
        }
        if proxmox.is_none() {
            machine.vm_id = None;
        }
        machine
    }

    fn check_pool(&self, kind: &Kind<'_>, kinds: &[Kind<'_>], diagnostics: &mut Diagnostics) {
        let Some(addresses) = &kind.pool.addresses else {
            let borrowers = kinds.iter().filter(|kind| kind.named.is_some() && kind.pool.addresses.is_none());
            if self.cluster.network.is_some() && kind.named.is_some() && borrowers.count() > 1 {
                let message = format!("the pool `{}` has no `addresses`", kind.word);
                let problem = Diagnostic::error("missing-key", message).at(kind.pool.places.owner());
                diagnostics
                    .push(problem.hint("only one pool can take addresses from the end of the workers'"));
            }
            return;
        };
        if addresses.len() < u128::from(kind.pool.count) {
            let message =
                format!("{} machines need more than {} addresses", kind.pool.count, addresses.len());
            let problem = Diagnostic::error("too-few-addresses", message).at(addresses.span);
            diagnostics.push(problem.also(kind.pool.places.value("count"), "as many as this"));
        }
    }

    /// An even number of control planes survives no more failures than one less.
    fn check_majority(&self, machines: &[Machine<'_>], diagnostics: &mut Diagnostics) {
        let control_planes: Vec<&Machine<'_>> =
            machines.iter().filter(|machine| machine.role == NodeRole::ControlPlane).collect();
        match control_planes.len() {
            0 if !machines.is_empty() => {
                let problem = Diagnostic::error("no-control-plane", "the cluster has no control plane");
                let place = self
                    .cluster
                    .topology
                    .as_ref()
                    .map_or(self.cluster.places.owner(), |it| it.places.owner());
                diagnostics
                    .push(problem.at(place).hint("give `topology.controlPlane` a `count` of 1, 3 or 5"));
            }
            count if count > 0 && count.is_multiple_of(2) => {
                let message = format!("{count} control planes survive no more failures than {}", count - 1);
                let problem = Diagnostic::warning("even-control-planes", message).at(control_planes[0].span);
                diagnostics.push(problem.hint("a majority is cheapest with an odd number"));
            }
            _ => {}
        }
    }

    fn check_machine(&self, machine: &Machine<'_>, diagnostics: &mut Diagnostics) {
        if self.proxmox.is_some() && machine.vm_id.is_none() {
            let message = format!("`{}` has no VMID", machine.name);
            let hint = "give the cluster an `idBase` under `proxmox.vm`, or the machine a `vmId`";
            diagnostics.push(Diagnostic::error("missing-key", message).at(machine.span).hint(hint));
        }
        if self.cluster.network.is_some() && machine.address.is_none() && !self.exhausted(machine) {
            let message = format!("`{}` has no address", machine.name);
            let hint = "give its pool `addresses`, or the machine an `address`";
            diagnostics.push(Diagnostic::error("missing-key", message).at(machine.span).hint(hint));
        }
    }

    /// The machine's pool has addresses, only too few: that has been reported.
    fn exhausted(&self, machine: &Machine<'_>) -> bool {
        let Some(topology) = &self.cluster.topology else { return false };
        let pool = match (machine.index, machine.pool, machine.role) {
            (None, ..) => None,
            (_, Some(name), _) => {
                topology.pools.iter().find(|pool| pool.name.value == name).map(|pool| &pool.pool)
            }
            (_, None, NodeRole::ControlPlane) => topology.control_plane.as_ref(),
            (_, None, NodeRole::Worker) => topology.workers.as_ref(),
        };
        pool.is_some_and(|pool| pool.addresses.is_some())
    }
}

impl<'a> Machine<'a> {
    fn unresolved(name: String, settings: Vec<&'a NodeSettings>) -> Self {
        let span = settings[0].places.owner();
        Self {
            name,
            role: NodeRole::Worker,
            pool: None,
            index: None,
            vm_id: None,
            address: None,
            mac: None,
            fingerprint: None,
            hypervisor: None,
            over: &[],
            cores: None,
            sockets: None,
            memory: None,
            disk: None,
            settings,
            span,
        }
    }
}

/// A size, flat or under `resources`, from the machine to its pool.
fn sized<T>(
    machine: &Machine<'_>,
    flat: impl Fn(&NodeSettings) -> Option<T>,
    nested: impl Fn(&Resources) -> Option<T>,
) -> Option<T> {
    machine.setting(|settings| flat(settings).or_else(|| nested(settings.resources.as_ref()?)))
}

/// From the pool's own addresses; a named pool without any takes the last of the workers'.
fn address_of(kind: &Kind<'_>, index: u32, kinds: &[Kind<'_>]) -> Option<Spanned<IpAddr>> {
    if let Some(addresses) = &kind.pool.addresses {
        return addresses.nth(index.into()).map(|address| Spanned::new(address, addresses.span));
    }
    kind.named?;
    let workers = kinds.iter().find(|kind| kind.role == NodeRole::Worker && kind.named.is_none())?;
    let addresses = workers.pool.addresses.as_ref()?;
    addresses.nth_back(index.into()).map(|address| Spanned::new(address, addresses.span))
}

fn unknown_node(name: &Spanned<String>, machines: &[Machine<'_>]) -> Diagnostic {
    let names: Vec<&str> = machines.iter().map(|machine| machine.name.as_str()).collect();
    let problem =
        Diagnostic::error("unknown-node", format!("`{name}` is no machine of this cluster")).at(name.span);
    let problem = match names.as_slice() {
        [] => problem,
        names if names.len() <= 12 => problem.note(format!("its machines are {}", names.join(", "))),
        names => problem.note(format!("its machines are {} to {}", names[0], names[names.len() - 1])),
    };
    match nearest(name, names.iter().copied()) {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem.hint("a machine of no pool has a `role`"),
    }
}
