//! The release manifests of Flux, in the order in which a server can take them.

use std::collections::BTreeMap;

use serde_json::Value;
use strata_net::WritePermit;

use crate::download::check;
use crate::{
    ApplyOptions, DownloadError, Guarded, KubeClient, KubeError, ManifestError, Object, ObjectRef, Patience,
    Progress, Until, content_digest, read_manifest,
};

/// The objects of a release.
#[derive(Debug, Clone)]
pub struct FluxInstall {
    objects: Vec<Object>,
}

/// What is applied together; each phase needs the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Namespaces,
    /// The server must serve their kinds before anything of such a kind is applied.
    Definitions,
    Rest,
}

impl Phase {
    pub const ALL: [Self; 3] = [Self::Namespaces, Self::Definitions, Self::Rest];

    fn of(object: &Object) -> Self {
        match object.kind() {
            "Namespace" => Self::Namespaces,
            "CustomResourceDefinition" => Self::Definitions,
            _ => Self::Rest,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("the manifests of Flux cannot be read: {0}")]
    Manifest(#[from] ManifestError),
    #[error("these are not the manifests of Flux: there is no {0}")]
    NotFlux(&'static str),
    #[error(transparent)]
    Checksum(#[from] DownloadError),
}

impl FluxInstall {
    pub fn parse(manifests: &[u8]) -> Result<Self, InstallError> {
        let install = Self { objects: read_manifest(manifests)? };
        let has = |test: fn(&Object) -> bool| install.objects.iter().any(test);
        if !has(|object| {
            object.kind() == "CustomResourceDefinition" && object.name().ends_with(".toolkit.fluxcd.io")
        }) {
            return Err(InstallError::NotFlux("definition of `toolkit.fluxcd.io`"));
        }
        if !has(|object| object.kind() == "Deployment") {
            return Err(InstallError::NotFlux("controller"));
        }
        Ok(install)
    }

    /// As [`Self::parse`], of a file that must have this checksum.
    pub fn parse_pinned(name: &str, manifests: &[u8], sha256: &str) -> Result<Self, InstallError> {
        check(name, manifests, sha256)?;
        Self::parse(manifests)
    }

    /// All objects, in the order to apply them.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        Phase::ALL.into_iter().flat_map(|phase| self.phase(phase))
    }

    pub fn phase(&self, phase: Phase) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| Phase::of(object) == phase)
    }

    /// What must be true before the next phase: definitions served, and in the end controllers running.
    pub fn awaited(&self, phase: Phase) -> Vec<(ObjectRef, Until)> {
        let awaited = |object: &Object| {
            let until = match object.kind() {
                "CustomResourceDefinition" => Until::Established,
                "Deployment" => Until::Available,
                _ => return None,
            };
            Some((object.reference(), until))
        };
        self.phase(phase).filter_map(awaited).collect()
    }

    /// The image of each controller, by its name: what a live installation is compared with.
    pub fn controllers(&self) -> BTreeMap<String, String> {
        let deployments = self.objects.iter().filter(|object| object.kind() == "Deployment");
        deployments.filter_map(|object| Some((object.name().to_owned(), image(object)?.to_owned()))).collect()
    }

    /// What state keeps of what was applied.
    pub fn digest(&self) -> String {
        content_digest(self.objects())
    }
}

pub(super) fn image(deployment: &Object) -> Option<&str> {
    let containers = deployment.at("/spec/template/spec/containers")?.as_array()?;
    let manager = containers.iter().find(|one| one.get("name").and_then(Value::as_str) == Some("manager"));
    manager.or(containers.first())?.get("image")?.as_str()
}

impl KubeClient {
    /// Waits for what must be true after a phase.
    pub async fn wait_for_phase(
        &self,
        install: &FluxInstall,
        phase: Phase,
        patience: Patience,
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<(), KubeError> {
        for (what, until) in install.awaited(phase) {
            self.wait_until(&what, &until, patience, progress).await?;
        }
        Ok(())
    }

    /// Applies all of a release, phase by phase, and waits for its definitions but not for its controllers.
    ///
    /// Many writes: a permit is asked for before each, and at each look while it waits. Can be repeated after any failure.
    pub async fn install_flux<'p, G>(
        &self,
        install: &FluxInstall,
        options: ApplyOptions,
        patience: Patience,
        permit: &(dyn Fn() -> Result<WritePermit<'p>, G> + Send + Sync),
        progress: &(dyn Fn(&Progress<'_>) + Send + Sync),
    ) -> Result<(), Guarded<G>> {
        let may_go_on = || permit().map(|_| ());
        for phase in Phase::ALL {
            for object in install.phase(phase) {
                let permit = permit().map_err(Guarded::Stopped)?;
                self.apply(&permit, object, options).await?;
            }
            if phase != Phase::Rest {
                for (what, until) in install.awaited(phase) {
                    self.wait_guarded(&what, &until, patience, &may_go_on, progress).await?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_what_depends_on_each_other() {
        let text = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: source-controller, namespace: flux-system}
spec: {template: {spec: {containers: [{name: side, image: other}, {name: manager, image: ghcr.io/fluxcd/source-controller:v1.9.4}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gitrepositories.source.toolkit.fluxcd.io}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
";
        let install = FluxInstall::parse(text.as_bytes()).unwrap();
        let kinds: Vec<_> = install.objects().map(Object::kind).collect();
        assert_eq!(kinds, ["Namespace", "CustomResourceDefinition", "Deployment"]);
        assert_eq!(install.controllers()["source-controller"], "ghcr.io/fluxcd/source-controller:v1.9.4");
        assert_eq!(install.awaited(Phase::Rest)[0].1, Until::Available);
        assert!(install.digest().starts_with("sha256:"));
        let error = FluxInstall::parse_pinned("f", text.as_bytes(), &"0".repeat(64)).unwrap_err().to_string();
        assert!(error.starts_with("`f` has the checksum sha256:"), "{error}");
    }

    #[test]
    fn another_file_is_refused() {
        let error =
            FluxInstall::parse(b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "these are not the manifests of Flux: there is no definition of `toolkit.fluxcd.io`"
        );
    }
}
