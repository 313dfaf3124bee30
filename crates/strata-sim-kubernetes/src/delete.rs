//! Deleting objects: at once, after their finalizers, with or without what depends on them.

use serde_json::{Value, json};

use super::cluster::{Cluster, Moment};
use super::failure::{Outcome, bad_request, conflict};
use super::handle::{Ask, Reply};
use super::object::{finalizers, is_terminating, metadata, name, text, uid};
use super::resource::Resource;

/// What a client says about a deletion, in the body or in the query.
fn options(ask: &Ask<'_>) -> Outcome<Value> {
    let mut options = if ask.request.body.is_empty() {
        json!({})
    } else {
        ask.request.object("application/json, application/yaml")?
    };
    for key in ["propagationPolicy", "gracePeriodSeconds"] {
        if let Some(value) = ask.request.query.get(key) {
            options[key] = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        }
    }
    match options["propagationPolicy"].as_str() {
        None | Some("Background" | "Foreground" | "Orphan") => Ok(options),
        Some(other) => Err(bad_request(format!("invalid propagationPolicy {other:?}"))),
    }
}

pub fn delete(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let options = options(ask)?;
    let object = ask.object(cluster)?.clone();
    for (key, named) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let wanted = text(&options, &format!("/preconditions/{key}"));
        let there = text(&object, &format!("/metadata/{key}"));
        if !wanted.is_empty() && wanted != there {
            let why = format!(
                "Precondition failed: {named} in precondition: {wanted}, {named} in object meta: {there}"
            );
            return Err(conflict(&ask.resource, ask.name(), &why));
        }
    }
    if ask.request.is_dry(Some(&options))? {
        return Ok(Reply::Object(200, success(&ask.resource, &object)));
    }
    let left = remove(cluster, &ask.resource, &ask.key(), &options, &ask.moment);
    Ok(Reply::Object(
        200,
        match left {
            Some(terminating) => ask.shown(terminating),
            None => success(&ask.resource, &object),
        },
    ))
}

pub fn delete_collection(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let options = options(ask)?;
    let found = super::read::selected(cluster, ask)?;
    let keys: Vec<String> = found.iter().map(|(key, _)| (*key).to_owned()).collect();
    let items: Vec<Value> = found.iter().map(|(_, object)| (*object).clone()).collect();
    if !ask.request.is_dry(Some(&options))? {
        for key in keys {
            remove(cluster, &ask.resource, &key, &options, &ask.moment);
        }
    }
    Ok(Reply::Object(
        200,
        json!({
            "kind": format!("{}List", ask.resource.kind), "apiVersion": ask.resource.api_version(),
            "metadata": { "resourceVersion": cluster.store.revision().to_string() }, "items": items,
        }),
    ))
}

/// Removes an object, or lets it terminate; gives what is left of it.
pub fn remove(
    cluster: &mut Cluster,
    resource: &Resource,
    key: &str,
    options: &Value,
    moment: &Moment,
) -> Option<Value> {
    let object = cluster.store.get(key)?.clone();
    let orphan = options["propagationPolicy"] == "Orphan";
    let foreground = options["propagationPolicy"] == "Foreground";
    if orphan {
        release_dependents(cluster, uid(&object));
    }
    let grace = options["gracePeriodSeconds"].as_i64();
    let namespace = resource.plural == "namespaces" && resource.group.is_empty();
    // A kubelet takes its pods down; nobody waits for one that was never placed.
    let by_kubelet =
        resource.plural == "pods" && grace != Some(0) && !text(&object, "/spec/nodeName").is_empty();
    let waits_for_dependents = foreground && has_dependents(cluster, uid(&object));
    if finalizers(&object).is_empty() && !namespace && !by_kubelet && !waits_for_dependents {
        cluster.store.remove(key);
        return None;
    }
    if is_terminating(&object) && !waits_for_dependents {
        return Some(object);
    }
    let mut object = object;
    let meta = metadata(&mut object);
    meta.entry("deletionTimestamp").or_insert(json!(moment.text()));
    meta.insert(
        "deletionGracePeriodSeconds".to_owned(),
        json!(if by_kubelet { grace.unwrap_or(30) } else { 0 }),
    );
    if waits_for_dependents {
        let list = meta.entry("finalizers").or_insert(json!([]));
        if let Value::Array(list) = list
            && !list.iter().any(|f| f == "foregroundDeletion")
        {
            list.push(json!("foregroundDeletion"));
        }
    }
    if namespace {
        object["status"] = json!({ "phase": "Terminating" });
    }
    Some(cluster.store.put(key, object))
}

pub fn is_owned_by(object: &Value, owner: &str) -> bool {
    super::object::list(object, "/metadata/ownerReferences").iter().any(|r| r["uid"] == owner)
}

pub fn has_dependents(cluster: &Cluster, owner: &str) -> bool {
    cluster.store.all().any(|(_, object)| is_owned_by(object, owner))
}

fn release_dependents(cluster: &mut Cluster, owner: &str) {
    let keys: Vec<String> = cluster
        .store
        .all()
        .filter(|(_, object)| is_owned_by(object, owner))
        .map(|(key, _)| key.to_owned())
        .collect();
    for key in keys {
        cluster.change(&key, |object| {
            let meta = metadata(object);
            if let Some(Value::Array(list)) = meta.get_mut("ownerReferences") {
                list.retain(|r| r["uid"] != owner);
            }
            super::object::drop_empty(meta, "ownerReferences");
        });
    }
}

fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({ "name": name(object), "kind": resource.plural, "uid": uid(object) });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
