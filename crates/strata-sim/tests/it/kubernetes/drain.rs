//! Nodes: how they come, are emptied and go.

use serde_json::{Value, json};

use super::client::{Kube, condition, deployment, node};

async fn evict(kube: &Kube, pod: &str) -> (u16, Value) {
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": pod, "namespace": "default" } });
    kube.post(&format!("/api/v1/namespaces/default/pods/{pod}/eviction"), eviction).await
}

#[tokio::test]
async fn nodes_are_what_the_machines_say() {
    let mut kube = Kube::start().await;
    assert_eq!(kube.names("/api/v1/nodes").await, ["cp-1", "worker-1", "worker-2"]);
    let cp = kube.get("/api/v1/nodes/cp-1").await;
    assert_eq!(condition(&cp, "Ready"), "True");
    assert_eq!(cp["status"]["addresses"][0], json!({ "type": "InternalIP", "address": "192.0.2.41" }));
    assert_eq!(cp["status"]["nodeInfo"]["kubeletVersion"], "v1.36.3");
    assert_eq!(cp["metadata"]["labels"]["node-role.kubernetes.io/control-plane"], "");
    assert_eq!(cp["spec"]["taints"][0]["effect"], "NoSchedule");
    let pods = kube.names("/api/v1/namespaces/kube-system/pods?fieldSelector=spec.nodeName%3Dcp-1").await;
    for part in ["kube-apiserver-cp-1", "kube-controller-manager-cp-1", "kube-scheduler-cp-1"] {
        assert!(pods.iter().any(|pod| pod == part), "{pods:?}");
    }
    kube.facts["nodes"][2]["labels"] = json!({ "gpu": "true" });
    kube.tell().await;
    assert_eq!(kube.get("/api/v1/nodes/worker-2").await["metadata"]["labels"]["gpu"], "true");
    kube.facts["nodes"][2]["labels"] = json!({});
    kube.tell().await;
    assert!(kube.get("/api/v1/nodes/worker-2").await["metadata"]["labels"].get("gpu").is_none());
}

#[tokio::test]
async fn a_cordoned_node_is_emptied_by_evictions() {
    let kube = Kube::start().await;
    kube.post("/apis/apps/v1/namespaces/default/deployments", deployment("web", 2)).await;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } } });
    kube.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget).await;
    let patch = json!({ "spec": { "unschedulable": true } });
    let (status, node) =
        kube.call("PATCH", "/api/v1/nodes/worker-1", "application/strategic-merge-patch+json", &patch).await;
    assert_eq!((status, &node["spec"]["unschedulable"]), (200, &json!(true)));
    let on_node = "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dworker-1";
    let pod = kube.names(on_node).await.remove(0);
    let (status, refused) = evict(&kube, &pod).await;
    assert_eq!((status, refused["reason"].as_str()), (429, Some("TooManyRequests")));
    assert_eq!(refused["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(refused["details"]["causes"][0]["reason"], "DisruptionBudget");
    kube.merge(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web",
        json!({ "spec": { "minAvailable": 1 } }),
    )
    .await;
    assert_eq!(evict(&kube, &pod).await.0, 201);
    assert!(kube.names(on_node).await.is_empty());
    let pods = kube.get("/api/v1/namespaces/default/pods").await;
    assert!(pods["items"].as_array().unwrap().iter().all(|p| p["spec"]["nodeName"] == "worker-2"), "{pods}");
    assert_eq!(evict(&kube, &pod).await.0, 404);
}

#[tokio::test]
async fn pods_of_a_lost_node_wait_until_the_node_is_deleted() {
    let mut kube = Kube::start().await;
    kube.post("/apis/apps/v1/namespaces/default/deployments", deployment("web", 2)).await;
    let on_node = "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dworker-1";
    let pod = kube.names(on_node).await.remove(0);
    kube.facts["nodes"][1]["ready"] = json!(false);
    kube.tell().await;
    assert_eq!(condition(&kube.get("/api/v1/nodes/worker-1").await, "Ready"), "Unknown");
    kube.delete(&format!("/api/v1/namespaces/default/pods/{pod}")).await;
    assert_eq!(kube.names(on_node).await, [pod], "no kubelet takes it down");
    kube.delete("/api/v1/nodes/worker-1").await;
    assert!(kube.names(on_node).await.is_empty());
}

#[tokio::test]
async fn a_deleted_node_comes_back_only_with_a_new_start() {
    let mut kube = Kube::start().await;
    kube.delete("/api/v1/nodes/worker-2").await;
    assert_eq!(kube.names("/api/v1/nodes").await, ["cp-1", "worker-1"]);
    kube.facts["nodes"][2]["boot_id"] = json!("boot-2");
    kube.tell().await;
    assert_eq!(kube.names("/api/v1/nodes").await, ["cp-1", "worker-1", "worker-2"]);
    kube.facts["nodes"].as_array_mut().unwrap().push(node("worker-3", "192.0.2.53", false));
    kube.tell().await;
    assert_eq!(kube.names("/api/v1/nodes").await.len(), 4);
}

#[tokio::test]
async fn without_a_network_nodes_are_not_ready() {
    let kube = Kube::start_with(strata_sim::Pace::INSTANT, "none").await;
    let cp = kube.get("/api/v1/nodes/cp-1").await;
    assert_eq!(condition(&cp, "Ready"), "False");
    let mut cilium = deployment("cilium", 1);
    cilium["kind"] = json!("DaemonSet");
    cilium["spec"].as_object_mut().unwrap().remove("replicas");
    cilium["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    cilium["spec"]["template"]["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    kube.post("/apis/apps/v1/namespaces/kube-system/daemonsets", cilium).await;
    assert_eq!(condition(&kube.get("/api/v1/nodes/cp-1").await, "Ready"), "True");
    let set = kube.get("/apis/apps/v1/namespaces/kube-system/daemonsets/cilium").await;
    assert_eq!(
        (&set["status"]["desiredNumberScheduled"], &set["status"]["numberReady"]),
        (&json!(3), &json!(3))
    );
    kube.change(json!({ "cni": false })).await;
    assert_eq!(condition(&kube.get("/api/v1/nodes/cp-1").await, "Ready"), "False");
}
