//! What a cluster has from its first moment: namespaces, roles, and the manifests that Talos applies.

use serde_json::{Value, json};

use crate::kubernetes::cluster::{Cluster, Moment};
use crate::kubernetes::resource::of;

pub fn settle(cluster: &mut Cluster, moment: &Moment) {
    // Made once: whoever deletes one of these finds it gone.
    if cluster.store.revision() > 0 {
        return;
    }
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        cluster.ensure(&of("namespaces"), json!({ "metadata": { "name": name } }), moment);
    }
    let rules = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
    cluster.ensure(
        &of("clusterroles"),
        json!({ "metadata": { "name": "cluster-admin" }, "rules": rules }),
        moment,
    );
    let masters =
        json!([{ "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:masters" }]);
    let binding = json!({
        "metadata": { "name": "cluster-admin" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": masters,
    });
    cluster.ensure(&of("clusterrolebindings"), binding, moment);
    let service = json!({
        "metadata": { "name": "kubernetes", "namespace": "default" },
        "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": 6443 }] },
    });
    cluster.ensure(&of("services"), service, moment);
    if cluster.facts.proxy {
        daemon_set(cluster, "kube-proxy", "registry.k8s.io/kube-proxy", moment);
    }
    if cluster.facts.cni == "flannel" {
        daemon_set(cluster, "kube-flannel", "ghcr.io/siderolabs/flannel", moment);
    }
    let dns = json!({
        "metadata": { "name": "coredns", "namespace": "kube-system", "labels": { "k8s-app": "kube-dns" } },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "k8s-app": "kube-dns" } },
            "template": pod_template("kube-dns", "coredns", "registry.k8s.io/coredns/coredns", false),
        },
    });
    cluster.ensure(&of("deployments"), dns, moment);
}

fn pod_template(label: &str, container: &str, image: &str, host_network: bool) -> Value {
    let tolerations = if host_network {
        json!([{ "operator": "Exists" }])
    } else {
        json!([{ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule" }])
    };
    json!({
        "metadata": { "labels": { "k8s-app": label } },
        "spec": {
            "containers": [{ "name": container, "image": format!("{image}:sim") }],
            "hostNetwork": host_network, "tolerations": tolerations,
        },
    })
}

fn daemon_set(cluster: &mut Cluster, name: &str, image: &str, moment: &Moment) {
    let object = json!({
        "metadata": { "name": name, "namespace": "kube-system", "labels": { "k8s-app": name } },
        "spec": {
            "selector": { "matchLabels": { "k8s-app": name } },
            "template": pod_template(name, name, image, true),
        },
    });
    cluster.ensure(&of("daemonsets"), object, moment);
}
