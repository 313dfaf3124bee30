//! Settings that moved and changed their form.

use super::{Change, Translation};
use crate::config::MachineConfig;
use crate::document::{Document, DocumentId};
use crate::patch::PatchError;
use crate::tree::{Map, Value, tree};

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

pub(super) fn translate(translation: &mut Translation<'_, '_>) -> Result<(), PatchError> {
    hostname(translation);
    scheduling(translation);
    install(translation);
    kubelet(translation)?;
    kubeprism(translation);
    discovery(translation)?;
    local_port(translation);
    api_server(translation);
    cni(translation)
}

/// A name of the machine's own takes the place of one that Talos makes up.
fn hostname(translation: &mut Translation<'_, '_>) {
    let kind = "HostnameConfig";
    if let Some(stable) = translation.take("machine.features.stableHostname", kind) {
        let auto = if stable.as_bool() == Some(true) { "stable" } else { "talos-addr" };
        translation.set(kind, "auto", auto.into());
    }
    if let Some(name) = translation.take("machine.network.hostname", kind) {
        translation.set(kind, "auto", "off".into());
        translation.set(kind, "hostname", name);
    }
}

/// Whether workloads may run on a control plane is a taint of it.
fn scheduling(translation: &mut Translation<'_, '_>) {
    let kind = "KubeNodeConfig";
    let old = translation.take("cluster.allowSchedulingOnMasters", kind);
    let Some(allowed) = translation.take("cluster.allowSchedulingOnControlPlanes", kind).or(old) else {
        return;
    };
    if translation.config.is_control_plane() != Some(true) {
        return;
    }
    let allowed = allowed.as_bool() == Some(true);
    let edit = move |body: &mut Map| {
        let taints = body.entry("taints".to_owned()).or_insert_with(|| Value::Map(Map::new()));
        if let Some(taints) = taints.as_map_mut() {
            if allowed {
                taints.shift_remove(CONTROL_PLANE);
            } else {
                taints.insert(CONTROL_PLANE.to_owned(), "NoSchedule".into());
            }
        }
    };
    translation.changes.push(Change::Edit(DocumentId { kind, name: None }, Box::new(edit)));
}

fn install(translation: &mut Translation<'_, '_>) {
    let kind = "UnattendedInstallConfig";
    if let Some(disk) = translation.take("machine.install.disk", kind) {
        let expression = disk_expression(disk.as_text().unwrap_or_default());
        translation.set(kind, "provisioning.diskSelector.match", expression.into());
    }
    // The boot loader is Talos' own business there.
    translation.take("machine.install.grubUseUKICmdline", kind);
    translation.take("machine.install.bootloader", kind);
}

/// The expression that selects a disk by its path.
pub(crate) fn disk_expression(disk: &str) -> String {
    let escaped = disk.replace('\\', "\\\\").replace('"', "\\\"");
    format!("disk.dev_path == \"{escaped}\"")
}

fn kubelet(translation: &mut Translation<'_, '_>) -> Result<(), PatchError> {
    let kind = "KubeletConfig";
    if let Some(configuration) = translation.take("machine.kubelet.credentialProviderConfig", kind) {
        translation.set("KubeCredentialProviderConfig", "configuration", configuration);
    }
    let manifests = "machine.kubelet.disableManifestsDirectory";
    // Always disabled there, so only the wish to enable it is refused.
    match translation.take(manifests, kind) {
        Some(Value::Bool(false)) => Err(PatchError::Moved { path: manifests.to_owned(), kind }),
        _ => Ok(()),
    }
}

fn kubeprism(translation: &mut Translation<'_, '_>) {
    let kind = "KubePrismConfig";
    if let Some(enabled) = translation.take("machine.features.kubePrism.enabled", kind)
        && enabled.as_bool() == Some(false)
    {
        translation.take("machine.features.kubePrism", kind);
        translation.changes.push(Change::Remove(kind));
    }
}

