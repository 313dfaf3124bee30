//! Deployments have replica sets, replica sets, stateful sets and daemon sets have pods; each says how far it is.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::object::{
    has_condition, int, is_terminating, list, member, metadata, name, namespace, set_condition, text, uid,
};
use super::schedule::tolerates;
use crate::cluster::{Cluster, Moment};
use crate::delete::{is_owned_by, remove};
use crate::resource::{Resource, of};

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    for (key, deployment) in all(cluster, "deployments") {
        reconcile_deployment(cluster, &key, &deployment, moment);
    }
    for (key, set) in all(cluster, "replicasets") {
        reconcile_set(cluster, &key, &set, moment);
    }
    for (key, set) in all(cluster, "statefulsets") {
        reconcile_stateful_set(cluster, &key, &set, moment);
    }
    for (key, set) in all(cluster, "daemonsets") {
        reconcile_daemon_set(cluster, &key, &set, moment);
    }
}

fn all(cluster: &Cluster, plural: &str) -> Vec<(String, Value)> {
    let all = cluster.store.list(&of(plural).prefix());
    all.filter(|(_, o)| !is_terminating(o)).map(|(key, object)| (key.to_owned(), object.clone())).collect()
}

/// Objects of a type in the same namespace that this one controls.
fn owned(cluster: &Cluster, resource: &Resource, owner: &Value) -> Vec<(String, Value)> {
    let prefix = format!("{}{}/", resource.prefix(), namespace(owner));
    let all = cluster.store.list(&prefix).filter(|(_, object)| is_owned_by(object, uid(owner)));
    all.map(|(key, object)| (key.to_owned(), object.clone())).collect()
}

fn reference(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    }])
}

/// Tells templates apart.
fn fingerprint(template: &Value) -> String {
    hex::encode(Sha256::digest(template.to_string()))[..10].to_owned()
}

fn is_ready(pod: &Value) -> bool {
    has_condition(pod, "Ready", "True") && !is_terminating(pod)
}

fn reconcile_deployment(cluster: &mut Cluster, key: &str, deployment: &Value, moment: &Moment) {
    let sets = of("replicasets");
    let template = &deployment["spec"]["template"];
    let hash = fingerprint(template);
    let set_name = format!("{}-{hash}", name(deployment));
    let replicas = int(deployment, "/spec/replicas");
    let mut template = template.clone();
    label(&mut template, "pod-template-hash", &hash);
    let mut selector = deployment["spec"]["selector"].clone();
    member(&mut selector, "matchLabels").insert("pod-template-hash".to_owned(), json!(hash));
    cluster.ensure(
        &sets,
        json!({
            "metadata": { "name": set_name, "namespace": namespace(deployment),
                "labels": template["metadata"]["labels"], "ownerReferences": reference(deployment) },
            "spec": { "replicas": replicas, "selector": selector, "template": template },
        }),
        moment,
    );
    let current = sets.key(namespace(deployment), &set_name);
    let own = owned(cluster, &sets, deployment);
    let ready = own.iter().find(|(k, _)| *k == current).map_or(0, |(_, s)| int(s, "/status/readyReplicas"));
    for (set, _) in &own {
        // The old ones go when the new one stands.
        let wanted = if *set == current { Some(replicas) } else { (ready >= replicas).then_some(0) };
        if let Some(wanted) = wanted {
            cluster.change(set, |object| {
                member(object, "spec").insert("replicas".to_owned(), json!(wanted));
            });
        }
    }
    let total: i64 = own.iter().map(|(_, s)| int(s, "/status/replicas")).sum();
    let updated = own.iter().find(|(k, _)| *k == current).map_or(0, |(_, s)| int(s, "/status/replicas"));
    let ready_total: i64 = own.iter().map(|(_, s)| int(s, "/status/readyReplicas")).sum();
    let available = ready_total >= replicas - replicas / 4 && ready_total >= replicas.min(1);
    let complete = ready >= replicas && total == replicas;
    let deadline = int(deployment, "/spec/progressDeadlineSeconds").max(1);
    let stuck = !complete
        && cluster.is_due(
            &format!("progress/{}/{}", uid(deployment), int(deployment, "/metadata/generation")),
            f64::from(i32::try_from(deadline).unwrap_or(600)),
            moment,
        );
    let now = moment.text();
    cluster.change(key, |object| {
        let generation = object["metadata"]["generation"].clone();
        let status = member(object, "status");
        status.insert("observedGeneration".to_owned(), generation);
        for (field, count) in [
            ("replicas", total),
            ("updatedReplicas", updated),
            ("readyReplicas", ready_total),
            ("availableReplicas", ready_total),
            ("unavailableReplicas", (replicas - ready_total).max(0)),
        ] {
            count_or_nothing(status, field, count);
        }
        let (reason, message) = if available {
            ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        set_condition(object, "Available", if available { "True" } else { "False" }, reason, message, &now);
        let (status, reason, message) = if complete {
            (
                "True",
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{set_name}\" has successfully progressed."),
            )
        } else if stuck {
            (
                "False",
                "ProgressDeadlineExceeded",
                format!("ReplicaSet \"{set_name}\" has timed out progressing."),
            )
        } else {
            ("True", "ReplicaSetUpdated", format!("ReplicaSet \"{set_name}\" is progressing."))
        };
        set_condition(object, "Progressing", status, reason, &message, &now);
    });
}

