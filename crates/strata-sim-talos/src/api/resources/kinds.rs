//! Which kinds of resources there are: where they live, what they are called, and which columns a table of them has.

use super::resource;
use crate::wire::cosi::{Column, DefinitionSpec, Resource};

/// A kind of resources: its type, where it is, how one is called, who may see it, and since which minor it is there.
pub struct Kind {
    pub name: &'static str,
    pub namespace: &'static str,
    display: &'static str,
    aliases: &'static [&'static str],
    columns: &'static [(&'static str, &'static str)],
    pub sensitive: bool,
    pub since: u32,
}

const fn kind(name: &'static str, namespace: &'static str, display: &'static str) -> Kind {
    Kind { name, namespace, display, aliases: &[], columns: &[], sensitive: false, since: 0 }
}

impl Kind {
    const fn columns(self, columns: &'static [(&'static str, &'static str)]) -> Self {
        Self { columns, ..self }
    }

    const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    const fn sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }

    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }
}

pub const MACHINE_CONFIG: &str = "MachineConfigs.config.talos.dev";
pub const MACHINE_TYPE: &str = "MachineTypes.config.talos.dev";
pub const MACHINE_STATUS: &str = "MachineStatuses.runtime.talos.dev";
pub const BOOT_ID: &str = "BootIDs.runtime.talos.dev";
pub const VERSION: &str = "Versions.runtime.talos.dev";
pub const DIAGNOSTIC: &str = "Diagnostics.runtime.talos.dev";
pub const EXTENSION: &str = "ExtensionStatuses.runtime.talos.dev";
pub const PLATFORM: &str = "PlatformMetadatas.talos.dev";
pub const SECURITY: &str = "SecurityStates.talos.dev";
pub const SERVICE: &str = "Services.v1alpha1.talos.dev";
pub const TIME: &str = "TimeStatuses.v1alpha1.talos.dev";
pub const MEMBER: &str = "Members.cluster.talos.dev";
pub const INFO: &str = "Infos.cluster.talos.dev";
pub const IDENTITY: &str = "Identities.cluster.talos.dev";
pub const HOSTNAME: &str = "HostnameStatuses.net.talos.dev";
pub const ADDRESS: &str = "AddressStatuses.net.talos.dev";
pub const NODE_ADDRESS: &str = "NodeAddresses.net.talos.dev";
pub const LINK: &str = "LinkStatuses.net.talos.dev";
pub const ROUTE: &str = "RouteStatuses.net.talos.dev";
pub const RESOLVER: &str = "ResolverStatuses.net.talos.dev";
pub const TIME_SERVER: &str = "TimeServerStatuses.net.talos.dev";
pub const NODENAME: &str = "Nodenames.kubernetes.talos.dev";
pub const NODE_STATUS: &str = "NodeStatuses.kubernetes.talos.dev";
pub const KUBELET_CONFIG: &str = "KubeletConfigs.kubernetes.talos.dev";
pub const KUBELET_SPEC: &str = "KubeletSpecs.kubernetes.talos.dev";
pub const STATIC_POD: &str = "StaticPods.kubernetes.talos.dev";
pub const STATIC_POD_STATUS: &str = "StaticPodStatuses.kubernetes.talos.dev";
pub const API_SERVER: &str = "APIServerConfigs.kubernetes.talos.dev";
pub const CONTROLLER_MANAGER: &str = "ControllerManagerConfigs.kubernetes.talos.dev";
pub const SCHEDULER: &str = "SchedulerConfigs.kubernetes.talos.dev";
pub const MANIFEST: &str = "Manifests.kubernetes.talos.dev";
pub const MANIFESTS_CONFIG: &str = "BootstrapManifestsConfigs.kubernetes.talos.dev";
pub const ETCD_MEMBER: &str = "EtcdMembers.etcd.talos.dev";
pub const DISK: &str = "Disks.block.talos.dev";
pub const SYSTEM_DISK: &str = "SystemDisks.block.talos.dev";
pub const VOLUME: &str = "VolumeStatuses.block.talos.dev";
pub const DISCOVERED: &str = "DiscoveredVolumes.block.talos.dev";
pub const DEFINITION: &str = "ResourceDefinitions.meta.cosi.dev";

