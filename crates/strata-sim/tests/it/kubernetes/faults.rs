//! Faults on the way to a Kubernetes API.

use serde_json::{Value, json};

use super::client::Kube;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_refused_in_the_words_of_the_api() {
    let kube = Kube::start().await;
    for (status, reason) in
        [(403, "Forbidden"), (409, "Conflict"), (429, "TooManyRequests"), (503, "ServiceUnavailable")]
    {
        let fault = json!({ "kind": "refuse", "method": "POST", "path": "/kubernetes/*/configmaps", "status": status, "text": "no" });
        kube.site.fault(fault).await;
        let (found, body) = kube.post(MAPS, map("a")).await;
        assert_eq!((found, &body["reason"], &body["message"]), (status, &json!(reason), &json!("no")));
    }
    assert!(!kube.names(MAPS).await.contains(&"a".to_owned()), "nothing was carried out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_lost_and_a_connection_cut() {
    let kube = Kube::start().await;
    let send = async |name: &str| {
        let request = kube.request("POST", MAPS).header("Content-Type", "application/json");
        request.body(map(name).to_string()).send().await
    };
    kube.site.fault(json!({ "kind": "lost", "writes": true, "path": "/kubernetes/*" })).await;
    assert!(send("lost").await.is_err());
    kube.site
        .fault(json!({ "kind": "cut", "writes": true, "path": "/kubernetes/192.0.2.40/api/v1/*" }))
        .await;
    assert!(send("cut").await.is_err());
    kube.site.fault(json!({ "kind": "delay", "writes": true, "seconds": 0.05 })).await;
    assert_eq!(send("late").await.unwrap().status(), 201);
    let names = kube.names(MAPS).await;
    let has = |name: &str| names.iter().any(|own| own == name);
    assert_eq!((has("lost"), has("cut"), has("late")), (true, false, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_held_before_and_after_it_is_carried_out() {
    let kube = std::sync::Arc::new(Kube::start().await);
    for (kind, there) in [("hold-before", false), ("hold-after", true)] {
        let id = kube.site.fault(json!({ "kind": kind, "writes": true, "path": "/kubernetes/*" })).await;
        let held = {
            let kube = std::sync::Arc::clone(&kube);
            tokio::spawn(async move { kube.post(MAPS, map(kind)).await.0 })
        };
        let wait = format!("/_sim/wait-fault?id={id}&timeout=30");
        assert_eq!(kube.site.control("GET", &wait, json!(null)).await["hit"], true);
        assert_eq!(kube.names(MAPS).await.contains(&kind.to_owned()), there);
        kube.site.control("POST", &format!("/_sim/faults/{id}/release"), json!(null)).await;
        assert_eq!(held.await.unwrap(), 201);
    }
}
