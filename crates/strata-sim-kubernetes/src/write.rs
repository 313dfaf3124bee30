//! Creating, replacing and patching objects.

use serde_json::{Value, json};

use super::cluster::{Cluster, has_generation};
use super::failure::{
    Cause, Failure, Outcome, already_exists, bad_request, invalid, not_found, stale, unsupported,
};
use super::handle::{Ask, Reply};
use super::managers::{self, Writer};
use super::object::{finalizers, is_terminating, metadata, name, namespace, text};
use super::shape::Shape;
use super::{defaults, patch, schema, validate};

const BODIES: &str = "application/json, application/yaml";

pub fn create(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let mut object = ask.request.object(BODIES)?;
    check_type(ask, &object)?;
    if name(&object).is_empty() {
        let prefix = text(&object, "/metadata/generateName").to_owned();
        if !prefix.is_empty() {
            let number = cluster.store.revision().to_string();
            let suffix =
                cluster.suffix(&ask.moment, &[&ask.resource.plural, &ask.namespace, &prefix, &number], 5);
            metadata(&mut object).insert("name".to_owned(), json!(format!("{prefix}{suffix}")));
        }
    }
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        return Err(bad_request("resourceVersion should not be set on objects to be created"));
    }
    let key = ask.resource.key(&ask.namespace, name(&object));
    if cluster.store.get(&key).is_some() {
        return Err(already_exists(&ask.resource, name(&object)));
    }
    let dry = ask.request.is_dry(None)?;
    let created = admit(cluster, ask, None, object, &Track::Update, dry)?;
    Ok(Reply::Object(201, created))
}

pub fn update(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let object = ask.request.object(BODIES)?;
    check_type(ask, &object)?;
    check_name(ask, &object)?;
    let dry = ask.request.is_dry(None)?;
    match cluster.store.get(&ask.key()).cloned() {
        Some(old) => {
            check_version(ask, &old, &object)?;
            let updated = admit(cluster, ask, Some(&old), object, &Track::Update, dry)?;
            Ok(Reply::Object(200, updated))
        }
        None => Err(not_found(&ask.resource, ask.name())),
    }
}

pub fn patch(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let custom = ask.resource.custom;
    let accepted = if custom {
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    } else {
        "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
    };
    let essence = ask.request.essence();
    if essence == "application/apply-patch+yaml" {
        return apply(cluster, ask);
    }
    let old = ask.object(cluster)?.clone();
    let patch = super::request::read(&ask.request.body)?;
    let mut new = old.clone();
    match essence {
        "application/json-patch+json" => patch::json_patch(&mut new, &patch)?,
        "application/merge-patch+json" => patch::merge_patch(&mut new, &patch),
        "application/strategic-merge-patch+json" if !custom => {
            patch::strategic_merge(&mut new, &patch, Shape::builtin());
        }
        other => return Err(unsupported(other, accepted)),
    }
    check_name(ask, &new)?;
    check_version(ask, &old, &new)?;
    let dry = ask.request.is_dry(None)?;
    let patched = admit(cluster, ask, Some(&old), new, &Track::Update, dry)?;
    Ok(Reply::Object(200, patched))
}

fn apply(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let config = super::request::read(&ask.request.body)?;
    let required = |field: &str, why: &str| {
        let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {field}: Required value: {why}");
        Failure::new(422, "Invalid", message)
    };
    if ask.request.query.get("fieldManager").is_none() {
        return Err(required("fieldManager", "is required for apply patch"));
    }
    check_type(ask, &config)?;
    check_name(ask, &config)?;
    if config.pointer("/metadata/managedFields").is_some_and(|m| !m.is_null()) {
        return Err(bad_request("metadata.managedFields must be nil"));
    }
    let old = cluster.store.get(&ask.key()).cloned();
    match &old {
        Some(old) => check_version(ask, old, &config)?,
        None if ask.place.sub.is_some() => return Err(not_found(&ask.resource, ask.name())),
        None if !text(&config, "/metadata/resourceVersion").is_empty()
            || !text(&config, "/metadata/uid").is_empty() =>
        {
            return Err(stale(&ask.resource, ask.name()));
        }
        None => {}
    }
    let dry = ask.request.is_dry(None)?;
    let track = Track::Apply { force: ask.request.query.flag("force") };
    let code = if old.is_some() { 200 } else { 201 };
    let applied = admit(cluster, ask, old.as_ref(), config, &track, dry)?;
    Ok(Reply::Object(code, applied))
}

