//! Where the objects of a kind live: asked from the server once for each group and version, and again for kinds it did not have.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use strata_net::Request;

use super::KubeClient;
use crate::{KubeError, ObjectRef, Trouble};

/// Names of objects have letters, digits and these.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b':');

#[derive(Default)]
pub(super) struct Discovery {
    /// By `group/version` and kind.
    known: Mutex<HashMap<(String, String), Resource>>,
}

#[derive(Clone)]
struct Resource {
    /// The name in paths: `deployments`.
    plural: String,
    namespaced: bool,
}

impl KubeClient {
    /// The path of an object. One without a namespace that needs one is in `default`, as with `kubectl`.
    pub(crate) async fn path_of(&self, what: &ObjectRef) -> Result<String, KubeError> {
        let resource = self.resource(&what.api_version, &what.kind).await?;
        let namespace =
            resource.namespaced.then(|| what.namespace.clone().unwrap_or_else(|| "default".to_owned()));
        let collection = resource.collection(&what.api_version, namespace.as_deref());
        Ok(format!("{collection}/{}", encoded(&what.name)))
    }

    /// The path of all objects of a kind, in one namespace or in all.
    pub(crate) async fn collection_path(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<String, KubeError> {
        let resource = self.resource(api_version, kind).await?;
        Ok(resource.collection(api_version, namespace.filter(|_| resource.namespaced)))
    }

    /// Whether the server has this kind now.
    pub async fn has_kind(&self, api_version: &str, kind: &str) -> Result<bool, KubeError> {
        match self.resource(api_version, kind).await {
            Ok(_) => Ok(true),
            Err(error) if error.trouble() == Trouble::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, KubeError> {
        let wanted = (api_version.to_owned(), kind.to_owned());
        if let Some(resource) = self.discovery.get(&wanted) {
            return Ok(resource);
        }
        let action = format!("find the kind `{kind}` of `{api_version}`");
        let unknown = || {
            KubeError::new(Trouble::NotFound, action.as_str(), self.endpoint(), "the server has no such kind")
                .with_hint("it comes with a CustomResourceDefinition: install that first, or check version and spelling")
        };
        let answer = self.read(&action, Request::new(Method::GET, root(api_version))).await;
        let answer = answer.map_err(|error| match error.trouble() {
            Trouble::NotFound => unknown(),
            _ => error,
        })?;
        self.discovery.learn(api_version, &answer);
        self.discovery.get(&wanted).ok_or_else(unknown)
    }
}

impl Discovery {
    fn get(&self, wanted: &(String, String)) -> Option<Resource> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(wanted).cloned()
    }

    fn learn(&self, api_version: &str, answer: &Value) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for resource in answer.get("resources").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| resource.get(key).and_then(Value::as_str);
            let (Some(plural), Some(kind)) = (text("name"), text("kind")) else { continue };
            // `pods/eviction` and the like belong to a resource and are none.
            if plural.contains('/') {
                continue;
            }
            let namespaced = resource.get("namespaced").and_then(Value::as_bool).unwrap_or_default();
            let resource = Resource { plural: plural.to_owned(), namespaced };
            known.insert((api_version.to_owned(), kind.to_owned()), resource);
        }
    }
}

impl Resource {
    fn collection(&self, api_version: &str, namespace: Option<&str>) -> String {
        let root = root(api_version);
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{}/{}", encoded(namespace), encoded(&self.plural)),
            None => format!("{root}/{}", encoded(&self.plural)),
        }
    }
}

/// The oldest group has no name and a path of its own.
fn root(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/apis/{}/{}", encoded(group), encoded(version)),
        None => format!("/api/{}", encoded(api_version)),
    }
}

pub(crate) fn encoded(segment: &str) -> String {
    utf8_percent_encode(segment, SEGMENT).to_string()
}
