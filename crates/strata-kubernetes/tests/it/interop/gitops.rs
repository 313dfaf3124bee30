//! The gitops stage and a drain on a real API server.

use std::fs;

use serde_json::json;
use strata_kubernetes::flux::{FluxInstall, FluxSync, GitAuth, GitRef, Phase, age_secret};
use strata_kubernetes::{
    ApplyOptions, BootstrapSecret, Deletion, DrainError, DrainOptions, KubeClient, KubeOptions, Object,
    ObjectRef, Patience, Selector, Trouble, Until, WatchEvent,
};
use strata_net::WritePermit;
use strata_secret::SecretString;

use super::control_plane::ControlPlane;
use super::program;
use crate::api::silent;

const FORCE: ApplyOptions = ApplyOptions { force: true, dry_run: false };

fn free() -> Result<WritePermit<'static>, String> {
    Ok(WritePermit::unbound())
}

fn object(value: serde_json::Value) -> Object {
    Object::new(value).unwrap()
}

#[tokio::test]
#[ignore = "needs kube-apiserver, etcd, kubectl and the manifests of Flux: just interop kubernetes"]
async fn flux_and_its_secrets_are_really_applied() {
    let plane = ControlPlane::start().await;
    let client = plane.client();
    assert!(client.version().await.unwrap().git_version.starts_with("v1."));

    let install = FluxInstall::parse(&fs::read(program("STRATA_FLUX_MANIFESTS")).unwrap()).unwrap();
    assert!(install.phase(Phase::Definitions).count() >= 10);
    client.install_flux(&install, FORCE, Patience::seconds(120), &free, &silent).await.unwrap();
    let auth = GitAuth::Token { username: "git".to_owned(), password: "a-token".into(), ca: None };
    let sync = FluxSync::new("https://git.example/me/infra", GitRef::Branch("main".to_owned()), "clusters/a")
        .with_auth(&auth);
    let secrets = [
        auth.secret().unwrap(),
        age_secret(&SecretString::from("AGE-SECRET-KEY-1X")),
        BootstrapSecret::new("democratic-csi", "truenas-api").with("apiKey", b"1-\xff\x00".as_slice()),
    ];
    assert!(client.ensure_namespace(&WritePermit::unbound(), "democratic-csi").await.unwrap());
    for secret in &secrets {
        client.apply(&WritePermit::unbound(), &secret.object(), ApplyOptions::default()).await.unwrap();
        assert!(secret.is_in(&client.get(&secret.reference()).await.unwrap().unwrap()));
    }
    for object in sync.objects() {
        client.apply(&WritePermit::unbound(), &object, ApplyOptions::default()).await.unwrap();
    }

    let live = client.observe_flux().await.unwrap();
    assert!(live.runs(&install));
    assert!(
        live.source.as_ref().unwrap().follows(&sync) && live.kustomization.as_ref().unwrap().applies(&sync)
    );
    assert!(!live.source.unwrap().ready);
    // Nothing runs here: the wait ends, and says what is missing.
    let error =
        client.wait_for_phase(&install, Phase::Rest, Patience::seconds(1), &silent).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::NotReady, "{error}");

    // A second time nothing changes.
    let versions = || async {
        let mut versions = Vec::new();
        for object in install.objects() {
            let live = client.get(&object.reference()).await.unwrap().unwrap();
            versions.push(live.resource_version().unwrap().to_owned());
        }
        versions
    };
    let before = versions().await;
    client
        .install_flux(&install, ApplyOptions::default(), Patience::seconds(120), &free, &silent)
        .await
        .unwrap();
    assert_eq!(before, versions().await);

    // What somebody else takes is his, until it is taken back.
    plane.kubectl(&[
        "-n",
        "flux-system",
        "patch",
        "gitrepository",
        "flux-system",
        "--type=merge",
        "--field-manager=somebody",
        "-p",
        r#"{"spec":{"interval":"9m"}}"#,
    ]);
    let error = client
        .apply(&WritePermit::unbound(), &sync.git_repository(), ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.conflicts()[0].manager.as_deref(), Some("somebody"), "{error}");
    assert!(!client.observe_flux().await.unwrap().source.unwrap().follows(&sync));
    client.apply(&WritePermit::unbound(), &sync.git_repository(), FORCE).await.unwrap();
    assert!(client.observe_flux().await.unwrap().source.unwrap().follows(&sync));

    let wrong = object(json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "x", "namespace": "flux-system"}, "spec": {"url": "git@host:path", "interval": "1m"}}));
    assert_eq!(
        client.apply(&WritePermit::unbound(), &wrong, ApplyOptions::default()).await.unwrap_err().trouble(),
        Trouble::Invalid
    );
    let stranger = KubeOptions { identity: None, ..plane.options.clone() };
    let error = KubeClient::new(stranger).unwrap().nodes().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused, "{error}");
}

