//! Server-side apply: what is sent, who else owns fields, and that no error shows a secret.

use serde_json::json;
use strata_kubernetes::{ApplyOptions, BootstrapSecret, Object, Trouble};
use strata_net::WritePermit;
use strata_secret::SecretString;

use crate::api::Api;

fn config_map() -> Object {
    Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}, "data": {"k": "v"}})).unwrap()
}

#[tokio::test]
async fn applies_as_the_field_manager() {
    let api = Api::start().await;
    let client = api.client();
    let made = client.apply(&WritePermit::unbound(), &config_map(), ApplyOptions::default()).await.unwrap();
    assert_eq!(made.text("/data/k"), Some("v"));
    let asked = api.with(|state| state.last.take().unwrap());
    assert_eq!(
        (asked.path.as_str(), asked.query.as_str(), asked.content_type.as_str()),
        (
            "/api/v1/namespaces/a/configmaps/x",
            "fieldManager=strata&force=false",
            "application/apply-patch+yaml"
        )
    );
    client
        .apply(&WritePermit::unbound(), &config_map(), ApplyOptions { force: true, dry_run: true })
        .await
        .unwrap();
    assert_eq!(
        api.with(|state| state.last.take().unwrap()).query,
        "fieldManager=strata&force=true&dryRun=All"
    );
    // The kind was asked for once.
    assert_eq!(api.log().iter().filter(|line| *line == "GET /api/v1").count(), 1);
}

#[tokio::test]
async fn a_namespace_is_made_once() {
    let api = Api::start().await;
    let client = api.client();
    assert!(client.ensure_namespace(&WritePermit::unbound(), "democratic-csi").await.unwrap());
    assert!(!client.ensure_namespace(&WritePermit::unbound(), "democratic-csi").await.unwrap());
}

#[tokio::test]
async fn a_conflict_names_the_owner() {
    let api = Api::start().await;
    let client = api.client();
    client.version().await.unwrap();
    api.with(|state| {
        state.hook = Some(Box::new(|asked, _| {
            (asked.method == "PATCH").then(|| {
                (409, json!({"kind": "Status", "reason": "Conflict", "message": "Apply failed with 1 conflict: conflict with \"kubectl\": .data.k",
                    "details": {"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\"", "field": ".data.k"}]}}))
            })
        }));
    });
    let error =
        client.apply(&WritePermit::unbound(), &config_map(), ApplyOptions::default()).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Conflict);
    assert_eq!(error.conflicts()[0].manager.as_deref(), Some("kubectl"));
    assert_eq!(error.conflicts()[0].field, ".data.k");
    assert_eq!(api.log().iter().filter(|line| line.starts_with("PATCH")).count(), 1);
}

#[tokio::test]
async fn a_server_that_quotes_a_secret_is_not_quoted() {
    let api = Api::start().await;
    let client = api.client();
    let secret = BootstrapSecret::new("a", "x").with("password", SecretString::from("correct-horse-battery"));
    secret.tell(client.redactor());
    api.with(|state| {
        state.hook = Some(Box::new(|asked, _| {
            (asked.method == "PATCH").then(|| {
                let body = String::from_utf8_lossy(&asked.body).into_owned();
                (422, json!({"kind": "Status", "reason": "Invalid", "message": format!("Secret is invalid: {body} correct-horse-battery")}))
            })
        }));
    });
    let error =
        client.apply(&WritePermit::unbound(), &secret.object(), ApplyOptions::default()).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert_eq!(error.trouble(), Trouble::Invalid);
    assert!(shown.contains("<secret>"), "{shown}");
    for leak in ["correct-horse", "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"] {
        assert!(!shown.contains(leak), "{shown}");
    }
}
