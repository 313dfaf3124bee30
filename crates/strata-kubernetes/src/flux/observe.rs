//! What is live of Flux: its controllers, what it follows, and how that goes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::install::image;
use super::{FLUX_SYSTEM, FluxInstall, FluxSync};
use crate::{KubeClient, KubeError, Object, Selector, Until};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveController {
    pub name: String,
    pub image: String,
    pub available: bool,
}

/// A GitRepository, as far as Strata sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSource {
    pub url: Option<String>,
    /// `branch`, `tag`, `semver` or `commit`, and its value.
    pub reference: BTreeMap<String, String>,
    pub interval: Option<String>,
    pub secret: Option<String>,
    pub suspended: bool,
    pub ready: bool,
    pub message: Option<String>,
    /// `main@sha1:…`
    pub revision: Option<String>,
}

/// A Kustomization, as far as Strata sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveKustomization {
    pub path: Option<String>,
    pub source: Option<String>,
    pub interval: Option<String>,
    pub prune: bool,
    pub decryption_secret: Option<String>,
    pub suspended: bool,
    pub ready: bool,
    pub message: Option<String>,
    pub revision: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveFlux {
    /// The release, if its objects carry the label that the releases have; none while some are of another release.
    pub version: Option<String>,
    pub controllers: Vec<LiveController>,
    pub source: Option<LiveSource>,
    pub kustomization: Option<LiveKustomization>,
}

impl KubeClient {
    /// Reads what is live of Flux; nothing is there on a cluster without it.
    pub async fn observe_flux(&self) -> Result<LiveFlux, KubeError> {
        let selector = Selector::namespace(FLUX_SYSTEM).labels("app.kubernetes.io/part-of=flux");
        let mut deployments = self.list("apps/v1", "Deployment", &selector).await?;
        deployments.sort_by(|one, other| one.name().cmp(other.name()));
        let release = |object: &Object| object.label("app.kubernetes.io/version").map(str::to_owned);
        let version = deployments.first().and_then(release);
        let version = version
            .filter(|version| deployments.iter().all(|object| release(object).as_ref() == Some(version)));
        let controller = |object: &Object| LiveController {
            name: object.name().to_owned(),
            image: image(object).unwrap_or_default().to_owned(),
            available: Until::Available.is_met(Some(object)),
        };
        Ok(LiveFlux {
            version,
            controllers: deployments.iter().map(controller).collect(),
            source: self.get(&FluxSync::source_reference()).await?.as_ref().map(LiveSource::read),
            kustomization: self
                .get(&FluxSync::kustomization_reference())
                .await?
                .as_ref()
                .map(LiveKustomization::read),
        })
    }
}

impl LiveFlux {
    pub fn is_installed(&self) -> bool {
        !self.controllers.is_empty()
    }

    /// Whether every controller of a release runs with its image; others may run beside them.
    pub fn runs(&self, install: &FluxInstall) -> bool {
        install.controllers().iter().all(|(name, image)| {
            self.controllers.iter().any(|live| live.name == *name && live.image == *image)
        })
    }
}

impl LiveSource {
    pub fn read(object: &Object) -> Self {
        let text = |pointer: &str| object.text(pointer).map(str::to_owned);
        let reference = object.at("/spec/ref").and_then(Value::as_object);
        let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        Self {
            url: text("/spec/url"),
            reference: reference.into_iter().flatten().filter_map(entry).collect(),
            interval: text("/spec/interval"),
            secret: text("/spec/secretRef/name"),
            suspended: suspended(object),
            ready: Until::Ready.is_met(Some(object)),
            message: message(object),
            revision: text("/status/artifact/revision"),
        }
    }

    /// Whether it follows what is wanted.
    pub fn follows(&self, sync: &FluxSync) -> bool {
        let wanted = Self::read(&sync.git_repository());
        (&self.url, &self.reference, &self.interval, &self.secret)
            == (&wanted.url, &wanted.reference, &wanted.interval, &wanted.secret)
    }
}

impl LiveKustomization {
    pub fn read(object: &Object) -> Self {
        let text = |pointer: &str| object.text(pointer).map(str::to_owned);
        Self {
            path: text("/spec/path"),
            source: text("/spec/sourceRef/name"),
            interval: text("/spec/interval"),
            prune: object.at("/spec/prune").and_then(Value::as_bool).unwrap_or_default(),
            decryption_secret: text("/spec/decryption/secretRef/name"),
            suspended: suspended(object),
            ready: Until::Ready.is_met(Some(object)),
            message: message(object),
            revision: text("/status/lastAppliedRevision"),
        }
    }

    /// Whether it applies what is wanted.
    pub fn applies(&self, sync: &FluxSync) -> bool {
        let wanted = Self::read(&sync.kustomization());
        (&self.path, &self.source, &self.interval, self.prune, &self.decryption_secret)
            == (&wanted.path, &wanted.source, &wanted.interval, wanted.prune, &wanted.decryption_secret)
    }
}

fn suspended(object: &Object) -> bool {
    object.at("/spec/suspend").and_then(Value::as_bool).unwrap_or_default()
}

fn message(object: &Object) -> Option<String> {
    object.condition("Ready")?.get("message")?.as_str().map(str::to_owned)
}