fn discovery(translation: &mut Translation<'_, '_>) -> Result<(), PatchError> {
    let kind = "DiscoveryServiceConfig";
    let mut off = false;
    for (path, means_off) in
        [("cluster.discovery.enabled", false), ("cluster.discovery.registries.service.disabled", true)]
    {
        off |= translation.take(path, kind).is_some_and(|value| value.as_bool() == Some(means_off));
    }
    let kubernetes = "cluster.discovery.registries.kubernetes.disabled";
    // Discovery through Kubernetes is gone, so only the wish to disable it can be granted.
    if let Some(Value::Bool(false)) = translation.take(kubernetes, kind) {
        return Err(PatchError::Moved { path: kubernetes.to_owned(), kind });
    }
    if off {
        translation.take("cluster.discovery", kind);
        translation.changes.push(Change::Remove(kind));
    }
    Ok(())
}

/// The port that a control plane's own API listens on is nothing that a worker knows.
fn local_port(translation: &mut Translation<'_, '_>) {
    if !translation.config.has("KubeAPIServerConfig") {
        translation.take("cluster.controlPlane.localAPIServerPort", "KubeClusterConfig");
    }
}

fn api_server(translation: &mut Translation<'_, '_>) {
    let kind = "KubeAPIServerConfig";
    // Pod security policies are gone from Kubernetes.
    translation.take("cluster.apiServer.disablePodSecurityPolicy", kind);
    if let Some(Value::List(plugins)) = translation.take("cluster.apiServer.admissionControl", kind) {
        let document = |plugin| Change::Merge(Document::new("KubeAdmissionControlConfig", plugin));
        translation.changes.extend(plugins.into_iter().map(document));
    }
}

fn cni(translation: &mut Translation<'_, '_>) -> Result<(), PatchError> {
    // The network is known to every node, the CNI to control planes alone.
    let kind = "KubeNetworkConfig";
    let Some(name) = translation.take("cluster.network.cni.name", kind) else { return Ok(()) };
    let urls = translation.take("cluster.network.cni.urls", kind);
    if translation.config.is_control_plane() != Some(true) {
        translation.take("cluster.network.cni", kind);
        return Ok(());
    }
    match (name.as_text(), urls) {
        (Some("flannel"), None) => {}
        (Some("none"), None) => translation.changes.push(Change::Remove("KubeFlannelCNIConfig")),
        (Some("custom"), Some(Value::List(urls))) => {
            translation.changes.push(Change::Remove("KubeFlannelCNIConfig"));
            for (index, url) in urls.into_iter().enumerate() {
                let name =
                    if index == 0 { "custom-cni".to_owned() } else { format!("custom-cni-{}", index + 1) };
                let manifest = Value::map([("name", name.into()), ("url", url)]);
                translation
                    .changes
                    .push(Change::Merge(Document::new("KubeExternalManifestConfig", manifest)));
            }
        }
        _ => {
            let path = "cluster.network.cni".to_owned();
            return Err(PatchError::Moved { path, kind: "KubeFlannelCNIConfig" });
        }
    }
    Ok(())
}

/// Adds what a translated document needs to be merged into the right one without losing anything.
pub(super) fn with_identity(config: &MachineConfig, mut document: Document) -> Document {
    match document.kind() {
        "DiscoveryServiceConfig" => {
            let known = config.document("DiscoveryServiceConfig").and_then(Document::name);
            document.body_mut().insert("name".to_owned(), known.unwrap_or("default").into());
        }
        "UnattendedInstallConfig" => {
            // An expression is replaced even by none: see `Leaf::absent_replaces`.
            let path = ["provisioning", "diskSelector", "match"];
            let known = config.document("UnattendedInstallConfig").and_then(|known| known.at(&path)).cloned();
            let body = document.body_mut();
            let provisioning =
                body.entry("provisioning".to_owned()).or_insert_with(|| Value::Map(Map::new()));
            if let (Some(provisioning), Some(known)) = (provisioning.as_map_mut(), known) {
                provisioning.entry("diskSelector".to_owned()).or_insert_with(|| tree! { "match" => known });
            }
        }
        _ => {}
    }
    document
}
