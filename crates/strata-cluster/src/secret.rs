//! Kubernetes secrets that are there before Flux is.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_kubernetes::{ApplyOptions, BootstrapSecret, Object, ObjectRef};
use strata_resource::{Secret, Spec, Value};
use strata_secret::{SecretBytes, SecretString};
use strata_state::Action;

use crate::cluster::Cluster;
use crate::error::{internal, kube};
use crate::wait::permit;

pub(crate) fn reference(spec: &Spec) -> ObjectRef {
    let text = |field: &str| spec.get(field).and_then(Value::as_text).unwrap_or_default();
    ObjectRef::namespaced("v1", "Secret", text("namespace"), text("secret"))
}

/// What is live, in the form of a spec. Only the entries that are asked about: others may be somebody else's.
pub(crate) fn observed(live: &Object, asked: &[&Spec]) -> Spec {
    let asks = |key: &str| {
        asked
            .iter()
            .any(|spec| spec.get("data").and_then(Value::as_map).is_some_and(|data| data.contains_key(key)))
    };
    let mut spec = Spec::new();
    let entries = live.at("/data").and_then(serde_json::Value::as_object);
    let data: BTreeMap<String, Value> = entries
        .into_iter()
        .flatten()
        .filter(|(key, _)| asks(key))
        .filter_map(|(key, value)| Some((key.clone(), Value::Secret(Secret::new(decoded(value.as_str()?)?)))))
        .collect();
    spec.insert("data".to_owned(), Value::Map(data));
    spec.insert("type".to_owned(), Value::text(live.text("/type").unwrap_or("Opaque")));
    spec.insert("namespace".to_owned(), Value::text(live.namespace().unwrap_or_default()));
    spec.insert("secret".to_owned(), Value::text(live.name()));
    spec
}

fn decoded(base64: &str) -> Option<SecretString> {
    let bytes = SecretBytes::new(STANDARD.decode(base64).ok()?);
    bytes.into_string().ok()
}

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    let what = reference(&operation.spec);
    if operation.action == Action::Delete {
        if !cluster.options.ending {
            cluster.kube().delete(&permit(context)?, &what, None).await.map_err(kube)?;
        }
        return Ok(Outcome::default());
    }
    let text = |field: &str| operation.spec.get(field).and_then(Value::as_text).unwrap_or_default();
    let mut secret = BootstrapSecret::new(text("namespace"), text("secret"));
    for (key, value) in operation.spec.get("data").and_then(Value::as_map).into_iter().flatten() {
        let Value::Secret(value) = value else { return Err(internal(format!("`{key}` is no secret"))) };
        let plain = value.plain().ok_or_else(|| internal(format!("`{key}` is not known in this run")))?;
        secret = secret.with(key, plain.clone());
    }
    secret.tell(&cluster.options.redactor);
    cluster.kube().ensure_namespace(&permit(context)?, text("namespace")).await.map_err(kube)?;
    let mut object = secret.object().into_value();
    object["type"] = json!(text("type"));
    let object = Object::new(object).map_err(|error| internal(error.to_string()))?;
    let force = ApplyOptions { force: true, dry_run: false };
    cluster.kube().apply(&permit(context)?, &object, force).await.map_err(kube)?;
    Ok(Outcome::default())
}
