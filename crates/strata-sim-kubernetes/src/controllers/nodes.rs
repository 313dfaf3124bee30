//! Nodes as their kubelets report them: registered at boot, ready when there is a network for pods, lost when nothing is heard.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::object::{list, member, metadata, name, set_condition, text};
use crate::cluster::{Cluster, Moment};
use crate::facts::KubeNode;
use crate::resource::of;

/// Seconds after which an unreachable kubelet counts as lost.
const PATIENCE: f64 = 40.0;
const OWNED_LABELS: &str = "talos.dev/owned-labels";
const OWNED_ANNOTATIONS: &str = "talos.dev/owned-annotations";
const OWNED_TAINTS: &str = "talos.dev/owned-taints";

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let nodes = of("nodes");
    let machines = cluster.facts.nodes.clone();
    cluster.registered.retain(|name, _| machines.iter().any(|m| m.name == *name));
    let network = has_network(cluster);
    for machine in &machines {
        let key = nodes.key("", &machine.name);
        // A kubelet registers its node once for each start; a node that someone deletes stays away until then.
        if machine.ready && cluster.registered.get(&machine.name) != Some(&machine.boot_id) {
            cluster.ensure(&nodes, json!({ "metadata": { "name": machine.name }, "spec": {} }), moment);
            cluster.registered.insert(machine.name.clone(), machine.boot_id.clone());
        }
        if machine.ready && cluster.store.get(&key).is_some() {
            let system = cluster.derive(moment, &["machine", &machine.name]);
            let now = moment.text();
            cluster.change(&key, |node| {
                describe(node, machine, &hex::encode(&system[..16]));
                report(node, network, &now);
                taint(node, machine);
            });
        }
    }
    let silent: Vec<String> = cluster
        .store
        .list(&nodes.prefix())
        .map(|(_, node)| name(node).to_owned())
        .filter(|name| !machines.iter().any(|m| m.name == *name && m.ready))
        .collect();
    for name in silent {
        let since = cluster.registered.get(&name).cloned().unwrap_or_default();
        if cluster.is_due(&format!("lost/{name}/{since}"), PATIENCE, moment) {
            let now = moment.text();
            let machine = machines.iter().find(|m| m.name == name);
            cluster.change(&nodes.key("", &name), |node| {
                let message = "Kubelet stopped posting node status.";
                for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"] {
                    set_condition(node, kind, "Unknown", "NodeStatusUnknown", message, &now);
                }
                let nobody = nobody(&name);
                taint(node, machine.unwrap_or(&nobody));
            });
        }
    }
}

fn nobody(name: &str) -> KubeNode {
    KubeNode {
        name: name.to_owned(),
        addresses: Vec::new(),
        control_plane: false,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: BTreeMap::new(),
        kubelet_version: String::new(),
        talos_version: String::new(),
        api_version: None,
        api_up: false,
        ready: false,
        boot_id: String::new(),
        images: BTreeMap::new(),
    }
}

/// Pods can be given addresses: by the network that Talos brings, or by one that someone installed.
fn has_network(cluster: &Cluster) -> bool {
    const NETWORKS: &[&str] =
        &["cilium", "calico", "flannel", "antrea", "kube-router", "weave", "canal", "kube-ovn"];
    if let Some(ordered) = cluster.orders.cni {
        return ordered;
    }
    if cluster.facts.cni == "custom" {
        return true;
    }
    cluster.store.list(&of("daemonsets").prefix()).any(|(_, set)| {
        let host = set.pointer("/spec/template/spec/hostNetwork") == Some(&Value::Bool(true));
        host && NETWORKS.iter().any(|network| name(set).contains(network))
    })
}

