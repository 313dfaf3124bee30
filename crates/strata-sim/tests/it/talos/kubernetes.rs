//! The Kubernetes that the machines make.

use serde_json::Value;

use super::{Cluster, eventually, power};
use crate::kubernetes::client::{Authority, condition, http};

async fn list(client: &reqwest::Client, host: &str) -> Option<Vec<Value>> {
    let response = client.get(format!("https://{host}:6443/api/v1/nodes")).send().await.ok()?;
    let list: Value = response.json().await.ok()?;
    list["items"].as_array().cloned()
}

fn names(nodes: &[Value]) -> Vec<&str> {
    nodes.iter().map(|node| node["metadata"]["name"].as_str().unwrap()).collect()
}

fn client(cluster: &Cluster) -> reqwest::Client {
    let (certificate, key) = cluster.pki.kubernetes();
    let authority = Authority { certificate, key };
    let identity = authority.issue("admin", "system:masters");
    http(&cluster.sim.gateway(), &authority.certificate, Some(identity))
}

#[tokio::test]
async fn nodes_join_it_fall_silent_and_come_back() {
    let cluster = Cluster::bootstrapped("v1.11.0").await;
    let client = client(&cluster);
    cluster.add(111, "worker-1", "192.0.2.51", false).await;
    let nodes = eventually(async || list(&client, "192.0.2.40").await.filter(|nodes| nodes.len() == 2)).await;
    assert_eq!(names(&nodes), ["cp-1", "worker-1"]);
    assert!(nodes.iter().all(|node| condition(node, "Ready") == "True"));
    assert_eq!(nodes[1]["status"]["nodeInfo"]["kubeletVersion"], "v1.34.1");
    assert_eq!(nodes[1]["status"]["nodeInfo"]["osImage"], "Talos (v1.11.0)");
    assert!(list(&client, "192.0.2.51").await.is_none(), "a worker has no API server");
    power(&cluster.sim, 111, "stop").await;
    let silent = |nodes: &[Value]| nodes.iter().any(|node| condition(node, "Ready") == "Unknown");
    eventually(async || list(&client, "192.0.2.41").await.filter(|nodes| silent(nodes))).await;
    power(&cluster.sim, 111, "start").await;
    eventually(async || list(&client, "192.0.2.41").await.filter(|nodes| !silent(nodes))).await;
}

#[tokio::test]
async fn its_objects_outlive_a_lost_control_plane_and_not_the_quorum() {
    let cluster = Cluster::of_three("v1.11.0").await;
    let client = client(&cluster);
    let body = r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}"#;
    let url = |host: &str| format!("https://{host}:6443/api/v1/namespaces");
    let made = client.post(url("192.0.2.41")).body(body).send().await.unwrap();
    assert_eq!(made.status().as_u16(), 201);
    power(&cluster.sim, 101, "stop").await;
    let there = client.get(format!("{}/flux-system", url("192.0.2.40"))).send().await.unwrap();
    assert_eq!(there.status().as_u16(), 200, "another control plane answers at the shared address");
    assert!(client.get(url("192.0.2.41")).send().await.is_err());
    power(&cluster.sim, 102, "stop").await;
    assert!(client.get(url("192.0.2.43")).send().await.is_err(), "one of three is no majority");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_from_a_snapshot_has_the_objects_of_that_time() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let client = client(&cluster);
    let maps = "https://192.0.2.41:6443/api/v1/namespaces/default/configmaps";
    let make = async |name: &str, value: &str| {
        let body = serde_json::json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": value } });
        let request = client.post(maps).header("Content-Type", "application/json").body(body.to_string());
        request.send().await.ok().filter(|answer| answer.status() == 201).map(|_| ())
    };
    eventually(async || make("before", "x").await).await;
    let snapshot = cluster.admin("192.0.2.41").await.snapshot().await.unwrap();
    make("after", "y").await.unwrap();
    let gone = client.delete(format!("{maps}/before")).send().await.unwrap();
    assert_eq!(gone.status(), 200);
    power(&cluster.sim, 101, "stop").await;
    super::proxmox(&cluster.sim, "DELETE", "/nodes/pve1/qemu/101", serde_json::json!({ "purge": 1 })).await;
    let mut first = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    first.recover(&snapshot).await.unwrap();
    first.bootstrap(true).await.unwrap();
    let list = eventually(async || {
        let answer = client.get(maps).send().await.ok().filter(|answer| answer.status() == 200)?;
        answer.json::<Value>().await.ok()
    })
    .await;
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"before") && !names.contains(&"after"), "{names:?}");
}
