//! The client against the simulated cluster, which was written by the same facts and without this code.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};
use strata_kubernetes::flux::{FluxInstall, FluxSync, GitAuth, GitRef, Phase, age_secret};
use strata_kubernetes::{
    ApplyOptions, DrainError, DrainOptions, KubeClient, KubeOptions, Object, Patience, Trouble,
};
use strata_net::{DialMap, WritePermit};
use strata_secret::SecretString;
use strata_sim::{Pace, Sim, SimOptions};

use crate::api::{Quick, silent};

struct Cluster {
    _sim: Sim,
    options: KubeOptions,
}

impl Cluster {
    /// One control plane and two workers.
    async fn start() -> Self {
        let sim = Sim::start(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() }).await.unwrap();
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_pem = ca.self_signed(&ca_key).unwrap().pem();
        let issuer = Issuer::new(ca, &ca_key);
        let key = KeyPair::generate().unwrap();
        let mut admin = CertificateParams::default();
        admin.distinguished_name.push(DnType::CommonName, "admin");
        admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin = admin.signed_by(&key, &issuer).unwrap().pem();
        let node = |name: &str, address: &str, control_plane: bool| {
            json!({"name": name, "addresses": [address], "control_plane": control_plane, "labels": {}, "annotations": {},
                "taints": {}, "kubelet_version": "v1.36.3", "talos_version": "v1.13.9",
                "api_version": control_plane.then_some("v1.36.3"), "api_up": control_plane, "ready": true, "boot_id": "b"})
        };
        let facts = json!({
            "id": "etcd-1", "name": "homelab", "endpoint": "https://192.0.2.40:6443", "ca_pem": ca_pem,
            "ca_key_pem": ca_key.serialize_pem(), "service_account_pem": "", "cert_sans": ["192.0.2.40"],
            "service_subnets": ["10.96.0.0/12"], "pod_subnets": ["10.244.0.0/16"], "dns_domain": "cluster.local",
            "cni": "flannel", "proxy": true, "api_up": true, "vip": "192.0.2.40",
            "nodes": [node("cp-1", "192.0.2.41", true), node("w-1", "192.0.2.51", false), node("w-2", "192.0.2.52", false)],
        });
        sim.change(&json!({"kubernetes": {"standalone": facts}})).await.unwrap();
        let mut dial = DialMap::new();
        dial.insert("*", sim.gateway());
        let key = SecretString::new(key.serialize_pem());
        let options = KubeOptions { dial, ..KubeOptions::new("https://192.0.2.40:6443", ca_pem, admin, key) };
        Self { _sim: sim, options }
    }

    fn client(&self) -> KubeClient {
        KubeClient::new(self.options.clone()).unwrap()
    }
}

fn free() -> Result<WritePermit<'static>, String> {
    Ok(WritePermit::unbound())
}

fn object(value: Value) -> Object {
    Object::new(value).unwrap()
}

/// The two kinds that the client needs, and one controller.
fn manifests() -> String {
    let definition = |group: &str, plural: &str, kind: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
    };
    let labels = json!({"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/version": "v2.9.4"});
    let documents = [
        definition("source.toolkit.fluxcd.io", "gitrepositories", "GitRepository"),
        definition("kustomize.toolkit.fluxcd.io", "kustomizations", "Kustomization"),
        deployment("flux-system", "source-controller", 1, &labels),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}),
    ];
    documents.map(|document| document.to_string()).join("\n---\n")
}

fn deployment(namespace: &str, name: &str, replicas: u32, labels: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "manager", "image": format!("example/{name}:v1")}]}}}})
}

#[tokio::test]
async fn flux_comes_up_on_the_simulator() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    client.wait_ready(Patience::seconds(30), &silent).await.unwrap();
    assert!(client.nodes().await.unwrap().iter().all(|node| node.ready));
    let install = FluxInstall::parse(manifests().as_bytes()).unwrap();
    for _ in 0..2 {
        client
            .install_flux(&install, ApplyOptions::default(), Patience::seconds(30), &free, &silent)
            .await
            .unwrap();
        client.wait_for_phase(&install, Phase::Rest, Patience::seconds(30), &silent).await.unwrap();
    }
    let auth = GitAuth::Token { username: "git".to_owned(), password: "a-token".into(), ca: None };
    let sync = FluxSync::new("https://git.example/me/infra", GitRef::Branch("main".to_owned()), "a")
        .with_auth(&auth);
    let secrets = [auth.secret().unwrap(), age_secret(&SecretString::from("AGE-SECRET-KEY-1X"))];
    for secret in &secrets {
        client.apply(&WritePermit::unbound(), &secret.object(), ApplyOptions::default()).await.unwrap();
        assert!(secret.is_in(&client.get(&secret.reference()).await.unwrap().unwrap()));
    }
    for object in sync.objects() {
        client.apply(&WritePermit::unbound(), &object, ApplyOptions::default()).await.unwrap();
    }
    let live = client.observe_flux().await.unwrap();
    assert!(live.runs(&install) && live.controllers.iter().all(|controller| controller.available));
    assert!(live.source.unwrap().follows(&sync) && live.kustomization.unwrap().applies(&sync));
}

#[tokio::test]
async fn a_worker_is_emptied_on_the_simulator() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let options = ApplyOptions::default();
    client
        .apply(&WritePermit::unbound(), &object(deployment("default", "web", 2, &json!({}))), options)
        .await
        .unwrap();
    let budget = |least: u32| {
        object(
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}}),
        )
    };
    client.apply(&WritePermit::unbound(), &budget(2), options).await.unwrap();
    client.cordon(&WritePermit::unbound(), "w-1").await.unwrap();
    let quick = KubeOptions { clock: Arc::new(Quick::default()), ..cluster.options.clone() };
    let drain = DrainOptions::new(Patience::seconds(10));
    let error = KubeClient::new(quick).unwrap().drain("w-1", &drain, &free, &silent).await.unwrap_err();
    assert!(matches!(&error, DrainError::Blocked(report) if report.remaining.len() == 1), "{error}");
    client.apply(&WritePermit::unbound(), &budget(1), options).await.unwrap();
    let report = client.drain("w-1", &drain, &free, &silent).await.unwrap();
    assert_eq!(report.evicted.len(), 1);
    client.uncordon(&WritePermit::unbound(), "w-1").await.unwrap();
    assert!(!client.node("w-1").await.unwrap().unwrap().cordoned);
    // A control plane's own pods are static, and stay.
    client.cordon(&WritePermit::unbound(), "cp-1").await.unwrap();
    let report = client.drain("cp-1", &drain, &free, &silent).await.unwrap();
    assert!(report.evicted.iter().all(|pod| !pod.name.starts_with("kube-apiserver")), "{report:?}");

    let stranger = KubeOptions { identity: None, ..cluster.options.clone() };
    let error = KubeClient::new(stranger).unwrap().nodes().await.unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused, "{error}");
}
