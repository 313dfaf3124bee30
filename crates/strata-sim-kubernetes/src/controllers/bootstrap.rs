//! What a cluster has from its first moment: namespaces, roles, and the manifests that Talos applies.

use serde_json::json;

use crate::cluster::{Cluster, Moment};
use crate::manifests::{Wanted, manifests};
use crate::resource::of;

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
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
    let images = cluster.facts.nodes.iter().find_map(|node| node.images.get("kube-proxy"));
    let proxy = images.cloned().unwrap_or_else(|| "registry.k8s.io/kube-proxy:sim".to_owned());
    let wanted =
        Wanted { proxy: cluster.facts.proxy.then_some(proxy), flannel: cluster.facts.cni == "flannel" };
    for object in manifests(&wanted).into_iter().flat_map(|(_, objects)| objects) {
        let plural = match object["kind"].as_str() {
            Some("ServiceAccount") => "serviceaccounts",
            Some("DaemonSet") => "daemonsets",
            _ => "deployments",
        };
        cluster.ensure(&of(plural), object, moment);
    }
}