fn count_or_nothing(status: &mut serde_json::Map<String, Value>, field: &str, count: i64) {
    if count == 0 {
        status.shift_remove(field);
    } else {
        status.insert(field.to_owned(), json!(count));
    }
}

fn label(template: &mut Value, key: &str, value: &str) {
    let meta = metadata(template);
    if let Value::Object(labels) = meta.entry("labels").or_insert(json!({})) {
        labels.insert(key.to_owned(), json!(value));
    }
}

/// A pod of a template, if its service account is there.
fn make_pod(cluster: &mut Cluster, owner: &Value, named: &str, node: Option<&str>, moment: &Moment) -> bool {
    let template = &owner["spec"]["template"];
    let mut spec = template["spec"].clone();
    let account = text(&spec, "/serviceAccountName");
    let account = if account.is_empty() { "default" } else { account }.to_owned();
    if cluster.store.get(&of("serviceaccounts").key(namespace(owner), &account)).is_none() {
        return false;
    }
    let spec_map = match &mut spec {
        Value::Object(map) => map,
        _ => return false,
    };
    spec_map.insert("serviceAccountName".to_owned(), json!(account));
    if let Some(node) = node {
        spec_map.insert("nodeName".to_owned(), json!(node));
    }
    let meta = json!({
        "name": named, "namespace": namespace(owner), "labels": template["metadata"]["labels"],
        "annotations": template["metadata"].get("annotations").cloned().unwrap_or_else(|| json!({})),
        "ownerReferences": reference(owner),
    });
    cluster.ensure(&of("pods"), json!({ "metadata": meta, "spec": spec }), moment)
}

fn reconcile_set(cluster: &mut Cluster, key: &str, set: &Value, moment: &Moment) {
    let pods = of("pods");
    let wanted = usize::try_from(int(set, "/spec/replicas")).unwrap_or_default();
    let mut own = owned(cluster, &pods, set);
    own.retain(|(_, pod)| {
        !is_terminating(pod) && !matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
    });
    own.sort_by_key(|(_, pod)| !is_ready(pod));
    for (pod, _) in own.iter().skip(wanted) {
        remove(cluster, &pods, pod, &json!({}), moment);
    }
    for _ in own.len()..wanted {
        let number = cluster.store.incarnation(&format!("pods of {key}")).to_string();
        let suffix = cluster.suffix(moment, &["pod", key, &number], 5);
        if !make_pod(cluster, set, &format!("{}-{suffix}", name(set)), None, moment) {
            break;
        }
    }
    let own = owned(cluster, &pods, set);
    let alive = own.iter().filter(|(_, pod)| !is_terminating(pod)).count();
    let ready = own.iter().filter(|(_, pod)| is_ready(pod)).count();
    cluster.change(key, |object| {
        let generation = object["metadata"]["generation"].clone();
        let status = member(object, "status");
        status.insert("observedGeneration".to_owned(), generation);
        status.insert("replicas".to_owned(), json!(alive));
        for field in ["readyReplicas", "availableReplicas"] {
            count_or_nothing(status, field, i64::try_from(ready).unwrap_or_default());
        }
    });
}