/// What a kubelet and Talos say of a machine that does not depend on the moment.
fn describe(node: &mut Value, machine: &KubeNode, system: &str) {
    let mut labels: BTreeMap<String, String> = BTreeMap::from([
        ("kubernetes.io/hostname".to_owned(), machine.name.clone()),
        ("kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("kubernetes.io/arch".to_owned(), "amd64".to_owned()),
        ("beta.kubernetes.io/os".to_owned(), "linux".to_owned()),
        ("beta.kubernetes.io/arch".to_owned(), "amd64".to_owned()),
    ]);
    if machine.control_plane {
        labels.insert("node-role.kubernetes.io/control-plane".to_owned(), String::new());
    }
    own(node, "labels", OWNED_LABELS, &machine.labels);
    own(node, "annotations", OWNED_ANNOTATIONS, &machine.annotations);
    let there = metadata(node).entry("labels").or_insert(json!({}));
    if let Value::Object(there) = there {
        for (key, value) in labels {
            there.insert(key, json!(value));
        }
    }
    let mut addresses: Vec<Value> =
        machine.addresses.iter().map(|a| json!({ "type": "InternalIP", "address": a })).collect();
    addresses.push(json!({ "type": "Hostname", "address": machine.name }));
    let status = member(node, "status");
    status.insert("addresses".to_owned(), json!(addresses));
    let resources = json!({ "cpu": "4", "memory": "8Gi", "pods": "110", "ephemeral-storage": "60Gi" });
    status.insert("capacity".to_owned(), resources.clone());
    status.insert("allocatable".to_owned(), resources);
    status.insert("daemonEndpoints".to_owned(), json!({ "kubeletEndpoint": { "Port": 10250 } }));
    status.insert("nodeInfo".to_owned(), json!({
        "architecture": "amd64", "operatingSystem": "linux", "osImage": format!("Talos ({})", machine.talos_version),
        "kernelVersion": "6.12.0-talos", "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": machine.kubelet_version, "kubeProxyVersion": "", "bootID": machine.boot_id,
        "machineID": system, "systemUUID": system,
    }));
}

/// Labels and annotations of the machine configuration: Talos remembers which are its own, and takes back what is gone.
fn own(node: &mut Value, place: &str, book: &str, wanted: &BTreeMap<String, String>) {
    let owned = text(node, &format!("/metadata/annotations/{}", book.replace('/', "~1")));
    let owned: Vec<String> = serde_json::from_str(owned).unwrap_or_default();
    let meta = metadata(node);
    let mut edit = |place: &str, edit: &mut dyn FnMut(&mut Map<String, Value>)| {
        if let Value::Object(map) = meta.entry(place.to_owned()).or_insert(json!({})) {
            edit(map);
        }
    };
    edit(place, &mut |map| {
        map.retain(|key, _| !owned.contains(key) || wanted.contains_key(key));
        for (key, value) in wanted {
            map.insert(key.clone(), json!(value));
        }
    });
    let keys: Vec<&String> = wanted.keys().collect();
    edit("annotations", &mut |map| {
        if keys.is_empty() {
            map.shift_remove(book);
        } else {
            map.insert(book.to_owned(), json!(json!(keys).to_string()));
        }
    });
    super::super::object::drop_empty(metadata(node), "annotations");
}

fn report(node: &mut Value, network: bool, now: &str) {
    for (kind, reason, message) in [
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ] {
        set_condition(node, kind, "False", reason, message, now);
    }
    if network {
        set_condition(node, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now);
    } else {
        let message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
        set_condition(node, "Ready", "False", "KubeletNotReady", message, now);
    }
}

/// Taints of the configuration and of the state of the node; those that others set stay.
fn taint(node: &mut Value, machine: &KubeNode) {
    let ready = list(node, "/status/conditions").iter().find(|c| c["type"] == "Ready");
    let ready = ready.map(|c| text(c, "/status").to_owned()).unwrap_or_default();
    let mut wanted: Vec<Value> = Vec::new();
    if machine.ready {
        for (key, value) in &machine.taints {
            let (value, effect) = value.rsplit_once(':').unwrap_or(("", value.as_str()));
            let mut taint = json!({ "key": key, "effect": effect });
            if !value.is_empty() {
                taint["value"] = json!(value);
            }
            wanted.push(taint);
        }
    }
    if node["spec"]["unschedulable"] == true {
        wanted.push(json!({ "key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule" }));
    }
    match ready.as_str() {
        "True" => {}
        "Unknown" => {
            wanted.push(json!({ "key": "node.kubernetes.io/unreachable", "effect": "NoSchedule" }));
            wanted.push(json!({ "key": "node.kubernetes.io/unreachable", "effect": "NoExecute" }));
        }
        _ => {
            wanted.push(json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }));
            wanted.push(json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" }));
        }
    }
    let book = format!("/metadata/annotations/{}", OWNED_TAINTS.replace('/', "~1"));
    let owned: Vec<String> = serde_json::from_str(text(node, &book)).unwrap_or_default();
    let lifecycle = |key: &str| {
        key.strip_prefix("node.kubernetes.io/")
            .is_some_and(|k| matches!(k, "unschedulable" | "unreachable" | "not-ready"))
    };
    let mut taints: Vec<Value> = list(node, "/spec/taints")
        .iter()
        .filter(|t| {
            let key = text(t, "/key");
            !lifecycle(key)
                && (!machine.ready || !(owned.iter().any(|o| o == key) || machine.taints.contains_key(key)))
        })
        .cloned()
        .collect();
    taints.extend(wanted);
    if taints.is_empty() {
        member(node, "spec").shift_remove("taints");
    } else {
        member(node, "spec").insert("taints".to_owned(), json!(taints));
    }
    if machine.ready {
        let keys: Vec<&String> = machine.taints.keys().collect();
        let annotations = metadata(node).entry("annotations").or_insert(json!({}));
        if let Value::Object(annotations) = annotations {
            if keys.is_empty() {
                annotations.shift_remove(OWNED_TAINTS);
            } else {
                annotations.insert(OWNED_TAINTS.to_owned(), json!(json!(keys).to_string()));
            }
        }
        super::super::object::drop_empty(metadata(node), "annotations");
    }
}