const KINDS: &[Kind] = &[
    kind(MACHINE_CONFIG, "config", "MachineConfig").aliases(&["mc"]).sensitive(),
    kind(MACHINE_TYPE, "config", "MachineType").columns(&[("Type", "{@}")]),
    kind(MACHINE_STATUS, "runtime", "MachineStatus")
        .columns(&[("Stage", "{.stage}"), ("Ready", "{.status.ready}")]),
    kind(BOOT_ID, "runtime", "BootID").columns(&[("Boot ID", "{.bootID}")]).since(14),
    kind(VERSION, "runtime", "Version").columns(&[("Name", "{.name}"), ("Version", "{.version}")]),
    kind(DIAGNOSTIC, "runtime", "Diagnostic").columns(&[("Message", "{.message}")]),
    kind(EXTENSION, "runtime", "ExtensionStatus")
        .aliases(&["extensions"])
        .columns(&[("Name", "{.metadata.name}"), ("Version", "{.metadata.version}")]),
    kind(PLATFORM, "runtime", "PlatformMetadata").columns(&[("Platform", "{.platform}")]),
    kind(SECURITY, "runtime", "SecurityState").columns(&[("SecureBoot", "{.secureBoot}")]),
    kind(SERVICE, "runtime", "Service").aliases(&["svc"]).columns(&[
        ("Running", "{.running}"),
        ("Healthy", "{.healthy}"),
        ("Health Unknown", "{.unknown}"),
    ]),
    kind(TIME, "runtime", "TimeStatus").columns(&[("Synced", "{.synced}")]),
    kind(MEMBER, "cluster", "Member").columns(&[
        ("Hostname", "{.hostname}"),
        ("Machine Type", "{.machineType}"),
        ("OS", "{.operatingSystem}"),
        ("Addresses", "{.addresses}"),
    ]),
    kind(INFO, "cluster", "Info")
        .columns(&[("Cluster ID", "{.clusterId}"), ("Cluster Name", "{.clusterName}")]),
    kind(IDENTITY, "cluster", "Identity").columns(&[("ID", "{.nodeId}")]),
    kind(HOSTNAME, "network", "HostnameStatus")
        .aliases(&["hostname"])
        .columns(&[("Hostname", "{.hostname}"), ("Domainname", "{.domainname}")]),
    kind(ADDRESS, "network", "AddressStatus")
        .aliases(&["address", "addresses"])
        .columns(&[("Address", "{.address}"), ("Link", "{.linkName}")]),
    kind(NODE_ADDRESS, "network", "NodeAddress").columns(&[("Addresses", "{.addresses}")]),
    kind(LINK, "network", "LinkStatus").aliases(&["link", "links"]).columns(&[
        ("Alias", "{.alias}"),
        ("Type", "{.type}"),
        ("Kind", "{.kind}"),
        ("Hw Addr", "{.hardwareAddr}"),
        ("Oper State", "{.operationalState}"),
        ("Link State", "{.linkState}"),
    ]),
    kind(ROUTE, "network", "RouteStatus").aliases(&["route", "routes"]).columns(&[
        ("Destination", "{.dst}"),
        ("Gateway", "{.gateway}"),
        ("Link", "{.outLinkName}"),
        ("Metric", "{.priority}"),
    ]),
    kind(RESOLVER, "network", "ResolverStatus")
        .aliases(&["resolvers"])
        .columns(&[("Resolvers", "{.dnsServers}")]),
    kind(TIME_SERVER, "network", "TimeServerStatus")
        .aliases(&["timeserver", "timeservers"])
        .columns(&[("Timeservers", "{.timeServers}")]),
    kind(NODENAME, "k8s", "Nodename").columns(&[("Nodename", "{.nodename}")]),
    kind(NODE_STATUS, "k8s", "NodeStatus")
        .columns(&[("Ready", "{.nodeReady}"), ("Unschedulable", "{.unschedulable}")]),
    kind(KUBELET_CONFIG, "k8s", "KubeletConfig").sensitive(),
    kind(KUBELET_SPEC, "k8s", "KubeletSpec").sensitive(),
    kind(STATIC_POD, "k8s", "StaticPod"),
    kind(STATIC_POD_STATUS, "k8s", "StaticPodStatus")
        .aliases(&["podstatus"])
        .columns(&[("Ready", "{.conditions[?(@.type==\"Ready\")].status}")]),
    kind(API_SERVER, "controlplane", "APIServerConfig"),
    kind(CONTROLLER_MANAGER, "controlplane", "ControllerManagerConfig"),
    kind(SCHEDULER, "controlplane", "SchedulerConfig"),
    kind(MANIFEST, "controlplane", "Manifest"),
    kind(MANIFESTS_CONFIG, "controlplane", "BootstrapManifestsConfig"),
    kind(ETCD_MEMBER, "etcd", "EtcdMember").columns(&[("Member ID", "{.memberID}")]),
    kind(DISK, "runtime", "Disk").columns(&[
        ("Size", "{.pretty_size}"),
        ("Read Only", "{.readonly}"),
        ("Transport", "{.transport}"),
        ("Rotational", "{.rotational}"),
        ("WWID", "{.wwid}"),
        ("Model", "{.model}"),
        ("Serial", "{.serial}"),
    ]),
    kind(SYSTEM_DISK, "runtime", "SystemDisk").columns(&[("Disk", "{.diskID}")]),
    kind(VOLUME, "runtime", "VolumeStatus").columns(&[
        ("Type", "{.type}"),
        ("Phase", "{.phase}"),
        ("Location", "{.location}"),
        ("Size", "{.prettySize}"),
    ]),
    kind(DISCOVERED, "runtime", "DiscoveredVolume").columns(&[
        ("Type", "{.type}"),
        ("Size", "{.pretty_size}"),
        ("Discovered", "{.name}"),
        ("Label", "{.label}"),
        ("PartitionLabel", "{.partition_label}"),
    ]),
    kind(DEFINITION, "meta", "ResourceDefinition").columns(&[("Aliases", "{.aliases[:]}")]),
];

