//! The versions in a configuration: each part of Kubernetes by itself, and the installer's image.
//!
//! An upgrade changes one part on one node at a time; a diff between a cluster's configuration and what its nodes have sets
//! these versions aside.

use std::fmt;

use crate::config::MachineConfig;
use crate::generate::{API_SERVER, CONTROLLER_MANAGER, KUBELET, PROXY, SCHEDULER};
use crate::shape::V1ALPHA1;
use crate::tree::{Map, Value};

/// A part of Kubernetes that Talos runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Component {
    ApiServer,
    ControllerManager,
    Scheduler,
    Proxy,
    Kubelet,
}

/// Why a version cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComponentError {
    #[error("this machine does not run {0}")]
    NotHere(Component),
    #[error("`{0}` is not a version such as `v1.36.1`")]
    NotVersion(String),
}

impl Component {
    /// In the order in which an upgrade takes them.
    pub const ALL: [Self; 5] =
        [Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Proxy, Self::Kubelet];

    pub fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Proxy => "kube-proxy",
            Self::Kubelet => "kubelet",
        }
    }

    /// Where Talos takes it from if nobody says otherwise.
    pub fn repository(self) -> &'static str {
        match self {
            Self::ApiServer => API_SERVER,
            Self::ControllerManager => CONTROLLER_MANAGER,
            Self::Scheduler => SCHEDULER,
            Self::Proxy => PROXY,
            Self::Kubelet => KUBELET,
        }
    }

    /// Its document from 1.14 on.
    fn document(self) -> &'static str {
        match self {
            Self::ApiServer => "KubeAPIServerConfig",
            Self::ControllerManager => "KubeControllerManagerConfig",
            Self::Scheduler => "KubeSchedulerConfig",
            Self::Proxy => "KubeProxyConfig",
            Self::Kubelet => "KubeletConfig",
        }
    }

    /// Its section before.
    fn section(self) -> [&'static str; 2] {
        match self {
            Self::ApiServer => ["cluster", "apiServer"],
            Self::ControllerManager => ["cluster", "controllerManager"],
            Self::Scheduler => ["cluster", "scheduler"],
            Self::Proxy => ["cluster", "proxy"],
            Self::Kubelet => ["machine", "kubelet"],
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a configuration keeps the image of a part.
#[derive(Clone, Copy)]
struct ImagePath {
    kind: &'static str,
    path: &'static [&'static str],
}

impl MachineConfig {
    /// The image of a part; none if the configuration does not say, or the machine does not run it.
    pub fn component_image(&self, component: Component) -> Option<&str> {
        let document = self.document(component.document());
        match document {
            Some(document) => document.at(&["image"]),
            None => {
                let [top, section] = component.section();
                self.v1alpha1()?.at(&[top, section, "image"])
            }
        }?
        .as_text()
        .filter(|image| !image.is_empty())
    }

    /// The version of a part, such as `v1.36.1`.
    pub fn component_version(&self, component: Component) -> Option<&str> {
        let image = self.component_image(component)?;
        let image = image.split_once('@').map_or(image, |(name, _)| name);
        let (_, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
        Some(tag)
    }

    /// Sets the version of a part and keeps where its image comes from. A digest goes: it would be that of the old one.
    /// Answers whether anything changed.
    pub fn set_component_version(
        &mut self,
        component: Component,
        version: &str,
    ) -> Result<bool, ComponentError> {
        let bare = version.strip_prefix('v').unwrap_or(version);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !bare.starts_with(|first: char| first.is_ascii_digit()) || !bare.bytes().all(fits) {
            return Err(ComponentError::NotVersion(version.to_owned()));
        }
        if !self.runs(component) {
            return Err(ComponentError::NotHere(component));
        }
        let old = self.component_image(component);
        let repository = old.map_or(component.repository(), repository);
        let image = format!("{repository}:v{bare}");
        if old == Some(image.as_str()) {
            return Ok(false);
        }
        let (kind, path): (_, Vec<&str>) = match self.has(component.document()) {
            true => (component.document(), vec!["image"]),
            false => (V1ALPHA1, component.section().into_iter().chain(["image"]).collect()),
        };
        let document = self.document_mut(kind).ok_or(ComponentError::NotHere(component))?;
        set(document.body_mut(), &path, image.into());
        Ok(true)
    }

    /// Whether the machine runs a part: all run the kubelet, control planes the rest unless it is switched off.
    pub fn runs(&self, component: Component) -> bool {
        if let Some(document) = self.document(component.document()) {
            return document.at(&["enabled"]).and_then(Value::as_bool) != Some(false);
        }
        let control_plane = self.is_control_plane() == Some(true);
        // From 1.14 on, a part without a document is not there.
        let documents = self.has("KubeletConfig");
        match component {
            _ if documents => false,
            Component::Kubelet => self.v1alpha1().is_some(),
            Component::Proxy => {
                let disabled =
                    self.v1alpha1().and_then(|document| document.at(&["cluster", "proxy", "disabled"]));
                control_plane && disabled.and_then(Value::as_bool) != Some(true)
            }
            _ => control_plane,
        }
    }

    /// The image that Talos is installed from.
    pub fn install_image(&self) -> Option<&str> {
        let places =
            INSTALLERS.iter().filter_map(|place| self.document(place.kind)?.at(place.path)?.as_text());
        places.into_iter().find(|image| !image.is_empty())
    }

    /// Sets the image that Talos is installed from, where there is one already. Answers whether anything changed.
    pub fn set_install_image(&mut self, image: &str) -> bool {
        let mut changed = false;
        for place in INSTALLERS {
            let Some(document) = self.document_mut(place.kind) else { continue };
            let old = document.at(place.path).and_then(Value::as_text);
            if old.is_some_and(|old| old != image) {
                set(document.body_mut(), place.path, image.into());
                changed = true;
            }
        }
        changed
    }

    /// The same without the versions that upgrades set: two configurations that differ in nothing else are then equal.
    #[must_use]
    pub(crate) fn without_versions(&self) -> Self {
        let mut config = self.clone();
        let mut clear = |kind: &str, path: &[&str]| {
            if let Some(document) = config.document_mut(kind) {
                remove(document.body_mut(), path);
            }
        };
        for component in Component::ALL {
            let [top, section] = component.section();
            clear(component.document(), &["image"]);
            clear(V1ALPHA1, &[top, section, "image"]);
        }
        for place in INSTALLERS {
            clear(place.kind, place.path);
        }
        config
    }

    /// This configuration with the versions of Kubernetes' parts that another one has.
    #[must_use]
    pub fn with_components_of(&self, other: &Self) -> Self {
        let mut config = self.clone();
        for component in Component::ALL {
            if let Some(version) = other.component_version(component) {
                // A part that this machine is not to run any more has no version to keep.
                let _ = config.set_component_version(component, version);
            }
        }
        config
    }
}

const INSTALLERS: [ImagePath; 2] = [
    ImagePath { kind: V1ALPHA1, path: &["machine", "install", "image"] },
    ImagePath { kind: "UnattendedInstallConfig", path: &["installer", "image"] },
];

/// The name of an image without its tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

fn set(body: &mut Map, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        body.insert((*first).to_owned(), value);
        return;
    }
    let inner = body.entry((*first).to_owned()).or_insert_with(|| Value::Map(Map::new()));
    if !matches!(inner, Value::Map(_)) {
        *inner = Value::Map(Map::new());
    }
    if let Some(inner) = inner.as_map_mut() {
        set(inner, rest, value);
    }
}

/// Takes a value out. The section stays: that it is there may mean something.
fn remove(body: &mut Map, path: &[&str]) {
    match path {
        [] => {}
        [last] => drop(body.shift_remove(*last)),
        [first, rest @ ..] => {
            if let Some(inner) = body.get_mut(*first).and_then(Value::as_map_mut) {
                remove(inner, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use strata_secret::SecretString;

    use super::*;
    use crate::contract::Contract;
    use crate::forecast::forecast;

    fn config(text: &str) -> MachineConfig {
        MachineConfig::from_yaml(&SecretString::from(text)).unwrap_or_else(|error| panic!("{error}"))
    }

    const LEGACY: &str = "machine:
  type: controlplane
  kubelet: {image: 'mirror.example.org:5000/kubelet:v1.35.2@sha256:aa'}
  install: {disk: /dev/sda, image: 'factory.example.org/nocloud-installer/abc:v1.13.9'}
cluster:
  apiServer: {image: 'registry.k8s.io/kube-apiserver:v1.35.2'}
  scheduler: {}
  proxy: {disabled: true, image: 'registry.k8s.io/kube-proxy:v1.35.2'}
";

    const DOCUMENTS: &str = "machine: {type: controlplane}
---
{apiVersion: v1alpha1, kind: KubeletConfig, image: 'ghcr.io/siderolabs/kubelet:v1.36.0'}
---
{apiVersion: v1alpha1, kind: KubeAPIServerConfig, image: 'registry.k8s.io/kube-apiserver:v1.36.0'}
---
{apiVersion: v1alpha1, kind: KubeProxyConfig, enabled: false}
---
{apiVersion: v1alpha1, kind: UnattendedInstallConfig, installer: {image: 'factory.example.org/metal-installer/abc:v1.14.0'}}
";

    #[test]
    fn one_part_is_changed_by_itself() {
        let mut legacy = config(LEGACY);
        assert_eq!(legacy.component_version(Component::Kubelet), Some("v1.35.2"));
        assert_eq!(legacy.set_component_version(Component::ApiServer, "1.36.1"), Ok(true));
        assert_eq!(legacy.set_component_version(Component::ApiServer, "v1.36.1"), Ok(false));
        assert_eq!(
            legacy.component_image(Component::ApiServer),
            Some("registry.k8s.io/kube-apiserver:v1.36.1")
        );
        assert_eq!(legacy.component_version(Component::Kubelet), Some("v1.35.2"));
        // A port is no tag, and the digest of the old version goes.
        assert_eq!(legacy.set_component_version(Component::Kubelet, "v1.36.1"), Ok(true));
        assert_eq!(
            legacy.component_image(Component::Kubelet),
            Some("mirror.example.org:5000/kubelet:v1.36.1")
        );
        // What was left to Talos is set from now on.
        assert_eq!(legacy.component_version(Component::Scheduler), None);
        assert_eq!(legacy.set_component_version(Component::Scheduler, "v1.36.1"), Ok(true));
        assert_eq!(
            legacy.component_image(Component::Scheduler),
            Some("registry.k8s.io/kube-scheduler:v1.36.1")
        );
        assert_eq!(legacy.set_component_version(Component::ControllerManager, "v1.36.1"), Ok(true));
        let changes = forecast(Contract::V1_13, &config(LEGACY), &legacy).changes;
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "machine.kubelet.image",
                "cluster.apiServer.image",
                "cluster.scheduler.image",
                "cluster.controllerManager"
            ]
        );
    }

    #[test]
    fn documents_hold_the_versions_from_1_14_on() {
        let mut config = config(DOCUMENTS);
        assert_eq!(config.component_version(Component::Kubelet), Some("v1.36.0"));
        assert_eq!(config.set_component_version(Component::Kubelet, "v1.37.0"), Ok(true));
        assert_eq!(config.component_image(Component::Kubelet), Some("ghcr.io/siderolabs/kubelet:v1.37.0"));
        assert_eq!(config.component_version(Component::ApiServer), Some("v1.36.0"));
        assert!(config.set_install_image("factory.example.org/metal-installer/abc:v1.14.1"));
        assert_eq!(config.install_image(), Some("factory.example.org/metal-installer/abc:v1.14.1"));
    }

    #[test]
    fn what_a_machine_does_not_run_has_no_version() {
        let mut legacy = config(LEGACY);
        let refused = Err(ComponentError::NotHere(Component::Proxy));
        assert_eq!(legacy.set_component_version(Component::Proxy, "v1.36.1"), refused);
        let mut documents = config(DOCUMENTS);
        assert_eq!(documents.set_component_version(Component::Proxy, "v1.36.1"), refused);
        assert!(documents.set_component_version(Component::Scheduler, "v1.36.1").is_err());
        let mut worker = config("machine: {type: worker}\ncluster: {}\n");
        assert!(worker.set_component_version(Component::ApiServer, "v1.36.1").is_err());
        assert_eq!(worker.set_component_version(Component::Kubelet, "v1.36.1"), Ok(true));
        for bad in ["", "latest", "v", "v1.36.1 x", "v1.36.1:2"] {
            let refused = Err(ComponentError::NotVersion(bad.to_owned()));
            assert_eq!(worker.set_component_version(Component::Kubelet, bad), refused, "{bad}");
        }
    }

    #[test]
    fn versions_can_be_set_aside() {
        for (text, contract) in [(LEGACY, Contract::V1_13), (DOCUMENTS, Contract::V1_14)] {
            let (old, mut new) = (config(text), config(text));
            for component in Component::ALL {
                let _ = new.set_component_version(component, "v1.36.9");
            }
            assert!(new.set_install_image("elsewhere:v2"));
            assert!(!forecast(contract, &old, &new).is_empty());
            // Sections that were not there before come with their version.
            let left = forecast(contract, &old.without_versions(), &new.without_versions()).changes;
            assert!(left.iter().all(|change| change.path == "cluster.controllerManager"), "{left:?}");
        }
    }
}
