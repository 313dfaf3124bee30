//! A cluster that no machines make, and a client of its API that goes through the gateway.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use reqwest::{Client, Method, Proxy};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};

use crate::client::Site;

/// An authority.
pub struct Authority {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::OrganizationName, "kubernetes");
        Self { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }

    /// A client's certificate and key.
    pub fn issue(&self, name: &str, organization: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let issuer =
            Issuer::from_ca_cert_pem(&self.certificate, KeyPair::from_pem(&self.key).unwrap()).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A simulator with one cluster.
pub struct Kube {
    pub site: Site,
    pub authority: Authority,
    pub facts: Value,
    http: Client,
}

pub fn node(name: &str, address: &str, control_plane: bool) -> Value {
    let taints = if control_plane {
        json!({ "node-role.kubernetes.io/control-plane": "NoSchedule" })
    } else {
        json!({})
    };
    json!({
        "name": name, "addresses": [address], "control_plane": control_plane, "labels": {}, "annotations": {},
        "taints": taints, "kubelet_version": "v1.36.3", "talos_version": "v1.13.9",
        "api_version": control_plane.then_some("v1.36.3"), "api_up": control_plane, "ready": true, "boot_id": "boot-1",
    })
}

/// A client with that certificate, or with none.
pub fn http(gateway: &str, authority: &str, identity: Option<(String, String)>) -> Client {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let tls = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    Client::builder()
        .tls_backend_preconfigured(tls)
        .proxy(Proxy::all(format!("http://{gateway}")).unwrap())
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

impl Kube {
    /// One control plane and two workers, with a network, at an instant pace.
    pub async fn start() -> Self {
        Self::start_with(Pace::INSTANT, "flannel").await
    }

    pub async fn start_with(pace: Pace, cni: &str) -> Self {
        let site = Site::start(SimOptions { pace, ..SimOptions::default() }).await;
        let authority = Authority::new();
        let facts = json!({
            "id": "etcd-1", "name": "homelab", "endpoint": "https://192.0.2.40:6443",
            "ca_pem": authority.certificate, "ca_key_pem": authority.key, "service_account_pem": "",
            "cert_sans": ["192.0.2.40"], "service_subnets": ["10.96.0.0/12"], "pod_subnets": ["10.244.0.0/16"],
            "dns_domain": "cluster.local", "cni": cni, "proxy": true, "api_up": true, "vip": "192.0.2.40",
            "nodes": [
                node("cp-1", "192.0.2.41", true), node("worker-1", "192.0.2.51", false),
                node("worker-2", "192.0.2.52", false),
            ],
        });
        let identity = authority.issue("admin", "system:masters");
        let http = http(&site.sim.gateway(), &authority.certificate, Some(identity));
        let kube = Self { site, authority, facts, http };
        kube.tell().await;
        kube
    }

    /// Tells the simulator what the machines are now.
    pub async fn tell(&self) {
        self.change(json!({ "standalone": self.facts })).await;
    }

    pub async fn change(&self, change: Value) -> Value {
        let done = self.site.control("POST", "/_sim/change", json!({ "kubernetes": change })).await;
        assert!(done.get("error").is_none(), "{done}");
        done
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.http.request(method, format!("https://192.0.2.40:6443{path}"))
    }

    pub async fn call(&self, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
        let mut request = self.request(method, path).header("User-Agent", "test/1");
        if !body.is_null() {
            request = request.header("Content-Type", kind).body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, "", &Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub async fn status(&self, path: &str) -> u16 {
        self.call("GET", path, "", &Value::Null).await.0
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("POST", path, "application/json", &body).await
    }

    pub async fn merge(&self, path: &str, body: Value) -> (u16, Value) {
        self.call("PATCH", path, "application/merge-patch+json", &body).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        self.call("DELETE", path, "", &Value::Null).await
    }

    /// Server-side apply.
    pub async fn apply(&self, path: &str, manager: &str, body: Value) -> (u16, Value) {
        let join = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{join}fieldManager={manager}");
        self.call("PATCH", &path, "application/apply-patch+yaml", &body).await
    }

    pub async fn names(&self, path: &str) -> Vec<String> {
        let list = self.get(path).await;
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": name, "image": format!("example/{name}:v1") }] },
            },
        },
    })
}

/// Whether a condition has that status.
pub fn condition(object: &Value, kind: &str) -> String {
    let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = list.iter().find(|c| c["type"] == kind);
    found.map_or_else(String::new, |c| c["status"].as_str().unwrap().to_owned())
}
