//! As much OpenAPI as `kubectl` needs to leave the checking of fields to the server: which types can be patched, and that patches
//! take `fieldValidation`. There are no schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cluster::Cluster;
use super::resource::Resource;

fn root(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

/// Where the document of each group and version is.
pub fn index(cluster: &Cluster) -> Value {
    let roots: BTreeMap<String, Value> = cluster
        .resources()
        .map(|resource| root(&resource))
        .map(|root| (root.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{root}?hash=sim") })))
        .collect();
    json!({ "paths": roots })
}

/// The document of one group and version; none if it is not served.
pub fn document(cluster: &Cluster, wanted: &str) -> Option<Value> {
    let mut paths = Map::new();
    for resource in cluster.resources().filter(|resource| root(resource) == wanted) {
        let namespace = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
        let patch = json!({
            "operationId": format!("patch{}", resource.kind),
            "parameters": [{ "name": "fieldValidation", "in": "query", "schema": { "type": "string" } }],
            "responses": { "200": { "description": "OK" } },
            "x-kubernetes-group-version-kind": {
                "group": resource.group, "version": resource.version, "kind": resource.kind,
            },
        });
        paths.insert(format!("/{wanted}/{namespace}{}/{{name}}", resource.plural), json!({ "patch": patch }));
    }
    let info = json!({ "title": "Kubernetes", "version": super::discovery::server_version(cluster) });
    (!paths.is_empty())
        .then(|| json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": { "schemas": {} } }))
}
