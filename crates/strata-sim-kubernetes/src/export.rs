//! Clusters as JSON: each object's identity and a digest of what it wants, in a stable order. No times, no revisions, no uids,
//! nothing that controllers made, and of secrets only the digests of their values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::cluster::Cluster;
use super::object::{list, name, namespace};
use crate::Kubernetes;

impl Kubernetes {
    /// The clusters that there are: those that machines make, and those that tests put up.
    pub fn export(&self) -> Value {
        let clusters = self.clusters.iter();
        let shown = clusters.filter(|(id, cluster)| cluster.orders.standalone || self.told.contains_key(*id));
        json!(shown.map(|(_, cluster)| export(cluster)).collect::<Vec<_>>())
    }
}

fn export(cluster: &Cluster) -> Value {
    let objects: Vec<Value> = cluster
        .store
        .all()
        .filter(|(key, object)| is_wanted(key, object))
        .map(|(_, object)| one(object))
        .collect();
    json!({ "name": cluster.facts.name, "api": cluster.facts.api_up, "objects": objects })
}

/// What someone asked for, and nodes; not what followed from it.
fn is_wanted(key: &str, object: &Value) -> bool {
    const FOLLOWS: &[&str] = &["/events/", "coordination.k8s.io/", "discovery.k8s.io/", "/endpoints/"];
    let controlled = list(object, "/metadata/ownerReferences").iter().any(|r| r["controller"] == true);
    !controlled && !FOLLOWS.iter().any(|prefix| key.starts_with(prefix))
}

fn one(object: &Value) -> Value {
    let mut shown =
        json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "name": name(object) });
    if !namespace(object).is_empty() {
        shown["namespace"] = json!(namespace(object));
    }
    if object["kind"] == "Secret" && object["apiVersion"] == "v1" {
        let values = object["data"].as_object().into_iter().flatten();
        let digests: Map<String, Value> = values
            .map(|(key, value)| {
                let bytes = STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
                (key.clone(), json!(format!("sha256:{}", hex::encode(Sha256::digest(bytes)))))
            })
            .collect();
        shown["type"] = object["type"].clone();
        shown["data"] = Value::Object(digests);
    } else {
        shown["digest"] = json!(hex::encode(Sha256::digest(sorted(&wanted(object)).to_string())));
    }
    if object["kind"] == "Node" {
        shown["unschedulable"] = json!(object["spec"]["unschedulable"] == true);
        shown["ready"] = json!(super::object::has_condition(object, "Ready", "True"));
    }
    shown
}

/// Everything but the server's part of the metadata and the status.
fn wanted(object: &Value) -> Value {
    let mut wanted = object.clone();
    if let Value::Object(map) = &mut wanted {
        map.shift_remove("status");
        map.insert(
            "metadata".to_owned(),
            json!({
                "labels": object["metadata"]["labels"], "annotations": object["metadata"]["annotations"],
            }),
        );
    }
    wanted
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut map: Map<String, Value> = map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
            map.sort_keys();
            Value::Object(map)
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