#[tokio::test]
#[ignore = "needs kube-apiserver, etcd, kubectl and the manifests of Flux: just interop kubernetes"]
async fn a_node_is_really_drained() {
    let plane = ControlPlane::start().await;
    let client = plane.client();
    let options = ApplyOptions::default();
    let node = client
        .apply(
            &WritePermit::unbound(),
            &object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})),
            options,
        )
        .await
        .unwrap();
    client.cordon(&WritePermit::unbound(), "n1").await.unwrap();
    assert!(client.node("n1").await.unwrap().unwrap().cordoned);

    client.ensure_namespace(&WritePermit::unbound(), "app").await.unwrap();
    let owner = |kind: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": true}]);
    let pod = |name: &str, kind: &str| {
        object(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "app", "labels": {"app": name}, "ownerReferences": owner(kind)},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "none"}]}}))
    };
    for pod in [pod("web", "ReplicaSet"), pod("agent", "DaemonSet")] {
        client.apply(&WritePermit::unbound(), &pod, options).await.unwrap();
    }
    let web = ObjectRef::namespaced("v1", "Pod", "app", "web");
    // Only a pod that runs is under the protection of a budget.
    plane.kubectl(&[
        "-n",
        "app",
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#,
    ]);
    let budget = object(
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "app"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
    );
    client.apply(&WritePermit::unbound(), &budget, options).await.unwrap();

    let now = DrainOptions { grace_seconds: Some(0), ..DrainOptions::new(Patience::seconds(2)) };
    let error = client.drain("n1", &now, &free, &silent).await.unwrap_err();
    assert!(
        matches!(&error, DrainError::Blocked(report) if report.remaining[0].pod.name == "web"),
        "{error}"
    );
    assert!(error.to_string().contains("disruption budget"), "{error}");

    let version = client.get(&web).await.unwrap().unwrap().resource_version().unwrap().to_owned();
    let mut watch = client.watch("v1", "Pod", &Selector::namespace("app"), Some(&version), 30).await.unwrap();
    client.delete(&WritePermit::unbound(), &budget.reference(), None).await.unwrap();
    let report = client.drain("n1", &now, &free, &silent).await.unwrap();
    assert_eq!(report.evicted.len(), 1);
    loop {
        if let WatchEvent::Deleted(pod) = watch.next().await.unwrap().unwrap() {
            assert_eq!(pod.name(), "web");
            break;
        }
    }
    client.wait_until(&web, &Until::Gone, Patience::seconds(10), &silent).await.unwrap();
    assert!(client.get(&ObjectRef::namespaced("v1", "Pod", "app", "agent")).await.unwrap().is_some());

    let error = client.delete_node(&WritePermit::unbound(), "n1", Some("another")).await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Conflict, "{error}");
    assert_eq!(client.delete_node(&WritePermit::unbound(), "n1", node.uid()).await.unwrap(), Deletion::Begun);
    assert!(client.nodes().await.unwrap().is_empty());
}
