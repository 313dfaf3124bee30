//! Which changes of a configuration a running machine takes at once, and which only with a reboot.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::config::MachineConfig;
use super::version::Version;
use crate::world::World;

/// Sections of the main document's `machine` that are taken at once up to 1.13.
const AT_ONCE: &[&str] = &[
    "ca",
    "acceptedCAs",
    "time",
    "certSANs",
    "install",
    "network",
    "sysfs",
    "sysctls",
    "logging",
    "controlPlane",
    "kubelet",
    "kernel",
    "registries",
    "pods",
    "seccompProfiles",
    "nodeAnnotations",
    "nodeLabels",
    "nodeTaints",
];
/// Features that are.
const FEATURES_AT_ONCE: &[&str] =
    &["kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache", "nodeAddressSortAlgorithm"];
/// Sections that 1.14 reads only while it boots, though it never says so.
const AT_BOOT: &[&str] = &["type", "disks", "files", "systemDiskEncryption"];
/// Documents that 1.14 reads only while it boots.
const DOCUMENTS_AT_BOOT: &[&str] = &["SecurityProfileConfig"];

/// Nothing, an empty list and an empty section are the same.
fn pruned(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(map) => {
            let kept: Map<String, Value> =
                map.iter().filter_map(|(k, v)| Some((k.clone(), pruned(v)?))).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        other => Some(other.clone()),
    }
}

fn section<'v>(config: &'v MachineConfig, pointer: &str) -> Option<&'v Map<String, Value>> {
    config.main()?.pointer(pointer)?.as_object()
}

/// The keys below a pointer whose values differ.
fn changed(old: &MachineConfig, new: &MachineConfig, pointer: &str) -> Vec<String> {
    let (before, after) = (section(old, pointer), section(new, pointer));
    let keys = before.into_iter().chain(after).flat_map(|map| map.keys());
    let value =
        |map: Option<&Map<String, Value>>, key: &str| map.and_then(|map| map.get(key)).and_then(pruned);
    let mut found: Vec<String> =
        keys.filter(|key| value(before, key) != value(after, key)).cloned().collect();
    found.sort();
    found.dedup();
    found
}

/// The first place at which the new configuration needs a reboot to take effect, up to 1.13.
fn until_13(old: &MachineConfig, new: &MachineConfig) -> Option<String> {
    let top = changed(old, new, "");
    if let Some(key) = top.iter().find(|key| !matches!(key.as_str(), "debug" | "cluster" | "machine")) {
        return Some(format!(".{key}"));
    }
    let machine = changed(old, new, "/machine");
    if let Some(key) = machine.iter().find(|key| *key != "features" && !AT_ONCE.contains(&key.as_str())) {
        return Some(format!(".machine.{key}"));
    }
    let features = changed(old, new, "/machine/features");
    let feature = features.iter().find(|key| !FEATURES_AT_ONCE.contains(&key.as_str()));
    feature.map(|key| format!(".machine.features.{key}"))
}

/// The same from 1.14 on, where it happens at whatever reboot comes next.
fn since_14(old: &MachineConfig, new: &MachineConfig) -> Option<String> {
    let machine = changed(old, new, "/machine");
    if let Some(key) = machine.iter().find(|key| AT_BOOT.contains(&key.as_str())) {
        return Some(format!(".machine.{key}"));
    }
    let documents = |config: &MachineConfig, kind: &str| -> Vec<Option<Value>> {
        let mut all: Vec<Option<Value>> = config.of_kind(kind).map(pruned).collect();
        all.sort_by_key(|doc| doc.as_ref().map(Value::to_string));
        all
    };
    let kind = DOCUMENTS_AT_BOOT.iter().find(|kind| documents(old, kind) != documents(new, kind));
    if let Some(kind) = kind {
        return Some((*kind).to_owned());
    }
    if encryption(old) != encryption(new) {
        return Some("VolumeConfig".to_owned());
    }
    // A module is loaded at once; with other parameters it is loaded only by the next boot.
    let (before, after) = (modules(old), modules(new));
    let reloaded =
        after.iter().find(|(name, parameters)| before.get(*name).is_some_and(|old| old != *parameters));
    reloaded.map(|(name, _)| format!("kernel module {name}"))
}

/// How the volumes of the system are encrypted.
fn encryption(config: &MachineConfig) -> Vec<(String, Option<Value>)> {
    let system = |doc: &&Value| matches!(doc["name"].as_str(), Some("STATE" | "EPHEMERAL"));
    let volumes = config.of_kind("VolumeConfig").filter(system);
    volumes.map(|doc| (doc["name"].to_string(), doc.get("encryption").and_then(pruned))).collect()
}

