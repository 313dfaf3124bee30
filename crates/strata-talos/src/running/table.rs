//! The table: every key of `cluster.yaml`, and what a change of it does to a cluster that runs.

use super::settings::{
    ARCHITECTURE, CLUSTER_NAME, CNI, DOMAIN, ENCRYPTION, KEYS, PODS, PROXY, ROLE, SECURE_BOOT, SERVICES,
    Setting,
};

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Impact {
    /// Nothing to what runs: it is for people, or for Strata itself.
    None,
    /// Kubernetes or Proxmox is told; no node is disturbed.
    InPlace,
    /// Part of the machine configuration: taken at once or with a reboot, by its place in it and the version of Talos (`forecast/rules.rs`).
    Configuration,
    /// Part of the VM: in place or with a restart, by the table of VMs (`strata-resource/src/kinds/vm.rs`).
    Machine,
    /// Nodes come or go.
    Membership,
    /// Each node is upgraded to another installer, and reboots.
    Reinstall,
    /// The components of Kubernetes go up one after the other, no node reboots.
    Upgrade,
    /// Refused for a node that runs: only one that is built again can have it.
    Rebuild(&'static Setting),
    /// Refused for a cluster that runs: only another cluster can have it.
    Never(&'static Setting),
}

/// One row: a key, dotted, where `*` stands for any name and `**` for everything below.
#[derive(Debug, Clone, Copy)]
pub struct FieldImpact {
    pub field: &'static str,
    pub impact: Impact,
}

const fn row(field: &'static str, impact: Impact) -> FieldImpact {
    FieldImpact { field, impact }
}

/// Of a pool, of a named pool and of a single node alike.
const SETTINGS_OF_NODES: [(&str, Impact); 23] = [
    ("resources.**", Impact::Machine),
    ("cores", Impact::Machine),
    ("sockets", Impact::Machine),
    ("memory", Impact::Machine),
    ("disk", Impact::Machine),
    ("labels.*", Impact::Configuration),
    ("annotations.*", Impact::Configuration),
    ("taints.*", Impact::Configuration),
    ("pci.**", Impact::Machine),
    ("usb.**", Impact::Machine),
    ("disks.**", Impact::Machine),
    ("patches", Impact::Configuration),
    ("schematic.id", Impact::Reinstall),
    ("schematic.extensions", Impact::Reinstall),
    ("schematic.extraKernelArgs", Impact::Reinstall),
    ("secureBoot", Impact::Rebuild(&SECURE_BOOT)),
    ("encryptDisk", Impact::Rebuild(&ENCRYPTION)),
    ("kernelModules", Impact::Configuration),
    ("installDisk", Impact::Configuration),
    ("mtu", Impact::Machine),
    ("dhcp", Impact::Configuration),
    ("startup.**", Impact::InPlace),
    ("hypervisor", Impact::Machine),
];

/// Where they stand.
const PLACES_OF_NODES: [&str; 4] = [
    "cluster.topology.controlPlane.",
    "cluster.topology.workers.",
    "cluster.topology.pools.",
    "cluster.nodes.*.",
];

/// Everything else.
pub const TABLE: &[FieldImpact] = &[
    row("metadata.**", Impact::None),
    row("cluster.talos.version", Impact::Reinstall),
    row("cluster.talos.schematic.id", Impact::Reinstall),
    row("cluster.talos.schematic.extensions", Impact::Reinstall),
    row("cluster.talos.schematic.extraKernelArgs", Impact::Reinstall),
    row("cluster.talos.factorySchematic", Impact::Reinstall),
    row("cluster.talos.secureBoot", Impact::Rebuild(&SECURE_BOOT)),
    row("cluster.talos.installDisk", Impact::Configuration),
    row("cluster.talos.clusterName", Impact::Never(&CLUSTER_NAME)),
    row("cluster.talos.arch", Impact::Rebuild(&ARCHITECTURE)),
    row("cluster.talos.encryptDisk", Impact::Rebuild(&ENCRYPTION)),
    row("cluster.talos.kernelModules", Impact::Configuration),
    row("cluster.talos.registryMirrors.*", Impact::Configuration),
    row("cluster.talos.secrets", Impact::Never(&KEYS)),
    row("cluster.kubernetes.version", Impact::Upgrade),
    row("cluster.kubernetes.podCidr", Impact::Never(&PODS)),
    row("cluster.kubernetes.serviceCidr", Impact::Never(&SERVICES)),
    row("cluster.kubernetes.dnsDomain", Impact::Never(&DOMAIN)),
    row("cluster.kubernetes.cni", Impact::Never(&CNI)),
    row("cluster.kubernetes.cniManifests", Impact::Never(&CNI)),
    row("cluster.kubernetes.kubeProxy", Impact::Never(&PROXY)),
    row("cluster.kubernetes.scheduleOnControlPlanes", Impact::Configuration),
    row("cluster.etcd.snapshots.**", Impact::None),
    row("cluster.network.cidr", Impact::Configuration),
    row("cluster.network.gateway", Impact::Configuration),
    row("cluster.network.nameservers", Impact::Configuration),
    row("cluster.network.timeServers", Impact::Configuration),
    row("cluster.network.dhcp", Impact::Configuration),
    row("cluster.network.vip", Impact::Configuration),
    row("cluster.network.apiNames", Impact::Configuration),
    row("cluster.network.bridge", Impact::Machine),
    row("cluster.network.vlan", Impact::Machine),
    row("cluster.network.guestVlan", Impact::Configuration),
    row("cluster.network.mtu", Impact::Machine),
    row("cluster.topology.controlPlane.count", Impact::Membership),
    row("cluster.topology.controlPlane.addresses", Impact::Configuration),
    row("cluster.topology.controlPlane.idBase", Impact::Membership),
    row("cluster.topology.controlPlane.hypervisors", Impact::Machine),
    row("cluster.topology.controlPlane.protect", Impact::None),
    row("cluster.topology.workers.count", Impact::Membership),
    row("cluster.topology.workers.addresses", Impact::Configuration),
    row("cluster.topology.workers.idBase", Impact::Membership),
    row("cluster.topology.workers.hypervisors", Impact::Machine),
    row("cluster.topology.workers.protect", Impact::None),
    row("cluster.topology.allowEven", Impact::None),
    row("cluster.topology.pools.name", Impact::Membership),
    row("cluster.topology.pools.count", Impact::Membership),
    row("cluster.topology.pools.addresses", Impact::Configuration),
    row("cluster.topology.pools.idBase", Impact::Membership),
    row("cluster.topology.pools.hypervisors", Impact::Machine),
    row("cluster.topology.pools.protect", Impact::None),
    row("cluster.nodes.*.role", Impact::Rebuild(&ROLE)),
    row("cluster.nodes.*.address", Impact::Configuration),
    row("cluster.nodes.*.mac", Impact::Machine),
    row("cluster.nodes.*.maintenanceFingerprint", Impact::None),
    row("cluster.nodes.*.vmId", Impact::Membership),
    row("cluster.nodes.*.protect", Impact::None),
    row("cluster.patches", Impact::Configuration),
    row("cluster.naming", Impact::Membership),
    row("cluster.timeouts.**", Impact::None),
    row("cluster.endpoint", Impact::Configuration),
    row("proxmox.target", Impact::Membership),
    row("proxmox.endpoint", Impact::None),
    row("proxmox.token", Impact::None),
    row("proxmox.tokenId", Impact::None),
    row("proxmox.insecure", Impact::None),
    row("proxmox.tls.**", Impact::None),
    row("proxmox.node", Impact::Machine),
    row("proxmox.nodes", Impact::Machine),
    row("proxmox.storage.**", Impact::Machine),
    row("proxmox.network.bridge", Impact::Machine),
    row("proxmox.vm.idBase", Impact::Membership),
    row("proxmox.vm.protect", Impact::None),
    row("proxmox.vm.**", Impact::Machine),
    row("storage.truenas.**", Impact::InPlace),
    row("gitops.**", Impact::InPlace),
    row("outputs.*", Impact::None),
];

/// Every row, with those of nodes at each place where these are described.
pub fn rows() -> impl Iterator<Item = (String, Impact)> {
    let of_nodes = PLACES_OF_NODES.iter().flat_map(|place| {
        SETTINGS_OF_NODES.iter().map(move |(field, impact)| (format!("{place}{field}"), *impact))
    });
    TABLE.iter().map(|row| (row.field.to_owned(), row.impact)).chain(of_nodes)
}

/// What a change of a key does, by its dotted path; the row that says most about it wins. Nothing for a key that has no row.
pub fn impact_of(path: &str) -> Option<Impact> {
    for place in PLACES_OF_NODES {
        let Some(rest) = within(path, place) else { continue };
        let own = SETTINGS_OF_NODES.iter().find(|(field, _)| matches(field, rest));
        if let Some((_, impact)) = own {
            return Some(*impact);
        }
    }
    let rows = TABLE.iter().filter(|row| matches(row.field, path));
    rows.max_by_key(|row| row.field.trim_end_matches("**").len()).map(|row| row.impact)
}

/// What is left of a path below a place that ends with a dot.
fn within<'p>(path: &'p str, place: &str) -> Option<&'p str> {
    let mut rest = path;
    for name in place.trim_end_matches('.').split('.') {
        let (first, after) = rest.split_once('.')?;
        if name != "*" && name != first {
            return None;
        }
        rest = after;
    }
    Some(rest)
}

/// Whether a row is about a path.
pub fn matches(field: &str, path: &str) -> bool {
    let mut path = path.split('.');
    for name in field.split('.') {
        match (name, path.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (name, Some(own)) if name == own => {}
            _ => return false,
        }
    }
    path.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_that_says_most_wins() {
        assert_eq!(impact_of("proxmox.vm.protect"), Some(Impact::None));
        assert_eq!(impact_of("proxmox.vm.cpu.type"), Some(Impact::Machine));
        assert_eq!(impact_of("cluster.nodes.cp-1.labels.zone"), Some(Impact::Configuration));
        assert_eq!(impact_of("cluster.topology.pools.encryptDisk"), Some(Impact::Rebuild(&ENCRYPTION)));
        assert_eq!(impact_of("cluster.topology.workers.count"), Some(Impact::Membership));
        assert_eq!(impact_of("cluster.unheard"), None);
    }

    #[test]
    fn every_row_that_refuses_says_why_and_what_to_do() {
        for (_, impact) in rows() {
            if let Impact::Rebuild(setting) | Impact::Never(setting) = impact {
                assert!(!setting.reason.is_empty() && !setting.way.is_empty(), "{setting:?}");
            }
        }
    }
}
