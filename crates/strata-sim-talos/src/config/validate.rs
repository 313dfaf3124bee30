//! Which configurations a machine refuses.

use serde_json::Value;

use super::{MachineConfig, Role};
use crate::version::Version;

/// Kinds of documents that came with a minor version. What is in none of these is taken as known from the start.
const SINCE: &[(u32, &[&str])] = &[
    (
        12,
        &[
            "BondConfig",
            "BridgeConfig",
            "DHCPv4Config",
            "DHCPv6Config",
            "DummyLinkConfig",
            "HCloudVIPConfig",
            "HostnameConfig",
            "Layer2VIPConfig",
            "LinkAliasConfig",
            "LinkConfig",
            "OOMConfig",
            "RegistryAuthConfig",
            "RegistryMirrorConfig",
            "RegistryTLSConfig",
            "ResolverConfig",
            "StaticHostConfig",
            "TimeSyncConfig",
            "VLANConfig",
            "WireguardConfig",
        ],
    ),
    (
        13,
        &[
            "BlackholeRouteConfig",
            "EnvironmentConfig",
            "ExternalVolumeConfig",
            "ImageVerificationConfig",
            "KubeSpanConfig",
            "RoutingRuleConfig",
            "TCPProbeConfig",
            "VRFConfig",
        ],
    ),
    (
        14,
        &[
            "BGPInstanceConfig",
            "CRIBaseRuntimeSpecConfig",
            "CRICustomizationConfig",
            "ContainerConfig",
            "DiscoveryIdentityConfig",
            "DiscoveryServiceConfig",
            "EtcFileConfig",
            "FilesystemScrubConfig",
            "FilesystemTrimConfig",
            "HTTPProbeConfig",
            "ImageCacheConfig",
            "KernelModuleConfig",
            "LVMLogicalVolumeConfig",
            "LVMVolumeGroupConfig",
            "RAIDArrayConfig",
            "SecurityProfileConfig",
            "SysctlConfig",
            "SysfsConfig",
            "UdevRulesConfig",
            "UnattendedInstallConfig",
            "VethConfig",
        ],
    ),
];
/// Kinds that were there before.
const OLD: &[&str] = &[
    "EthernetConfig",
    "EventSinkConfig",
    "ExistingVolumeConfig",
    "ExtensionServiceConfig",
    "KmsgLogConfig",
    "KubeSpanEndpointsConfig",
    "NetworkDefaultActionConfig",
    "NetworkRuleConfig",
    "PCIDriverRebindConfig",
    "RawVolumeConfig",
    "SideroLinkConfig",
    "SwapVolumeConfig",
    "TrustedRootsConfig",
    "UserVolumeConfig",
    "VolumeConfig",
    "WatchdogTimerConfig",
    "ZswapConfig",
];
const MAIN_KEYS: &[&str] = &["version", "debug", "persist", "machine", "cluster"];
const MACHINE_KEYS: &[&str] = &[
    "type",
    "token",
    "ca",
    "acceptedCAs",
    "certSANs",
    "controlPlane",
    "kubelet",
    "pods",
    "network",
    "disks",
    "install",
    "files",
    "env",
    "time",
    "sysctls",
    "sysfs",
    "registries",
    "systemDiskEncryption",
    "features",
    "udev",
    "logging",
    "kernel",
    "seccompProfiles",
    "baseRuntimeSpecOverrides",
    "nodeLabels",
    "nodeAnnotations",
    "nodeTaints",
];
const CLUSTER_KEYS: &[&str] = &[
    "id",
    "secret",
    "controlPlane",
    "clusterName",
    "network",
    "token",
    "aescbcEncryptionSecret",
    "secretboxEncryptionSecret",
    "ca",
    "acceptedCAs",
    "aggregatorCA",
    "serviceAccount",
    "apiServer",
    "controllerManager",
    "proxy",
    "scheduler",
    "discovery",
    "etcd",
    "coreDNS",
    "externalCloudProvider",
    "extraManifests",
    "extraManifestHeaders",
    "inlineManifests",
    "adminKubeconfig",
    "allowSchedulingOnMasters",
    "allowSchedulingOnControlPlanes",
];

/// The first minor that knows a kind; kinds of Kubernetes' own documents came with 1.14.
fn known_since(kind: &str) -> Option<u32> {
    if OLD.contains(&kind) {
        return Some(0);
    }
    let listed = SINCE.iter().find(|(_, kinds)| kinds.contains(&kind)).map(|(minor, _)| *minor);
    listed.or_else(|| (kind.starts_with("Kube") && kind.ends_with("Config")).then_some(14))
}

