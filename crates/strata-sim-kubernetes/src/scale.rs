//! The `scale` subresource: how many replicas there are to be.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::failure::{Outcome, not_allowed};
use super::handle::{Ask, Reply};
use super::object::{int, member, metadata, name, namespace, uid};
use super::patch::merge_patch;

fn of(object: &Value) -> Value {
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": { "name": name(object), "namespace": namespace(object), "uid": uid(object),
            "resourceVersion": object["metadata"]["resourceVersion"] },
        "spec": { "replicas": int(object, "/spec/replicas") },
        "status": { "replicas": int(object, "/status/replicas") },
    })
}

pub fn answer(cluster: &mut Cluster, ask: &Ask<'_>, verb: &str) -> Outcome<Reply> {
    let object = ask.object(cluster)?.clone();
    let mut scale = of(&object);
    match verb {
        "get" => return Ok(Reply::Object(200, scale)),
        "update" => scale = super::request::read(&ask.request.body)?,
        "patch" => merge_patch(&mut scale, &super::request::read(&ask.request.body)?),
        _ => return Err(not_allowed()),
    }
    let replicas = int(&scale, "/spec/replicas").max(0);
    if !ask.request.is_dry(None)? && replicas != int(&object, "/spec/replicas") {
        let generation = int(&object, "/metadata/generation") + 1;
        cluster.change(&ask.key(), |object| {
            member(object, "spec").insert("replicas".to_owned(), json!(replicas));
            metadata(object).insert("generation".to_owned(), json!(generation));
        });
    }
    let now = ask.object(cluster)?;
    Ok(Reply::Object(200, of(now)))
}
