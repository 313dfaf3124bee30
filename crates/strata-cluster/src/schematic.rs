//! Tells the image factory what is to be built into an image, and checks that it calls it the same as we do.

use http::Method;
use strata_engine::{ErrorClass, Operation, OperationContext, Outcome, ProviderError};
use strata_net::{Body, HttpClient, HttpOptions, Request};
use strata_resource::Value;
use strata_state::Action;

use crate::cluster::Cluster;
use crate::error::internal;

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    // The factory forgets nothing, and others may use the same schematic.
    if operation.action == Action::Delete {
        return Ok(Outcome::default());
    }
    let text = |field: &str| operation.spec.get(field).and_then(Value::as_text).unwrap_or_default();
    let (factory, id) = (text("factory"), text("schematic"));
    let failed = |reason: String| {
        ProviderError::new(
            ErrorClass::Unreachable,
            format!("the image factory `{factory}` does not take the schematic: {reason}"),
        )
        .hint("check that this machine reaches it, or name one that you reach in `mirrors`")
    };
    let mut options = HttpOptions::new(factory);
    options.dial = cluster.options.dial.clone();
    options.tls = cluster.options.outside_tls.clone();
    let client = HttpClient::new(options).map_err(|error| failed(error.to_string()))?;
    context.before_write()?;
    let body = Body::Bytes {
        content_type: "application/yaml".to_owned(),
        bytes: text("content").as_bytes().to_vec().into(),
    };
    let request = Request { body, ..Request::new(Method::POST, "/schematics".to_owned()) };
    let answer = client.send(&request).await.map_err(|error| failed(error.to_string()))?;
    if !(200..300).contains(&answer.status) {
        return Err(failed(format!("it answers {}", answer.status)));
    }
    let answer: serde_json::Value = serde_json::from_slice(&answer.body)
        .map_err(|error| failed(format!("its answer is no JSON: {error}")))?;
    match answer.get("id").and_then(serde_json::Value::as_str) {
        Some(named) if named == id => Ok(Outcome::default()),
        Some(other) => Err(internal(format!(
            "the image factory calls the schematic {other}, and Strata {id}: please report this"
        ))),
        None => Err(failed("its answer names no id".to_owned())),
    }
}
