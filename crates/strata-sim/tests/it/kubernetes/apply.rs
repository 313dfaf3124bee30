//! Server-side apply: what it makes, owns, takes back and refuses.

use serde_json::{Value, json};

use super::client::{Kube, deployment};

const MAP: &str = "/api/v1/namespaces/default/configmaps/a";

fn map(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data })
}

#[tokio::test]
async fn an_apply_makes_changes_and_takes_back() {
    let kube = Kube::start().await;
    let (status, made) = kube.apply(MAP, "strata", map(json!({ "a": "1", "b": "2" }))).await;
    assert_eq!((status, made["metadata"]["uid"].as_str().unwrap().len()), (201, 36));
    let entry = &made["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("strata"), &json!("Apply")));
    assert_eq!(entry["fieldsV1"], json!({ "f:data": { "f:a": {}, "f:b": {} } }));
    let (status, same) = kube.apply(MAP, "strata", map(json!({ "a": "1", "b": "2" }))).await;
    assert_eq!(status, 200);
    assert_eq!(same, made, "nothing changed, so the revision did not either");
    let (_, less) = kube.apply(MAP, "strata", map(json!({ "a": "1" }))).await;
    assert_eq!(less["data"], json!({ "a": "1" }));
    assert_ne!(less["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn someone_elses_field_is_a_conflict_unless_forced() {
    let kube = Kube::start().await;
    kube.apply(MAP, "strata", map(json!({ "a": "1" }))).await;
    kube.merge(&format!("{MAP}?fieldManager=kubectl-edit"), json!({ "data": { "a": "2" } })).await;
    let (status, refused) = kube.apply(MAP, "strata", map(json!({ "a": "1" }))).await;
    assert_eq!((status, refused["reason"].as_str()), (409, Some("Conflict")));
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using v1: .data.a"
    );
    assert_eq!(refused["details"]["causes"][0]["field"], ".data.a");
    let (status, forced) = kube.apply(&format!("{MAP}?force=true"), "strata", map(json!({ "a": "1" }))).await;
    assert_eq!((status, &forced["data"]["a"]), (200, &json!("1")));
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let kube = Kube::start().await;
    let (status, made) = kube.apply(&format!("{MAP}?dryRun=All"), "strata", map(json!({ "a": "1" }))).await;
    assert_eq!((status, &made["data"]["a"]), (201, &json!("1")));
    assert_eq!(kube.status(MAP).await, 404);
    kube.apply(MAP, "strata", map(json!({ "a": "1" }))).await;
    let (_, other) = kube.apply(&format!("{MAP}?dryRun=All"), "strata", map(json!({ "a": "2" }))).await;
    assert_eq!(other["data"]["a"], "2");
    assert_eq!(kube.get(MAP).await["data"]["a"], "1");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let kube = Kube::start().await;
    let (status, body) = kube.call("PATCH", MAP, "application/apply-patch+yaml", &map(json!({}))).await;
    assert_eq!((status, body["reason"].as_str()), (422, Some("Invalid")), "no field manager");
    let (status, body) = kube.apply("/api/v1/namespaces/none/configmaps/a", "strata", map(json!({}))).await;
    assert_eq!((status, body["message"].as_str()), (404, Some("namespaces \"none\" not found")));
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "b" } });
    assert_eq!(kube.apply(MAP, "strata", other).await.0, 400, "another name");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "data": { "x": "not base64!" } });
    assert_eq!(kube.apply("/api/v1/namespaces/default/secrets/a", "strata", secret).await.0, 400);
    let mut wrong = deployment("web", 1);
    wrong["spec"]["template"]["metadata"]["labels"] = json!({ "app": "other" });
    let (status, body) =
        kube.apply("/apis/apps/v1/namespaces/default/deployments/web", "strata", wrong).await;
    assert_eq!(status, 422);
    assert!(
        body["message"].as_str().unwrap().starts_with("Deployment.apps \"web\" is invalid: spec.template"),
        "{body}"
    );
}

#[tokio::test]
async fn yaml_is_understood_and_protobuf_is_not() {
    let kube = Kube::start().await;
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  text: |\n    two\n    lines\n";
    let request = kube.request("PATCH", "/api/v1/namespaces/default/configmaps/y?fieldManager=test");
    let response =
        request.header("Content-Type", "application/apply-patch+yaml").body(yaml).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 201);
    assert_eq!(response.json::<Value>().await.unwrap()["data"]["text"], "two\nlines\n");
    let request = kube.request("POST", "/api/v1/namespaces/default/configmaps");
    let response = request
        .header("Content-Type", "application/vnd.kubernetes.protobuf")
        .body("k8s\0")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 415);
}

#[tokio::test]
async fn defaults_are_filled_in_and_belong_to_nobody() {
    let kube = Kube::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    let mut wanted = deployment("web", 1);
    wanted["spec"].as_object_mut().unwrap().remove("replicas");
    let (_, made) = kube.apply(path, "strata", wanted.clone()).await;
    assert_eq!((&made["spec"]["replicas"], &made["metadata"]["generation"]), (&json!(1), &json!(1)));
    assert_eq!(made["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    let (status, _) = kube.apply(path, "autoscaler", json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": { "replicas": 3 },
    })).await;
    assert_eq!(status, 200, "nobody owned the default");
    let (_, again) = kube.apply(path, "strata", wanted).await;
    assert_eq!((&again["spec"]["replicas"], &again["metadata"]["generation"]), (&json!(3), &json!(2)));
}