/// The kind of a type, where a version of Talos has it.
pub fn find(name: &str, minor: u32) -> Option<&'static Kind> {
    KINDS.iter().find(|known| known.name == name && minor >= known.since)
}

pub fn definitions(minor: u32) -> Vec<Resource> {
    KINDS.iter().filter(|known| minor >= known.since).map(definition).collect()
}

/// What the resource API says about a kind of resources.
fn definition(kind: &Kind) -> Resource {
    let (plural, suffix) = kind.name.split_once('.').unwrap_or((kind.name, ""));
    let capitals: String = plural.chars().filter(char::is_ascii_uppercase).collect::<String>().to_lowercase();
    let mut aliases: Vec<String> = kind.aliases.iter().map(|&alias| alias.to_owned()).collect();
    let mut add = |alias: String| {
        if !aliases.contains(&alias) {
            aliases.push(alias);
        }
    };
    add(kind.display.to_lowercase());
    if capitals.len() > 1 {
        add(capitals.clone());
        add(format!("{capitals}s"));
    }
    let plural = plural.to_lowercase();
    let mut all = vec![plural.clone()];
    let parts: Vec<&str> = suffix.split('.').collect();
    all.extend((1..parts.len()).map(|n| format!("{plural}.{}", parts[..n].join("."))));
    all.extend(aliases.iter().cloned());
    let columns: Vec<Column> = kind
        .columns
        .iter()
        .map(|(name, path)| Column { name: (*name).to_owned(), path: (*path).to_owned() })
        .collect();
    let spec = serde_json::json!({
        "type": kind.name, "displayType": kind.display, "aliases": aliases, "allAliases": all,
        "printColumns": columns
            .iter()
            .map(|column| serde_json::json!({ "name": column.name, "jsonPath": column.path }))
            .collect::<Vec<_>>(),
        "defaultNamespace": kind.namespace,
    });
    let content = DefinitionSpec {
        kind: kind.name.to_owned(),
        display: kind.display.to_owned(),
        namespace: kind.namespace.to_owned(),
        aliases,
        all_aliases: all,
        columns,
        sensitivity: i32::from(kind.sensitive),
    };
    resource("meta", DEFINITION, &kind.name.to_lowercase(), &content, strata_sim_core::yaml::write(&spec))
}
