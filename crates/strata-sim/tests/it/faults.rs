//! Faults on order.

use std::time::Duration;

use serde_json::json;

use crate::client::{Site, TOKEN};

#[tokio::test]
async fn a_request_can_be_refused_without_being_carried_out() {
    let site = Site::single().await;
    site.fault(json!({ "kind": "refuse", "method": "POST", "path": "/nodes/*/qemu", "status": 596, "text": "Connection timed out" }))
        .await;
    let refused = site.post("/nodes/pve/qemu", &[("vmid", "100")]).await;
    assert_eq!((refused.status, refused.reason.as_str()), (596, "Connection timed out"));
    assert_eq!(site.call("GET", "/nodes/pve/qemu/100/config", &[]).await.status, 500);
    assert_eq!(site.post("/nodes/pve/qemu", &[("vmid", "100")]).await.status, 200, "only once");
}

#[tokio::test]
async fn an_answer_can_be_lost_and_a_connection_cut() {
    let site = Site::single().await;
    site.fault(json!({ "kind": "lost", "writes": true })).await;
    assert!(site.try_call(TOKEN, "POST", "/nodes/pve/qemu", &[("vmid", "100")]).await.is_err());
    assert_eq!(site.get("/nodes/pve/qemu/100/config").await["boot"], " ", "it was carried out");
    site.fault(json!({ "kind": "cut", "method": "DELETE" })).await;
    assert!(site.try_call(TOKEN, "DELETE", "/nodes/pve/qemu/100", &[]).await.is_err());
    assert_eq!(site.call("GET", "/nodes/pve/qemu/100/config", &[]).await.status, 200, "it was not");
}

#[tokio::test]
async fn the_nth_request_is_held_until_released() {
    let site = std::sync::Arc::new(Site::single().await);
    let id = site.fault(json!({ "kind": "hold-after", "nth": 2 })).await;
    site.get("/version").await;
    let held = {
        let site = std::sync::Arc::clone(&site);
        tokio::spawn(async move { site.post("/nodes/pve/qemu", &[("vmid", "100")]).await.status })
    };
    let wait = format!("/_sim/wait-fault?id={id}&timeout=30");
    assert_eq!(site.control("GET", &wait, json!(null)).await["hit"], true);
    assert!(!held.is_finished());
    assert!(site.export().await["guests"].to_string().contains("\"vmid\":100"), "carried out, not answered");
    site.control("POST", &format!("/_sim/faults/{id}/release"), json!(null)).await;
    assert_eq!(held.await.unwrap(), 200);
}

#[tokio::test]
async fn a_request_held_before_is_not_carried_out_when_its_client_goes_away() {
    let site = std::sync::Arc::new(Site::single().await);
    let id = site.fault(json!({ "kind": "hold-before", "writes": true })).await;
    let gone = {
        let site = std::sync::Arc::clone(&site);
        tokio::spawn(async move { site.post("/nodes/pve/qemu", &[("vmid", "100")]).await.status })
    };
    let wait = format!("/_sim/wait-fault?id={id}&timeout=30");
    assert_eq!(site.control("GET", &wait, json!(null)).await["hit"], true);
    gone.abort();
    let _ = gone.await;
    // The server sees the closed connection before the request is released.
    tokio::time::sleep(Duration::from_millis(200)).await;
    site.control("DELETE", "/_sim/faults", json!(null)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!site.export().await["guests"].to_string().contains("\"vmid\":100"));
}

#[tokio::test]
async fn an_order_that_makes_no_sense_is_refused() {
    let site = Site::single().await;
    let answer = site.control("POST", "/_sim/faults", json!({ "kind": "explode" })).await;
    assert!(answer["error"].as_str().unwrap().contains("explode"), "{answer}");
}