/// How the partitions of the system are to be encrypted, in either form: a volume that is not named is not.
pub fn partitions(config: &MachineConfig) -> super::disk::Encryption {
    let mut found = super::disk::Encryption::new();
    let legacy = config.main().and_then(|main| main.pointer("/machine/systemDiskEncryption"));
    for (key, name) in [("state", "STATE"), ("ephemeral", "EPHEMERAL")] {
        let document = config.of_kind("VolumeConfig").find(|doc| doc["name"] == name);
        let own = document.and_then(|doc| doc.get("encryption")).or_else(|| legacy?.get(key));
        if let Some(keys) = own.and_then(|own| own.get("keys")).and_then(Value::as_array) {
            let mut kinds: Vec<String> =
                keys.iter().filter_map(Value::as_object).flat_map(|key| key.keys().cloned()).collect();
            kinds.retain(|kind| kind != "slot");
            found.insert(name.to_owned(), Value::from(kinds));
        }
    }
    found
}

/// Kernel modules with their parameters.
fn modules(config: &MachineConfig) -> BTreeMap<String, Option<Value>> {
    let listed =
        config.main().and_then(|main| main.pointer("/machine/kernel/modules")).and_then(Value::as_array);
    let listed = listed.into_iter().flatten().chain(config.of_kind("KernelModuleConfig"));
    listed.map(|module| (module["name"].to_string(), module.get("parameters").and_then(pruned))).collect()
}

/// The place that needs a reboot, if any does.
pub fn needed(version: Version, old: &MachineConfig, new: &MachineConfig) -> Option<String> {
    if version.never_reboots() { since_14(old, new) } else { until_13(old, new) }
}

impl World<'_> {
    /// Something in the configuration waits for the next boot.
    pub fn reboot_pending(&self, key: &str) -> bool {
        let boot = self.talos.machines.get(key).and_then(|machine| machine.boot.as_ref());
        let disk = self.talos_disk(key).and_then(|disk| disk.config.as_ref());
        let parts = boot.and_then(|boot| Some((boot.image.as_ref()?, boot.booted_config.as_ref()?)));
        match (parts, disk) {
            (Some((image, booted)), Some(wanted)) => needed(image.parsed(), booted, wanted).is_some(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> MachineConfig {
        MachineConfig::try_from(format!("version: v1alpha1\n{text}")).unwrap()
    }

    fn v(minor: u32) -> Version {
        Version { major: 1, minor, patch: 0 }
    }

    #[test]
    fn a_reboot_follows_from_what_changed() {
        let old = config("machine: {type: worker, sysctls: {}, features: {kubePrism: {enabled: true}}}");
        let sysctl =
            config("machine: {type: worker, sysctls: {a: \"1\"}, features: {kubePrism: {enabled: true}}}");
        assert_eq!(needed(v(11), &old, &sysctl), None);
        let files =
            config("machine: {type: worker, files: [{path: /x}], features: {kubePrism: {enabled: true}}}");
        assert_eq!(needed(v(13), &old, &files).as_deref(), Some(".machine.files"));
        let feature = config(
            "machine: {type: worker, features: {kubePrism: {enabled: false}, diskQuotaSupport: true}}",
        );
        assert_eq!(needed(v(12), &old, &feature).as_deref(), Some(".machine.features.diskQuotaSupport"));
        assert_eq!(needed(v(14), &old, &feature), None);
        let module = |parameter: &str| {
            let text =
                "machine: {type: worker}\n---\napiVersion: v1alpha1\nkind: KernelModuleConfig\nname: zfs\n";
            config(&format!("{text}parameters: [{parameter}]\n"))
        };
        assert_eq!(needed(v(14), &old, &module("a=1")), None);
        assert!(needed(v(14), &module("a=1"), &module("a=2")).unwrap().contains("zfs"));
        let env = config("machine: {type: worker, env: {A: b}, features: {kubePrism: {enabled: true}}}");
        assert_eq!(needed(v(13), &old, &env).as_deref(), Some(".machine.env"));
    }

    #[test]
    fn what_is_empty_is_not_there() {
        let old = config("machine: {type: worker, files: [], udev: {}}");
        assert_eq!(needed(v(11), &old, &config("machine: {type: worker}")), None);
    }
}