/// How fields find their owner.
enum Track {
    Update,
    Apply { force: bool },
}

/// Everything between what a client sent and what is kept.
fn admit(
    cluster: &mut Cluster,
    ask: &Ask<'_>,
    old: Option<&Value>,
    mut sent: Value,
    track: &Track,
    dry: bool,
) -> Outcome<Value> {
    let resource = &ask.resource;
    if resource.namespaced {
        let given = namespace(&sent);
        if !given.is_empty() && given != ask.namespace {
            return Err(bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata(&mut sent).insert("namespace".to_owned(), json!(ask.namespace));
    } else {
        metadata(&mut sent).shift_remove("namespace");
    }
    part(ask, old, &mut sent, matches!(track, Track::Apply { .. }));
    let rules = cluster.schema(resource);
    if let Some(rules) = &rules {
        let mut unknown = Vec::new();
        schema::prune(&mut sent, rules, "", true, &mut unknown);
        if !unknown.is_empty() && ask.request.query.get("fieldValidation") == Some("Strict") {
            let list: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
            return Err(bad_request(format!("strict decoding error: {}", list.join(", "))));
        }
    }
    let shape = if resource.custom { Shape::custom(rules.as_ref()) } else { Shape::builtin() };
    let (now, api_version) = (ask.moment.text(), resource.api_version());
    let sub = ask.place.sub.as_deref();
    let writer =
        Writer { manager: ask.request.manager(), api_version: &api_version, subresource: sub, now: &now };
    let mut new = match track {
        Track::Apply { force } => managers::apply(old, &sent, shape, &writer, *force)?,
        Track::Update => sent,
    };
    keep_system_metadata(old, &mut new);
    if sub.is_none() {
        fill(cluster, ask, &mut new, rules.as_ref());
    }
    if matches!(track, Track::Update) {
        managers::after_update(old, &mut new, shape, &writer);
    }
    if let Some(rules) = &rules {
        let mut causes: Vec<Cause> = Vec::new();
        schema::check(&new, rules, "", &mut causes);
        if !causes.is_empty() {
            return Err(invalid(resource, name(&new), &causes));
        }
    }
    validate::check(resource, old, &new)?;
    if old.is_none() && resource.namespaced {
        let found = cluster.store.get(&super::resource::of("namespaces").key("", &ask.namespace));
        validate::check_namespace(found, &ask.namespace, resource, name(&new))?;
    }
    Ok(ask.shown(keep(cluster, ask, old, new, dry)))
}

/// Status and the rest are written apart: each write leaves the other part as it is.
fn part(ask: &Ask<'_>, old: Option<&Value>, sent: &mut Value, apply: bool) {
    if !ask.resource.has_status() {
        return;
    }
    let on_status = ask.place.sub.as_deref() == Some("status");
    let Value::Object(map) = sent else { return };
    if on_status {
        let status = map.shift_remove("status");
        let identity = map.get("metadata").cloned();
        if apply {
            map.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind"));
            let identity = identity.unwrap_or_default();
            map.insert(
                "metadata".to_owned(),
                json!({ "name": identity["name"], "namespace": identity["namespace"] }),
            );
        } else if let Some(Value::Object(old)) = old {
            *map = old.clone();
        }
        match status {
            Some(status) => map.insert("status".to_owned(), status),
            None => map.shift_remove("status"),
        };
    } else {
        map.shift_remove("status");
        if let (false, Some(status)) = (apply, old.and_then(|old| old.get("status"))) {
            map.insert("status".to_owned(), status.clone());
        }
    }
}

fn keep_system_metadata(old: Option<&Value>, new: &mut Value) {
    const KEPT: &[&str] = &[
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ];
    let meta = metadata(new);
    for key in KEPT {
        match old.and_then(|old| old["metadata"].get(key)) {
            Some(value) => meta.insert((*key).to_owned(), value.clone()),
            None => meta.shift_remove(*key),
        };
    }
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        super::object::drop_empty(meta, key);
    }
}

fn fill(cluster: &Cluster, ask: &Ask<'_>, new: &mut Value, rules: Option<&Value>) {
    defaults::fill(&ask.resource, new, &ask.moment, cluster);
    if let Some(rules) = rules {
        schema::fill(new, rules);
    }
}

/// Stores what changed; an object whose last finalizer went while it terminates is gone.
fn keep(cluster: &mut Cluster, ask: &Ask<'_>, old: Option<&Value>, mut new: Value, dry: bool) -> Value {
    let resource = &ask.resource;
    let key = resource.key(&ask.namespace, name(&new));
    let Some(old) = old else {
        cluster.stamp(resource, &key, &mut new, &ask.moment, dry);
        return if dry { new } else { cluster.store.put(&key, new) };
    };
    if has_generation(resource)
        && ask.place.sub.is_none()
        && wanted(resource.custom, old) != wanted(resource.custom, &new)
    {
        let generation = super::object::int(old, "/metadata/generation") + 1;
        metadata(&mut new).insert("generation".to_owned(), json!(generation));
    }
    if new == *old || dry {
        return new;
    }
    let stored = cluster.store.put(&key, new);
    if is_terminating(&stored) && finalizers(&stored).is_empty() && resource.plural != "namespaces" {
        cluster.store.remove(&key);
    }
    stored
}

/// The part of an object whose changes are counted.
fn wanted(custom: bool, object: &Value) -> Value {
    if !custom {
        return object["spec"].clone();
    }
    let mut object = object.clone();
    if let Value::Object(map) = &mut object {
        map.shift_remove("metadata");
        map.shift_remove("status");
        map.shift_remove("apiVersion");
    }
    object
}

fn check_type(ask: &Ask<'_>, object: &Value) -> Outcome<()> {
    let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
    let expected = ask.resource.api_version();
    if kind.is_empty() || version.is_empty() {
        return Err(bad_request(format!(
            "Object 'Kind' is missing in '{{\"metadata\":{{\"name\":{:?}}}}}'",
            name(object)
        )));
    }
    if version != expected || kind != ask.resource.kind {
        return Err(bad_request(format!(
            "the API version in the data ({version}, Kind={kind}) does not match the expected API version ({expected}, Kind={})",
            ask.resource.kind
        )));
    }
    Ok(())
}

fn check_name(ask: &Ask<'_>, object: &Value) -> Outcome<()> {
    let (given, asked) = (name(object), ask.name());
    if given.is_empty() || given == asked {
        return Ok(());
    }
    Err(bad_request(format!("the name of the object ({given}) does not match the name on the URL ({asked})")))
}

/// Optimistic concurrency: what the client says it read must be what is there.
fn check_version(ask: &Ask<'_>, old: &Value, new: &Value) -> Outcome<()> {
    let there = |key: &str| text(old, &format!("/metadata/{key}")).to_owned();
    let given = |key: &str| text(new, &format!("/metadata/{key}")).to_owned();
    if !given("resourceVersion").is_empty() && given("resourceVersion") != there("resourceVersion") {
        return Err(stale(&ask.resource, ask.name()));
    }
    if !given("uid").is_empty() && given("uid") != there("uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            given("uid"),
            there("uid")
        );
        return Err(super::failure::conflict(&ask.resource, ask.name(), &why));
    }
    Ok(())
}
