//! Definitions, their types, and what Flux makes of its objects.

use serde_json::{Value, json};

use super::client::{Kube, condition, deployment};

fn definition(kind: &str, plural: &str, group: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": spec, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } }],
        },
    })
}

async fn install(kube: &Kube) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let git = json!({ "type": "object", "required": ["url", "interval"], "properties": {
        "url": { "type": "string", "pattern": "^(http|https|ssh)://.*$" }, "interval": { "type": "string" },
        "timeout": { "type": "string", "default": "60s" },
        "ref": { "type": "object", "properties": { "branch": { "type": "string" } } },
        "secretRef": { "type": "object", "properties": { "name": { "type": "string" } } } } });
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    for (kind, plural, group, spec) in [
        ("GitRepository", "gitrepositories", "source.toolkit.fluxcd.io", git),
        ("Kustomization", "kustomizations", "kustomize.toolkit.fluxcd.io", any),
    ] {
        let object = definition(kind, plural, group, spec);
        let path = format!("{definitions}/{plural}.{group}");
        let (status, _) = kube.apply(&path, "strata", object).await;
        assert_eq!(status, 201);
        assert_eq!(condition(&kube.get(&path).await, "Established"), "True");
    }
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "flux-system" } });
    kube.apply("/api/v1/namespaces/flux-system", "strata", namespace).await;
}

async fn run_controllers(kube: &Kube) {
    for name in ["source-controller", "kustomize-controller"] {
        kube.post("/apis/apps/v1/namespaces/flux-system/deployments", deployment(name, 1)).await;
    }
}

const SOURCE: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system";
const KUSTOMIZATION: &str =
    "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flux-system";

fn source() -> Value {
    json!({ "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": { "name": "flux-system" },
        "spec": { "url": "ssh://git@git.example/me/infra", "interval": "1m0s", "ref": { "branch": "main" },
            "secretRef": { "name": "flux-system" } } })
}

fn kustomization() -> Value {
    json!({ "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": { "name": "flux-system" },
        "spec": { "path": "./clusters", "prune": true, "interval": "10m0s",
            "decryption": { "provider": "sops", "secretRef": { "name": "sops-age" } },
            "sourceRef": { "kind": "GitRepository", "name": "flux-system" } } })
}

fn ready(object: &Value) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|c| c["type"] == "Ready").cloned().unwrap_or_default();
    let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

async fn secret(kube: &Kube, name: &str, data: Value) {
    let object =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data });
    kube.apply(&format!("/api/v1/namespaces/flux-system/secrets/{name}"), "strata", object).await;
}

#[tokio::test]
async fn a_type_is_served_once_its_definition_is_established() {
    let kube = Kube::start_with("0.2".parse().unwrap(), "flannel").await;
    assert_eq!(kube.apply(SOURCE, "strata", source()).await.0, 404);
    let git = definition(
        "GitRepository",
        "gitrepositories",
        "source.toolkit.fluxcd.io",
        json!({ "type": "object" }),
    );
    let path =
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gitrepositories.source.toolkit.fluxcd.io";
    let (_, made) = kube.apply(path, "strata", git).await;
    assert_eq!(condition(&made, "Established"), "");
    while condition(&kube.get(path).await, "Established") != "True" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let types = kube.get("/apis/source.toolkit.fluxcd.io/v1").await;
    assert_eq!(types["resources"][0]["kind"], "GitRepository");
}

#[tokio::test]
async fn objects_are_held_against_their_schema() {
    let kube = Kube::start().await;
    install(&kube).await;
    let mut object = source();
    object["spec"]["url"] = json!("git@git.example:me/infra");
    object["spec"].as_object_mut().unwrap().remove("interval");
    let (status, refused) = kube.apply(SOURCE, "strata", object).await;
    assert_eq!((status, refused["reason"].as_str()), (422, Some("Invalid")));
    let fields: Vec<&str> = refused["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["spec.interval", "spec.url"]);
    let mut object = source();
    object["spec"]["surprise"] = json!(1);
    let (status, refused) =
        kube.apply(&format!("{SOURCE}?fieldValidation=Strict"), "strata", object.clone()).await;
    assert_eq!(
        (status, refused["message"].as_str()),
        (400, Some("strict decoding error: unknown field \"spec.surprise\""))
    );
    let (status, made) = kube.apply(SOURCE, "strata", object).await;
    assert_eq!((status, made["spec"].get("surprise"), &made["spec"]["timeout"]), (201, None, &json!("60s")));
}

#[tokio::test]
async fn flux_is_ready_when_everything_it_names_is_there() {
    let kube = Kube::start().await;
    install(&kube).await;
    kube.apply(SOURCE, "strata", source()).await;
    kube.apply(KUSTOMIZATION, "strata", kustomization()).await;
    assert_eq!(ready(&kube.get(SOURCE).await).0, "", "nobody looks at it yet");
    run_controllers(&kube).await;
    assert_eq!(
        ready(&kube.get(SOURCE).await),
        ("False".to_owned(), "AuthenticationOptionsFailed".to_owned())
    );
    assert_eq!(ready(&kube.get(KUSTOMIZATION).await), ("False".to_owned(), "BuildFailed".to_owned()));
    secret(&kube, "flux-system", json!({ "identity": "key", "known_hosts": "host" })).await;
    let git = kube.get(SOURCE).await;
    assert_eq!(ready(&git).0, "True");
    assert!(git["status"]["artifact"]["revision"].as_str().unwrap().starts_with("main@sha1:"));
    secret(&kube, "sops-age", json!({ "age.agekey": "AGE-SECRET-KEY-1X" })).await;
    let applied = kube.get(KUSTOMIZATION).await;
    assert_eq!(ready(&applied), ("True".to_owned(), "ReconciliationSucceeded".to_owned()));
    assert_eq!(applied["status"]["lastAppliedRevision"], git["status"]["artifact"]["revision"]);
    assert_eq!(applied["status"]["observedGeneration"], applied["metadata"]["generation"]);
    let (status, again) = kube.apply(KUSTOMIZATION, "strata", kustomization()).await;
    assert_eq!(
        (status, &again["metadata"]["resourceVersion"]),
        (200, &applied["metadata"]["resourceVersion"])
    );
    kube.change(json!({ "source": { "url": "*/infra", "error": "authentication required" } })).await;
    assert_eq!(ready(&kube.get(SOURCE).await), ("False".to_owned(), "GitOperationFailed".to_owned()));
}

#[tokio::test]
async fn objects_of_flux_need_its_controllers_to_go() {
    let kube = Kube::start().await;
    install(&kube).await;
    run_controllers(&kube).await;
    kube.apply(KUSTOMIZATION, "strata", kustomization()).await;
    kube.delete("/apis/apps/v1/namespaces/flux-system/deployments/kustomize-controller").await;
    kube.delete(KUSTOMIZATION).await;
    assert_eq!(kube.status(KUSTOMIZATION).await, 200, "its finalizer is still there");
    kube.delete("/api/v1/namespaces/flux-system").await;
    assert_eq!(kube.get("/api/v1/namespaces/flux-system").await["status"]["phase"], "Terminating");
    kube.merge(KUSTOMIZATION, json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(kube.status("/api/v1/namespaces/flux-system").await, 404);
}
