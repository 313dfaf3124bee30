//! What Talos gives to a new cluster: kube-proxy, a network for pods, the cluster's DNS.

use serde_json::{Value, json};

const FLANNEL: &str = "ghcr.io/siderolabs/flannel:v0.27.4";
const DNS: &str = "registry.k8s.io/coredns/coredns:v1.13.2";

/// What the machine configuration asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The image of kube-proxy, where there is one.
    pub proxy: Option<String>,
    pub flannel: bool,
}

/// Each manifest with its objects, in the order in which they are applied.
pub fn manifests(wanted: &Wanted) -> Vec<(&'static str, Vec<Value>)> {
    let mut all = Vec::new();
    if wanted.flannel {
        all.push(("05-flannel", vec![account("flannel"), daemon_set("kube-flannel", FLANNEL)]));
    }
    if let Some(image) = &wanted.proxy {
        all.push(("10-kube-proxy", vec![account("kube-proxy"), daemon_set("kube-proxy", image)]));
    }
    let dns = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "coredns", "namespace": "kube-system", "labels": { "k8s-app": "kube-dns" } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "k8s-app": "kube-dns" } },
            "template": pod_template("kube-dns", "coredns", DNS, false),
        },
    });
    all.push(("11-core-dns", vec![account("coredns"), dns]));
    all
}

fn account(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": "kube-system" } })
}

fn pod_template(label: &str, container: &str, image: &str, host_network: bool) -> Value {
    let tolerations = if host_network {
        json!([{ "operator": "Exists" }])
    } else {
        json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule" }])
    };
    json!({
        "metadata": { "labels": { "k8s-app": label } },
        "spec": { "containers": [{ "name": container, "image": image }], "hostNetwork": host_network, "tolerations": tolerations },
    })
}

fn daemon_set(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": name, "namespace": "kube-system", "labels": { "k8s-app": name } },
        "spec": {
            "selector": { "matchLabels": { "k8s-app": name } },
            "template": pod_template(name, name, image, true),
        },
    })
}
