//! Objects whose owners are gone, and owners that wait for their dependents.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::object::{finalizers, is_terminating, list, metadata, namespace, uid};
use crate::cluster::{Cluster, Moment};
use crate::delete::{has_dependents, remove};
use crate::resource::Resource;

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let uids: BTreeSet<String> = cluster.store.all().map(|(_, object)| uid(object).to_owned()).collect();
    let dying: BTreeSet<String> = cluster
        .store
        .all()
        .filter(|(_, o)| is_terminating(o) && finalizers(o).iter().any(|f| f == "foregroundDeletion"))
        .map(|(_, object)| uid(object).to_owned())
        .collect();
    let orphans: Vec<(String, String)> = cluster
        .store
        .all()
        .filter(|(_, object)| !is_terminating(object))
        .filter(|(_, object)| {
            let owners = list(object, "/metadata/ownerReferences");
            let lives = |r: &Value| r["uid"].as_str().is_some_and(|u| uids.contains(u) && !dying.contains(u));
            !owners.is_empty() && !owners.iter().any(lives)
        })
        .map(|(key, object)| (key.to_owned(), namespace(object).to_owned()))
        .collect();
    for (key, _) in orphans {
        if let Some(resource) = resource_of(cluster, &key) {
            remove(cluster, &resource, &key, &json!({ "propagationPolicy": "Background" }), moment);
        }
    }
    let waiting: Vec<(String, String)> = cluster
        .store
        .all()
        .filter(|(_, object)| dying.contains(uid(object)))
        .map(|(key, object)| (key.to_owned(), uid(object).to_owned()))
        .collect();
    for (key, owner) in waiting {
        if has_dependents(cluster, &owner) {
            continue;
        }
        cluster.change(&key, |object| {
            let meta = metadata(object);
            if let Some(Value::Array(list)) = meta.get_mut("finalizers") {
                list.retain(|f| f != "foregroundDeletion");
            }
            super::super::object::drop_empty(meta, "finalizers");
        });
        if cluster.store.get(&key).is_some_and(|object| finalizers(object).is_empty()) {
            cluster.store.remove(&key);
        }
    }
}

/// The type of the object with that key.
pub fn resource_of(cluster: &Cluster, key: &str) -> Option<Resource> {
    let mut parts = key.split('/');
    let (group, plural) = (parts.next()?, parts.next()?);
    cluster.resources().find(|r| r.group == group && r.plural == plural)
}
