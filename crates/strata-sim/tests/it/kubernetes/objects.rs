//! Objects that are made, read, changed and deleted, and what follows from it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::client::{Kube, condition, deployment};

#[tokio::test]
async fn a_write_on_what_is_no_longer_there_is_a_conflict() {
    let kube = Kube::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1" } });
    let (status, made) = kube.post(path, map.clone()).await;
    assert_eq!(status, 201);
    let (status, body) = kube.post(path, map).await;
    assert_eq!((status, body["message"].as_str()), (409, Some("configmaps \"a\" already exists")));
    let own = format!("{path}/a");
    kube.merge(&own, json!({ "data": { "b": "2" } })).await;
    let (status, body) = kube.call("PUT", &own, "application/json", &made).await;
    assert_eq!((status, body["reason"].as_str()), (409, Some("Conflict")));
    let (_, patched) = kube
        .call("PATCH", &own, "application/json-patch+json", &json!([{ "op": "remove", "path": "/data/a" }]))
        .await;
    assert_eq!(patched["data"], json!({ "b": "2" }));
    let stale = json!({ "preconditions": { "uid": "other" } });
    assert_eq!(kube.call("DELETE", &own, "application/json", &stale).await.0, 409);
    let (status, gone) = kube.delete(&own).await;
    assert_eq!((status, gone["status"].as_str()), (200, Some("Success")));
    let (status, body) = kube.delete(&own).await;
    assert_eq!((status, body["message"].as_str()), (404, Some("configmaps \"a\" not found")));
}

#[tokio::test]
async fn lists_are_selected_and_come_in_pieces() {
    let kube = Kube::start().await;
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "labels": { "tier": tier } } });
        kube.post("/api/v1/namespaces/default/configmaps", map).await;
    }
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(kube.names(&format!("{path}?labelSelector=tier%3Dx")).await, ["a", "c"]);
    assert_eq!(kube.names(&format!("{path}?fieldSelector=metadata.name%3Db")).await, ["b"]);
    let first = kube.get(&format!("{path}?limit=3")).await;
    assert_eq!(
        (first["items"].as_array().unwrap().len(), &first["metadata"]["remainingItemCount"]),
        (3, &json!(1))
    );
    let token = first["metadata"]["continue"].as_str().unwrap();
    assert_eq!(kube.names(&format!("{path}?limit=3&continue={token}")).await, ["kube-root-ca.crt"]);
    let (status, _) = kube.delete(&format!("{path}?labelSelector=tier")).await;
    assert_eq!(status, 200);
    assert_eq!(kube.names(path).await, ["kube-root-ca.crt"]);
}

#[tokio::test]
async fn an_object_waits_for_its_finalizers() {
    let kube = Kube::start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "finalizers": ["example.com/x"] } });
    kube.post(path, map).await;
    let own = format!("{path}/a");
    let (_, terminating) = kube.delete(&own).await;
    assert!(terminating["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(kube.status(&own).await, 200);
    kube.merge(&own, json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(kube.status(&own).await, 404);
}

#[tokio::test]
async fn a_namespace_takes_everything_with_it() {
    let kube = Kube::start().await;
    kube.post(
        "/api/v1/namespaces",
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "web" } }),
    )
    .await;
    assert_eq!(kube.names("/api/v1/namespaces/web/serviceaccounts").await, ["default"]);
    kube.post("/apis/apps/v1/namespaces/web/deployments", deployment("web", 2)).await;
    assert_eq!(kube.names("/api/v1/namespaces/web/pods").await.len(), 2);
    kube.delete("/api/v1/namespaces/web").await;
    assert_eq!(kube.status("/api/v1/namespaces/web").await, 404);
    assert!(kube.names("/api/v1/pods?fieldSelector=metadata.namespace%3Dweb").await.is_empty());
}

#[tokio::test]
async fn a_deployment_becomes_available_unless_its_image_is_missing() {
    let kube = Kube::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    kube.post(path, deployment("web", 2)).await;
    let web = kube.get(&format!("{path}/web")).await;
    assert_eq!(
        (condition(&web, "Available"), &web["status"]["readyReplicas"]),
        ("True".to_owned(), &json!(2))
    );
    kube.change(json!({ "image": { "glob": "example/broken*", "missing": true } })).await;
    kube.post(path, deployment("broken", 1)).await;
    let broken = kube.get(&format!("{path}/broken")).await;
    assert_eq!(condition(&broken, "Available"), "False");
    let pods = kube.get("/api/v1/namespaces/default/pods?labelSelector=app%3Dbroken").await;
    let reason = &pods["items"][0]["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
    assert_eq!(reason, "ImagePullBackOff");
    kube.change(json!({ "image": { "glob": "example/broken*", "missing": false } })).await;
    assert_eq!(condition(&kube.get(&format!("{path}/broken")).await, "Available"), "True");
    kube.delete(&format!("{path}/web")).await;
    assert!(
        kube.names("/api/v1/namespaces/default/pods?labelSelector=app%3Dweb").await.is_empty(),
        "garbage is collected"
    );
}

#[tokio::test]
async fn secrets_are_exported_as_digests_only() {
    let kube = Kube::start().await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "age" }, "stringData": { "age.agekey": "AGE-SECRET-KEY-1TEST" } });
    let (_, made) = kube.apply("/api/v1/namespaces/kube-system/secrets/age", "strata", secret).await;
    assert_eq!(made["data"]["age.agekey"], STANDARD.encode("AGE-SECRET-KEY-1TEST"));
    assert!(made.get("stringData").is_none());
    let export = kube.site.export().await;
    let text = export.to_string();
    assert!(!text.contains("AGE-SECRET-KEY") && !text.contains(&STANDARD.encode("AGE-SECRET-KEY-1TEST")));
    let objects = export["kubernetes"][0]["objects"].as_array().unwrap();
    let shown = objects.iter().find(|o| o["kind"] == "Secret").unwrap();
    assert!(shown["data"]["age.agekey"].as_str().unwrap().starts_with("sha256:"), "{shown}");
    for word in ["resourceVersion", "uid", "creationTimestamp", "PRIVATE KEY"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[tokio::test]
async fn uids_differ_between_incarnations_and_not_between_runs() {
    let mut uids = Vec::new();
    for _ in 0..2 {
        let kube = Kube::start().await;
        for _ in 0..2 {
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
            let (_, made) = kube.post("/api/v1/namespaces/default/configmaps", map).await;
            uids.push(made["metadata"]["uid"].clone());
            kube.delete("/api/v1/namespaces/default/configmaps/a").await;
        }
    }
    assert_eq!((&uids[0], &uids[1]), (&uids[2], &uids[3]));
    assert_ne!(uids[0], uids[1]);
}
