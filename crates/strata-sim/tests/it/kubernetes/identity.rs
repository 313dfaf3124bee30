//! Who may ask, and what one learns before anything else.

use serde_json::{Value, json};

use super::client::{Authority, Kube, http};

async fn ask(client: &reqwest::Client, path: &str) -> (u16, Value) {
    let response = client.get(format!("https://192.0.2.41:6443{path}")).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

#[tokio::test]
async fn only_certificates_of_the_clusters_authority_are_worth_something() {
    let kube = Kube::start().await;
    let gateway = kube.site.sim.gateway();
    let nobody = http(&gateway, &kube.authority.certificate, None);
    let (status, body) = ask(&nobody, "/api/v1/nodes").await;
    assert_eq!((status, &body["kind"], &body["reason"]), (401, &json!("Status"), &json!("Unauthorized")));
    let stranger = Authority::new().issue("admin", "system:masters");
    let stranger = http(&gateway, &kube.authority.certificate, Some(stranger));
    assert_eq!(ask(&stranger, "/version").await.0, 401);
    let reader = kube.authority.issue("jane", "developers");
    let reader = http(&gateway, &kube.authority.certificate, Some(reader));
    let (status, body) = ask(&reader, "/api/v1/nodes").await;
    assert_eq!((status, body["reason"].as_str()), (403, Some("Forbidden")));
    let text = "nodes is forbidden: User \"jane\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    assert_eq!(body["message"], text);
    assert_eq!(ask(&reader, "/version").await.0, 200);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_believed() {
    let kube = Kube::start().await;
    let wrong = http(&kube.site.sim.gateway(), &Authority::new().certificate, None);
    assert!(wrong.get("https://192.0.2.41:6443/version").send().await.is_err());
}

#[tokio::test]
async fn the_api_says_what_it_serves() {
    let kube = Kube::start().await;
    assert_eq!(kube.get("/version").await["gitVersion"], "v1.36.3");
    assert_eq!(kube.get("/readyz").await, "ok");
    assert_eq!(kube.get("/api").await["versions"], json!(["v1"]));
    let groups = kube.get("/apis").await;
    let apps = groups["groups"].as_array().unwrap().iter().find(|g| g["name"] == "apps").unwrap();
    assert_eq!(apps["preferredVersion"]["groupVersion"], "apps/v1");
    let types = kube.get("/api/v1").await;
    let types = types["resources"].as_array().unwrap();
    let pods = types.iter().find(|r| r["name"] == "pods").unwrap();
    assert_eq!(
        (&pods["kind"], &pods["namespaced"], &pods["shortNames"]),
        (&json!("Pod"), &json!(true), &json!(["po"]))
    );
    let eviction = types.iter().find(|r| r["name"] == "pods/eviction").unwrap();
    assert_eq!((&eviction["group"], &eviction["kind"]), (&json!("policy"), &json!("Eviction")));
    assert_eq!(kube.status("/apis/nothing.example/v1/things").await, 404);
}

#[tokio::test]
async fn requests_are_counted_and_faults_strike_them() {
    let kube = Kube::start().await;
    kube.site.control("DELETE", "/_sim/requests", json!(null)).await;
    kube.site
        .fault(json!({ "kind": "refuse", "method": "PATCH", "path": "/kubernetes/*/configmaps/a", "status": 500, "text": "etcdserver: request timed out" }))
        .await;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "v" } });
    let (status, body) = kube.apply("/api/v1/namespaces/default/configmaps/a", "test", map.clone()).await;
    assert_eq!((status, body["message"].as_str()), (500, Some("etcdserver: request timed out")));
    assert_eq!(kube.status("/api/v1/namespaces/default/configmaps/a").await, 404, "it was not carried out");
    kube.site.fault(json!({ "kind": "lost", "writes": true })).await;
    let lost =
        kube.request("POST", "/api/v1/namespaces/default/configmaps").body(map.to_string()).send().await;
    assert!(lost.is_err(), "the answer is lost");
    assert_eq!(kube.status("/api/v1/namespaces/default/configmaps/a").await, 200, "it was carried out");
    let counts = kube.site.control("GET", "/_sim/requests", json!(null)).await;
    let row = json!({ "method": "GET", "path": "/kubernetes/{host}/api/v1/namespaces/{namespace}/configmaps/{name}", "count": 2 });
    assert!(counts["counts"].as_array().unwrap().contains(&row), "{counts}");
}

#[tokio::test]
async fn nothing_answers_without_a_leader_of_etcd() {
    let mut kube = Kube::start().await;
    kube.get("/api/v1/namespaces").await;
    kube.facts["api_up"] = json!(false);
    kube.tell().await;
    let (status, body) = kube.call("GET", "/api/v1/namespaces", "", &Value::Null).await;
    assert_eq!((status, body["reason"].as_str()), (503, Some("ServiceUnavailable")));
    assert_eq!(kube.status("/readyz").await, 500);
    kube.facts["nodes"][0]["api_up"] = json!(false);
    kube.tell().await;
    assert!(kube.request("GET", "/version").send().await.is_err(), "no API server runs");
}