impl MachineConfig {
    /// Reads a configuration as that version of Talos does.
    pub fn read(data: &[u8], version: Version) -> Result<Self, String> {
        let text = std::str::from_utf8(data).map_err(|_| "yaml: invalid UTF-8".to_owned())?;
        let config = Self::try_from(text.to_owned())?;
        if config.documents.is_empty() {
            return Err("no configuration documents found".to_owned());
        }
        for doc in &config.documents {
            check_document(doc, version)?;
        }
        Ok(config)
    }

    /// What must be there for a machine to run on it.
    pub fn validate(&self, installed: bool) -> Result<(), String> {
        let mut problems: Vec<String> = Vec::new();
        let Some(main) = self.main() else {
            return Err("machine instructions are required".to_owned());
        };
        let role = self.role();
        if role.is_none() {
            let given = main.pointer("/machine/type").and_then(Value::as_str).unwrap_or_default();
            problems.push(format!("unknown machine type {given:?}"));
        }
        match self.os_authority() {
            None if self.accepted_authorities().is_empty() => problems.push(
                "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)".into(),
            ),
            None => {}
            Some(ca) if role == Some(Role::ControlPlane) && ca.key.is_none() => problems
                .push("issuing CA key is required for controlplane nodes (.machine.ca.key)".to_owned()),
            Some(ca) if role == Some(Role::Worker) && ca.key.is_some() => problems.push(
                "issuing Talos API CA key is not allowed on non-controlplane nodes (.machine.ca)".to_owned(),
            ),
            Some(_) => {}
        }
        if self.token().is_none() {
            problems.push("machine token is required (.machine.token)".to_owned());
        }
        if self.endpoint().is_empty() {
            problems.push("cluster controlPlane endpoint is required".to_owned());
        }
        if role == Some(Role::ControlPlane) {
            if self.kubernetes_authority().is_none_or(|ca| ca.key.is_none()) {
                problems.push("issuing Kubernetes CA key is required for controlplane nodes".to_owned());
            }
            if self.etcd_authority().is_none() {
                problems.push("key/cert combination should not be empty (.cluster.etcd.ca)".to_owned());
            }
        }
        if role == Some(Role::Worker) && self.vip().is_some() {
            problems.push("virtual (shared) IP is not allowed on non-controlplane nodes".to_owned());
        }
        if !installed && self.install().is_none() {
            problems.push("install instructions are required in \"cloud\" mode".to_owned());
        }
        if problems.is_empty() {
            return Ok(());
        }
        let count = problems.len();
        let noun = if count == 1 { "error" } else { "errors" };
        let list: String = problems.iter().map(|problem| format!("\t* {problem}\n")).collect();
        Err(format!("{count} {noun} occurred:\n{list}\n"))
    }
}

fn check_document(doc: &Value, version: Version) -> Result<(), String> {
    let Some(map) = doc.as_object() else { return Err("a document is no mapping".to_owned()) };
    if let Some(kind) = map.get("kind") {
        let kind = kind.as_str().unwrap_or_default();
        let group = map.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let known = known_since(kind).is_some_and(|since| version.minor >= since);
        if !known || group != "v1alpha1" {
            return Err(format!(
                "error decoding document {group}/{kind}/ (line 1): {kind:?} {group:?}: not registered"
            ));
        }
        return Ok(());
    }
    if map.get("version").and_then(Value::as_str) != Some("v1alpha1") {
        return Err("missing kind".to_owned());
    }
    unknown_key(doc, "", MAIN_KEYS)?;
    unknown_key(doc, "machine", MACHINE_KEYS)?;
    unknown_key(doc, "cluster", CLUSTER_KEYS)
}

fn unknown_key(doc: &Value, section: &str, known: &[&str]) -> Result<(), String> {
    let place = if section.is_empty() { Some(doc) } else { doc.get(section) };
    let Some(map) = place.and_then(Value::as_object) else { return Ok(()) };
    match map.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) if section.is_empty() => Err(format!("unknown keys found during decoding:\n{key}\n")),
        Some(key) => Err(format!("unknown keys found during decoding:\n{section}:\n    {key}\n")),
        None => Ok(()),
    }
}
