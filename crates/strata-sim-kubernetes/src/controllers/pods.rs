//! What kubelets do: static pods of control planes, pods that start, fail to pull their images, and go.

use serde_json::{Value, json};
use strata_sim_core::matches_glob;

use super::super::object::{has_condition, is_terminating, list, member, metadata, set_condition, text, uid};
use crate::cluster::{Cluster, Moment};
use crate::facts::{CONTROL_PLANE_PARTS, config_version};
use crate::resource::of;

/// Seconds until the containers of a pod run, and until they have ended.
const START: f64 = 2.0;
const STOP: f64 = 1.0;

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    static_pods(cluster, moment);
    let pods: Vec<(String, Value)> =
        cluster.store.list(&of("pods").prefix()).map(|(key, pod)| (key.to_owned(), pod.clone())).collect();
    for (key, pod) in pods {
        let node_name = text(&pod, "/spec/nodeName").to_owned();
        if node_name.is_empty() {
            continue;
        }
        let Some(node) = cluster.store.get(&of("nodes").key("", &node_name)).cloned() else {
            // Pods of a node that is gone are collected.
            cluster.store.remove(&key);
            continue;
        };
        let runs = cluster.facts.nodes.iter().any(|m| m.name == node_name && m.ready);
        if !runs {
            if !has_condition(&node, "Ready", "True") {
                not_ready(cluster, &key, moment);
            }
        } else if is_terminating(&pod) {
            if cluster.is_due(&format!("stop/{}", uid(&pod)), STOP, moment) {
                finish(cluster, &key);
            }
        } else {
            run(cluster, &key, &pod, &node, moment);
        }
    }
}

/// Deleted for good, unless someone else has a say in it.
fn finish(cluster: &mut Cluster, key: &str) {
    cluster.change(key, |pod| {
        metadata(pod).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    });
    if cluster.store.get(key).is_some_and(|pod| super::super::object::finalizers(pod).is_empty()) {
        cluster.store.remove(key);
    }
}

fn not_ready(cluster: &mut Cluster, key: &str, moment: &Moment) {
    let now = moment.text();
    cluster.change(key, |pod| {
        if has_condition(pod, "Ready", "True") {
            set_condition(pod, "Ready", "False", "NodeNotReady", "", &now);
        }
    });
}

fn static_pods(cluster: &mut Cluster, moment: &Moment) {
    let control_planes: Vec<_> =
        cluster.facts.nodes.iter().filter(|n| n.control_plane && n.ready).cloned().collect();
    for machine in control_planes {
        let Some(node) = cluster.store.get(&of("nodes").key("", &machine.name)) else { continue };
        let owner = json!([{ "apiVersion": "v1", "kind": "Node", "name": machine.name, "uid": uid(node), "controller": true }]);
        let version = machine.api_version.as_deref().unwrap_or(&machine.kubelet_version).to_owned();
        for part in CONTROL_PLANE_PARTS {
            let usual = || format!("registry.k8s.io/{part}:{version}");
            let image = machine.images.get(part).cloned().unwrap_or_else(usual);
            let pod = json!({
                "metadata": {
                    "name": format!("{part}-{}", machine.name), "namespace": "kube-system",
                    "labels": { "k8s-app": part, "tier": "control-plane" },
                    "annotations": {
                        "kubernetes.io/config.mirror": machine.boot_id, "kubernetes.io/config.source": "file",
                        "talos.dev/config-version": config_version(&image).to_string(),
                    },
                    "ownerReferences": owner,
                },
                "spec": { "nodeName": machine.name, "hostNetwork": true, "priorityClassName": "system-cluster-critical",
                    "containers": [{ "name": part, "image": image }], "tolerations": [{ "operator": "Exists" }] },
            });
            let key = of("pods").key("kube-system", &format!("{part}-{}", machine.name));
            // A mirror follows what the kubelet runs.
            let other = cluster.store.get(&key).is_some_and(|there| {
                list(there, "/spec/containers").first().is_some_and(|c| c["image"] != image.as_str())
            });
            if other {
                cluster.store.remove(&key);
            }
            cluster.ensure(&of("pods"), pod, moment);
        }
    }
}

fn run(cluster: &mut Cluster, key: &str, pod: &Value, node: &Value, moment: &Moment) {
    if has_condition(pod, "Ready", "True") || matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") {
        return;
    }
    let images: Vec<String> =
        list(pod, "/spec/containers").iter().map(|c| text(c, "/image").to_owned()).collect();
    let missing = images.iter().any(|i| cluster.orders.no_images.iter().any(|glob| matches_glob(glob, i)));
    let network = has_condition(node, "Ready", "True") || pod["spec"]["hostNetwork"] == true;
    let due = cluster.is_due(&format!("start/{}", uid(pod)), START, moment);
    if !due {
        return;
    }
    let now = moment.text();
    let address = text(node, "/status/addresses/0/address").to_owned();
    let waiting = if missing {
        Some(("ImagePullBackOff", "Back-off pulling image"))
    } else if !network {
        Some(("ContainerCreating", ""))
    } else {
        None
    };
    cluster.change(key, |pod| {
        let containers: Vec<(String, String)> = list(pod, "/spec/containers")
            .iter()
            .map(|c| (text(c, "/name").to_owned(), text(c, "/image").to_owned()))
            .collect();
        let statuses: Vec<Value> = containers
            .iter()
            .map(|(name, image)| match waiting {
                Some((reason, message)) => {
                    json!({ "name": name, "image": image, "ready": false, "restartCount": 0,
                    "started": false, "state": { "waiting": { "reason": reason, "message": message } } })
                }
                None => {
                    json!({ "name": name, "image": image, "ready": true, "restartCount": 0, "started": true,
                    "state": { "running": { "startedAt": now } } })
                }
            })
            .collect();
        let status = member(pod, "status");
        status.insert("containerStatuses".to_owned(), json!(statuses));
        status.insert("hostIP".to_owned(), json!(address));
        status.insert("phase".to_owned(), json!(if waiting.is_some() { "Pending" } else { "Running" }));
        status.entry("startTime").or_insert(json!(now));
        let state = if waiting.is_some() { "False" } else { "True" };
        let reason = if waiting.is_some() { "ContainersNotReady" } else { "" };
        for kind in ["Initialized", "PodScheduled"] {
            set_condition(pod, kind, "True", "", "", &now);
        }
        for kind in ["ContainersReady", "Ready"] {
            set_condition(pod, kind, state, reason, "", &now);
        }
    });
}
