//! Faults on the way to machines, and machines with something wrong.

use serde_json::{Value, json};

use super::api::{Talos, tunnel};
use super::{Cluster, change};
use crate::client::http;

async fn order(cluster: &Cluster, fault: Value) {
    let answer =
        http().post(format!("{}/_sim/faults", cluster.sim.control())).json(&fault).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_counted_with_all_other_requests() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    let before = cluster.sim.requests();
    order(&cluster, json!({ "kind": "refuse", "nth": 2, "status": 503, "text": "not now" })).await;
    talos.version().await.unwrap();
    let refused = talos.version().await.unwrap_err();
    assert_eq!((refused.code, refused.text.as_str()), (14, "not now"));
    talos.version().await.unwrap();
    assert_eq!(cluster.sim.requests(), before + 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_was_carried_out_nevertheless() {
    let cluster = Cluster::new("v1.13.0").await;
    let mut talos = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    order(&cluster, json!({ "kind": "lost", "path": "/talos/192.0.2.41/*/Bootstrap" })).await;
    assert_eq!(talos.bootstrap(false).await.unwrap_err().code, -1);
    let mut talos = cluster.admin("192.0.2.41").await;
    assert_eq!(talos.bootstrap(false).await.unwrap_err().code, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_can_be_refused_and_dropped() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    order(&cluster, json!({ "kind": "cut", "path": "/connect/192.0.2.41:50000" })).await;
    assert!(tunnel(&cluster.sim, "192.0.2.41:50000").await.is_err());
    tunnel(&cluster.sim, "192.0.2.41:50000").await.unwrap();
    change(&cluster.sim, json!({ "cut-off": { "machine": "cp-1", "cut_off": true } })).await;
    assert!(tunnel(&cluster.sim, "192.0.2.41:50000").await.is_err());
    change(&cluster.sim, json!({ "cut-off": { "machine": "vm/101", "cut_off": false } })).await;
    cluster.admin("192.0.2.41").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_and_certificates_go_wrong() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let client = cluster.pki.client("os:admin");
    change(&cluster.sim, json!({ "expired": { "machine": "cp-1", "expired": true } })).await;
    let expired = Talos::connect(&cluster.sim, "192.0.2.41", &client).await.err().unwrap();
    assert!(expired.text.to_lowercase().contains("expired"), "{expired:?}");
    change(&cluster.sim, json!({ "expired": { "machine": "cp-1", "expired": false } })).await;
    // A clock that is a day late takes a fresh client for one from the future.
    change(&cluster.sim, json!({ "skew": { "machine": "cp-1", "seconds": -86_000 } })).await;
    assert!(Talos::connect(&cluster.sim, "192.0.2.41", &client).await.is_err());
    change(&cluster.sim, json!({ "skew": { "machine": "cp-1", "seconds": 0 } })).await;
    Talos::connect(&cluster.sim, "192.0.2.41", &client).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ends_with_the_machine() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    super::power(&cluster.sim, 101, "stop").await;
    // A call may come in between and be told so; the connection is gone all the same.
    while talos.version().await.unwrap_err().code == 14 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(talos.version().await.unwrap_err().code, -1);
}
