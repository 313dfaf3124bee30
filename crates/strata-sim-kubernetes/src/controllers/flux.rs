//! Flux' controllers: sources are fetched, kustomizations and releases applied, once the controller for them runs. Nothing is
//! really fetched or applied; what is looked at is whether everything that an object names is there.

use serde_json::{Value, json};
use strata_sim_core::matches_glob;

use super::super::object::{
    has_condition, is_terminating, list, member, metadata, name, namespace, set_condition, text, uid,
};
use crate::cluster::{Cluster, Moment};
use crate::resource::{Resource, of};

const FINALIZER: &str = "finalizers.fluxcd.io";
/// Seconds that a reconciliation takes.
const RECONCILE: f64 = 2.0;

/// What becomes of an object.
struct Verdict {
    ready: bool,
    reason: &'static str,
    message: String,
    revision: Option<String>,
}

fn good(reason: &'static str, message: String, revision: Option<String>) -> Verdict {
    Verdict { ready: true, reason, message, revision }
}

fn bad(reason: &'static str, message: String) -> Verdict {
    Verdict { ready: false, reason, message, revision: None }
}

/// The controller that looks after a type.
fn controller(resource: &Resource) -> Option<&'static str> {
    Some(match resource.group.as_str() {
        "source.toolkit.fluxcd.io" => "source-controller",
        "kustomize.toolkit.fluxcd.io" => "kustomize-controller",
        "helm.toolkit.fluxcd.io" => "helm-controller",
        "notification.toolkit.fluxcd.io" if resource.plural == "receivers" => "notification-controller",
        "image.toolkit.fluxcd.io" => "image-reflector-controller",
        _ => return None,
    })
}

fn is_running(cluster: &Cluster, controller: &str) -> bool {
    let mut deployments = cluster.store.list("apps/deployments/");
    deployments.any(|(_, d)| name(d) == controller && has_condition(d, "Available", "True"))
}

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let types: Vec<Resource> = cluster.resources().filter(|r| r.custom && controller(r).is_some()).collect();
    for resource in types {
        let running = controller(&resource).is_some_and(|c| is_running(cluster, c));
        let objects: Vec<(String, Value)> =
            cluster.store.list(&resource.prefix()).map(|(key, o)| (key.to_owned(), o.clone())).collect();
        for (key, object) in objects {
            if running && text(&object, "/apiVersion") == resource.api_version() {
                reconcile_object(cluster, &resource, &key, &object, moment);
            }
        }
    }
}

fn reconcile_object(cluster: &mut Cluster, resource: &Resource, key: &str, object: &Value, moment: &Moment) {
    if is_terminating(object) {
        if cluster.is_due(&format!("finalize/{}", uid(object)), RECONCILE, moment) {
            cluster.change(key, |object| {
                let meta = metadata(object);
                if let Some(Value::Array(list)) = meta.get_mut("finalizers") {
                    list.retain(|f| f != FINALIZER);
                }
                super::super::object::drop_empty(meta, "finalizers");
            });
            if cluster.store.get(key).is_some_and(|o| super::super::object::finalizers(o).is_empty()) {
                cluster.store.remove(key);
            }
        }
        return;
    }
    if object["spec"]["suspend"] == true {
        return;
    }
    let verdict = judge(cluster, resource, object);
    let generation = object["metadata"]["generation"].clone();
    let said = list(object, "/status/conditions").iter().find(|c| c["type"] == "Ready");
    let same = said
        .is_some_and(|c| c["message"] == verdict.message.as_str() && c["reason"] == verdict.reason)
        && object["status"]["observedGeneration"] == generation;
    let what = format!("reconcile/{}/{generation}/{}", uid(object), verdict.message);
    if same || !cluster.is_due(&what, RECONCILE, moment) {
        return;
    }
    let now = moment.text();
    let source = resource.group == "source.toolkit.fluxcd.io";
    cluster.change(key, |object| {
        let meta = metadata(object);
        if let Value::Array(list) = meta.entry("finalizers").or_insert(json!([]))
            && !list.iter().any(|f| f == FINALIZER)
        {
            list.push(json!(FINALIZER));
        }
        set_condition(object, "Ready", if verdict.ready { "True" } else { "False" }, verdict.reason, &verdict.message, &now);
        let path = format!("{}/{}/{}", resource.singular, namespace(object), name(object));
        let status = member(object, "status");
        status.insert("observedGeneration".to_owned(), generation.clone());
        if let Some(revision) = &verdict.revision {
            if source {
                status.insert("artifact".to_owned(), json!({
                    "revision": revision, "path": format!("{path}/artifact.tar.gz"), "lastUpdateTime": now,
                    "url": format!("http://source-controller.flux-system.svc.cluster.local./{path}/artifact.tar.gz"),
                    "digest": format!("sha256:{}", revision.rsplit(':').next().unwrap_or_default().repeat(2).get(..64).unwrap_or_default()),
                }));
            } else {
                status.insert("lastAppliedRevision".to_owned(), json!(revision));
                status.insert("lastAttemptedRevision".to_owned(), json!(revision));
            }
        }
    });
}