fn reconcile_stateful_set(cluster: &mut Cluster, key: &str, set: &Value, moment: &Moment) {
    let pods = of("pods");
    let wanted = int(set, "/spec/replicas");
    for index in 0..wanted {
        let pod = format!("{}-{index}", name(set));
        let there = cluster.store.get(&pods.key(namespace(set), &pod));
        if there.is_none() {
            make_pod(cluster, set, &pod, None, moment);
        }
        // One after another.
        let there = cluster.store.get(&pods.key(namespace(set), &pod));
        if !there.is_some_and(is_ready) {
            break;
        }
    }
    let own = owned(cluster, &pods, set);
    for (pod, object) in &own {
        let index = name(object).rsplit('-').next().and_then(|i| i.parse::<i64>().ok()).unwrap_or_default();
        if index >= wanted && !is_terminating(object) {
            remove(cluster, &pods, pod, &json!({}), moment);
        }
    }
    let ready = own.iter().filter(|(_, pod)| is_ready(pod)).count();
    cluster.change(key, |object| {
        let generation = object["metadata"]["generation"].clone();
        let status = member(object, "status");
        status.insert("observedGeneration".to_owned(), generation);
        for (field, count) in
            [("replicas", own.len()), ("readyReplicas", ready), ("availableReplicas", ready)]
        {
            status.insert(field.to_owned(), json!(count));
        }
    });
}

fn reconcile_daemon_set(cluster: &mut Cluster, key: &str, set: &Value, moment: &Moment) {
    let pods = of("pods");
    let hash = fingerprint(&set["spec"]["template"]);
    let mut labelled = set.clone();
    label(&mut labelled["spec"]["template"], "controller-revision-hash", &hash);
    let nodes: Vec<Value> = cluster.store.list(&of("nodes").prefix()).map(|(_, node)| node.clone()).collect();
    let fits = |node: &&Value| {
        let taints = list(node, "/spec/taints").iter();
        // What daemons are always allowed: nodes that are cordoned, not ready or out of reach.
        taints
            .filter(|t| !text(t, "/key").starts_with("node.kubernetes.io/"))
            .all(|taint| tolerates(&set["spec"]["template"]["spec"], taint))
            && super::schedule::selects(&set["spec"]["template"]["spec"], node)
    };
    let targets: Vec<&Value> = nodes.iter().filter(fits).collect();
    for node in &targets {
        let own = owned(cluster, &pods, set);
        let mut on_node = own.iter().filter(|(_, pod)| text(pod, "/spec/nodeName") == name(node));
        match on_node.next() {
            Some((pod, object)) => {
                let same = object["metadata"]["labels"]["controller-revision-hash"] == hash.as_str();
                if !same && !is_terminating(object) {
                    remove(cluster, &pods, pod, &json!({}), moment);
                }
            }
            None => {
                let number =
                    cluster.store.incarnation(&format!("pods of {key} on {}", name(node))).to_string();
                let suffix = cluster.suffix(moment, &["pod", key, name(node), &number], 5);
                make_pod(cluster, &labelled, &format!("{}-{suffix}", name(set)), Some(name(node)), moment);
            }
        }
    }
    let own = owned(cluster, &pods, set);
    for (pod, object) in &own {
        if !is_terminating(object) && !targets.iter().any(|node| name(node) == text(object, "/spec/nodeName"))
        {
            remove(cluster, &pods, pod, &json!({}), moment);
        }
    }
    let ready = own.iter().filter(|(_, pod)| is_ready(pod)).count();
    let wanted = targets.len();
    cluster.change(key, |object| {
        let generation = object["metadata"]["generation"].clone();
        let status = member(object, "status");
        status.insert("observedGeneration".to_owned(), generation);
        for (field, count) in [
            ("desiredNumberScheduled", wanted),
            ("currentNumberScheduled", own.len().min(wanted)),
            ("updatedNumberScheduled", own.len().min(wanted)),
            ("numberReady", ready),
            ("numberAvailable", ready),
            ("numberMisscheduled", 0),
        ] {
            status.insert(field.to_owned(), json!(count));
        }
    });
}
