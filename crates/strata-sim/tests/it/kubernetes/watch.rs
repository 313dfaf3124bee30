//! Watches.

use serde_json::{Value, json};
use strata_sim::Pace;

use super::client::Kube;

/// The next event of a stream.
async fn next(response: &mut reqwest::Response, rest: &mut String) -> Value {
    loop {
        if let Some((line, tail)) = rest.split_once('\n') {
            let event = serde_json::from_str(line).unwrap();
            *rest = tail.to_owned();
            return event;
        }
        let chunk = response.chunk().await.unwrap().expect("the stream goes on");
        rest.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test]
async fn changes_arrive_in_order_from_a_revision_on() {
    let kube = Kube::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let map = |name: &str, on: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": { "on": on } } });
    kube.post(path, map("before", "yes")).await;
    let from = kube.get(path).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let query = format!("{path}?watch=true&labelSelector=on%3Dyes&resourceVersion={from}");
    let mut stream = kube.request("GET", &query).send().await.unwrap();
    let mut rest = String::new();
    kube.post(path, map("a", "yes")).await;
    kube.post(path, map("hidden", "no")).await;
    kube.merge(&format!("{path}/a"), json!({ "data": { "x": "y" } })).await;
    kube.merge(&format!("{path}/a"), json!({ "metadata": { "labels": { "on": "no" } } })).await;
    kube.merge(&format!("{path}/hidden"), json!({ "metadata": { "labels": { "on": "yes" } } })).await;
    kube.delete(&format!("{path}/before")).await;
    let mut seen = Vec::new();
    for _ in 0..5 {
        let event = next(&mut stream, &mut rest).await;
        let name = event["object"]["metadata"]["name"].as_str().unwrap().to_owned();
        seen.push((event["type"].as_str().unwrap().to_owned(), name));
    }
    let seen: Vec<(&str, &str)> = seen.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(
        seen,
        [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "hidden"), ("DELETED", "before")]
    );
}

#[tokio::test]
async fn what_is_there_comes_first_and_a_watch_ends() {
    let kube = Kube::start().await;
    let query = "/api/v1/namespaces?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let text = kube.request("GET", query).send().await.unwrap().text().await.unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "ADDED", "ADDED", "BOOKMARK"]);
    assert_eq!(events[4]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn time_passes_without_requests() {
    let kube = Kube::start_with("0.01".parse::<Pace>().unwrap(), "flannel").await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (_, made) = kube.post(path, super::client::deployment("web", 1)).await;
    let from = made["metadata"]["resourceVersion"].as_str().unwrap();
    let mut stream =
        kube.request("GET", &format!("{path}?watch=1&resourceVersion={from}")).send().await.unwrap();
    let mut rest = String::new();
    loop {
        let event = next(&mut stream, &mut rest).await;
        if super::client::condition(&event["object"], "Available") == "True" {
            break;
        }
    }
}

#[tokio::test]
async fn a_revision_that_is_forgotten_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let options = strata_sim::SimOptions {
        data_dir: Some(dir.path().join("data")),
        pace: Pace::INSTANT,
        ..Default::default()
    };
    let site = crate::client::Site::start(options.clone()).await;
    let mut kube = Kube::start().await;
    let gateway = site.sim.gateway();
    let facts = json!({ "kubernetes": { "standalone": kube.facts } });
    site.control("POST", "/_sim/change", facts).await;
    let identity = || kube.authority.issue("admin", "system:masters");
    let client = super::client::http(&gateway, &kube.authority.certificate, Some(identity()));
    let url = "https://192.0.2.40:6443/api/v1/namespaces";
    let before: Value = client.get(url).send().await.unwrap().json().await.unwrap();
    site.sim.shutdown().await.unwrap();
    let site = crate::client::Site::start(options).await;
    let client = super::client::http(&site.sim.gateway(), &kube.authority.certificate, Some(identity()));
    let after: Value = client.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(after["items"], before["items"], "the objects outlive the process");
    let old = client.get(format!("{url}?watch=1&resourceVersion=1")).send().await.unwrap();
    assert_eq!(old.status().as_u16(), 410);
    assert_eq!(old.json::<Value>().await.unwrap()["reason"], "Expired");
    kube.facts = json!(null);
}