fn judge(cluster: &Cluster, resource: &Resource, object: &Value) -> Verdict {
    let here = namespace(object);
    let secret = |name: &str| cluster.store.get(&of("secrets").key(here, name));
    match resource.kind.as_str() {
        "Kustomization" => {
            let key = text(object, "/spec/decryption/secretRef/name");
            if !key.is_empty() && secret(key).is_none() {
                let message =
                    format!("cannot get decryption Secret '{here}/{key}': secrets \"{key}\" not found");
                return bad("BuildFailed", message);
            }
            for wanted in list(object, "/spec/dependsOn") {
                let there = find(cluster, "kustomize.toolkit.fluxcd.io", "kustomizations", wanted, here);
                if !there.is_some_and(|o| has_condition(o, "Ready", "True")) {
                    let message = format!("dependency '{here}/{}' is not ready", text(wanted, "/name"));
                    return bad("DependencyNotReady", message);
                }
            }
            match source(cluster, &object["spec"]["sourceRef"], here) {
                Ok(revision) => {
                    good("ReconciliationSucceeded", format!("Applied revision: {revision}"), Some(revision))
                }
                Err(message) => bad("ArtifactFailed", message),
            }
        }
        "HelmRelease" => {
            let reference = object.pointer("/spec/chart/spec/sourceRef").or(object.pointer("/spec/chartRef"));
            match source(cluster, reference.unwrap_or(&Value::Null), here) {
                Ok(revision) => {
                    let release = name(object);
                    good(
                        "InstallSucceeded",
                        format!("Helm install succeeded for release {here}/{release}.v1"),
                        Some(revision),
                    )
                }
                Err(message) => bad("SourceNotReady", message),
            }
        }
        _ => {
            let key = text(object, "/spec/secretRef/name");
            let url = text(object, "/spec/url");
            if !key.is_empty() {
                let Some(secret) = secret(key) else {
                    let message = format!("failed to get secret '{here}/{key}': secrets \"{key}\" not found");
                    return bad("AuthenticationOptionsFailed", message);
                };
                let has = |field: &str| secret["data"].get(field).is_some();
                if url.starts_with("ssh://") && !(has("identity") && has("known_hosts")) {
                    let message = "failed to configure authentication options: invalid 'ssh' auth option: 'identity' and 'known_hosts' are required";
                    return bad("AuthenticationOptionsFailed", message.to_owned());
                }
            } else if url.starts_with("ssh://") {
                let message = "failed to configure authentication options: 'ssh' needs a secret";
                return bad("AuthenticationOptionsFailed", message.to_owned());
            }
            if let Some((_, error)) =
                cluster.orders.bad_sources.iter().find(|(glob, _)| matches_glob(glob, url))
            {
                return bad(
                    "GitOperationFailed",
                    format!("failed to checkout and determine revision: {error}"),
                );
            }
            let branch = ["branch", "tag", "semver"].iter().find_map(|r| object["spec"]["ref"][r].as_str());
            let branch = branch.unwrap_or("latest");
            let digest = cluster.derive(&Moment { ms: 0, second: 0.0, seed: 0 }, &["revision", url, branch]);
            let revision = format!("{branch}@sha1:{}", hex::encode(&digest[..20]));
            good("Succeeded", format!("stored artifact for revision '{revision}'"), Some(revision))
        }
    }
}

fn find<'c>(
    cluster: &'c Cluster,
    group: &str,
    plural: &str,
    reference: &Value,
    here: &str,
) -> Option<&'c Value> {
    let there = text(reference, "/namespace");
    let namespace = if there.is_empty() { here } else { there };
    cluster.store.get(&format!("{group}/{plural}/{namespace}/{}", text(reference, "/name")))
}

/// The revision of a source that is ready.
fn source(cluster: &Cluster, reference: &Value, here: &str) -> Result<String, String> {
    let plural = match text(reference, "/kind") {
        "GitRepository" => "gitrepositories",
        "OCIRepository" => "ocirepositories",
        "HelmRepository" => "helmrepositories",
        "HelmChart" => "helmcharts",
        "Bucket" => "buckets",
        other => return Err(format!("source kind '{other}' not supported")),
    };
    let wanted = format!("{} '{here}/{}'", text(reference, "/kind"), text(reference, "/name"));
    let found = find(cluster, "source.toolkit.fluxcd.io", plural, reference, here);
    let Some(found) = found else { return Err(format!("Source not found: {wanted}")) };
    if !has_condition(found, "Ready", "True") {
        return Err("Source artifact not found, retrying in 30s".to_owned());
    }
    Ok(text(found, "/status/artifact/revision").to_owned())
}
