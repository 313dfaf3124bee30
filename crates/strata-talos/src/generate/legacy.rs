//! The document with `machine` and `cluster`: nearly everything up to 1.13, what is left from 1.14 on.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Generator;
use super::kubernetes::{
    API_SERVER, CONTROLLER_MANAGER, EXCLUDE_FROM_LOAD_BALANCERS, KUBELET, PROXY, SCHEDULER, audit_policy,
    pod_security,
};
use crate::document::Document;
use crate::pki::Authority;
use crate::shape::V1ALPHA1;
use crate::tree::{Map, Value, tree};

pub(super) const KUBEPRISM_PORT: i32 = 7445;

impl Generator<'_> {
    pub(super) fn legacy(&self) -> Document {
        let body = tree! {
            "version" => "v1alpha1",
            "debug" => false,
            "persist" => true,
            "machine" => self.legacy_machine(),
            "cluster" => self.legacy_cluster(),
        };
        Document::new(V1ALPHA1, body)
    }

    fn legacy_machine(&self) -> Map {
        let contract = self.input.contract;
        let mut machine = Map::new();
        let mut set = |key: &str, value: Value| drop(machine.insert(key.to_owned(), value));
        set("type", self.role.name().into());
        set("token", self.secrets.trustd_token.expose().into());
        set("ca", self.certificate(&self.secrets.os));
        if !self.input.additional_sans.is_empty() {
            set("certSANs", Value::texts(self.input.additional_sans.iter().cloned()));
        }
        set("features", Value::Map(self.features()));
        if !contract.kubernetes_documents() {
            let kubelet = tree! {
                "image" => self.input.image(KUBELET),
                "defaultRuntimeSeccompProfileEnabled" => true,
                "disableManifestsDirectory" => true,
            };
            set("kubelet", kubelet);
            set("install", Value::Map(self.install()));
            if self.is_control_plane() {
                set("nodeLabels", tree! { EXCLUDE_FROM_LOAD_BALANCERS => "" });
            }
        }
        if !contract.network_documents() && !self.input.registry_mirrors.is_empty() {
            set("registries", tree! { "mirrors" => self.mirrors() });
        }
        if !contract.kubespan_document() {
            let mut network = Map::new();
            if self.input.kubespan {
                network.insert("kubespan".to_owned(), tree! { "enabled" => true });
            }
            set("network", Value::Map(network));
        }
        machine
    }

    fn features(&self) -> Map {
        let contract = self.input.contract;
        let mut features = Map::new();
        let mut set = |key: &str, value: Value| drop(features.insert(key.to_owned(), value));
        set("diskQuotaSupport", true.into());
        if !contract.network_documents() {
            set("rbac", true.into());
            set("stableHostname", true.into());
            set("apidCheckExtKeyUsage", true.into());
        }
        if !contract.kubernetes_documents() {
            set("kubePrism", tree! { "enabled" => true, "port" => KUBEPRISM_PORT });
            set("hostDNS", tree! { "enabled" => true, "forwardKubeDNSToHost" => true });
        }
        features
    }

    fn install(&self) -> Map {
        let mut install = Map::new();
        let mut set = |key: &str, value: Value| drop(install.insert(key.to_owned(), value));
        for (key, value) in [("disk", &self.input.install_disk), ("image", &self.input.install_image)] {
            if let Some(value) = value {
                set(key, value.as_str().into());
            }
        }
        set("wipe", false.into());
        if self.input.contract.network_documents() {
            set("grubUseUKICmdline", true.into());
        }
        install
    }

    fn mirrors(&self) -> Map {
        let mirrors = self.input.registry_mirrors.iter();
        mirrors
            .map(|mirror| {
                (mirror.host.clone(), tree! { "endpoints" => Value::texts(mirror.endpoints.iter().cloned()) })
            })
            .collect()
    }

    fn legacy_cluster(&self) -> Map {
        let mut cluster = Map::new();
        let mut set = |key: &str, value: Value| drop(cluster.insert(key.to_owned(), value));
        set("token", self.secrets.bootstrap_token.expose().into());
        if self.is_control_plane() {
            set("etcd", tree! { "ca" => self.certificate(&self.secrets.etcd) });
        }
        if self.input.contract.kubernetes_documents() {
            return cluster;
        }
        set("id", self.secrets.cluster_id.as_str().into());
        set("secret", self.secrets.cluster_secret.expose().into());
        set("clusterName", self.input.cluster_name.as_str().into());
        set("controlPlane", tree! { "endpoint" => self.input.endpoint.as_str() });
        set("ca", self.certificate(&self.secrets.kubernetes));
        let network = tree! {
            "dnsDomain" => self.input.dns_domain.as_str(),
            "podSubnets" => Value::texts(self.input.pod_subnets.iter().cloned()),
            "serviceSubnets" => Value::texts(self.input.service_subnets.iter().cloned()),
        };
        set("network", network);
        let discovery = tree! {
            "enabled" => self.input.cluster_discovery,
            "registries" => tree! { "kubernetes" => tree! { "disabled" => true } },
        };
        set("discovery", discovery);
        if self.is_control_plane() {
            cluster.extend(self.legacy_control_plane());
        }
        cluster
    }

    fn legacy_control_plane(&self) -> Map {
        let mut cluster = Map::new();
        let mut set = |key: &str, value: Value| drop(cluster.insert(key.to_owned(), value));
        if let Some(secret) = &self.secrets.secretbox_secret {
            set("secretboxEncryptionSecret", secret.expose().into());
        }
        set("aggregatorCA", self.certificate(&self.secrets.aggregator));
        let key = STANDARD.encode(self.secrets.service_account_key.expose());
        set("serviceAccount", tree! { "key" => key });
        set("apiServer", Value::Map(self.legacy_api_server()));
        for (name, image) in
            [("controllerManager", CONTROLLER_MANAGER), ("proxy", PROXY), ("scheduler", SCHEDULER)]
        {
            set(name, tree! { "image" => self.input.image(image) });
        }
        cluster
    }

    fn legacy_api_server(&self) -> Map {
        let mut server = Map::new();
        let mut set = |key: &str, value: Value| drop(server.insert(key.to_owned(), value));
        set("image", self.input.image(API_SERVER).into());
        let mut names = self.input.additional_sans.clone();
        if !self.input.contract.network_documents() {
            names.insert(0, self.endpoint_host.clone());
            set("disablePodSecurityPolicy", true.into());
        }
        if !names.is_empty() {
            set("certSANs", Value::texts(names));
        }
        let plugin = tree! { "name" => "PodSecurity", "configuration" => pod_security() };
        set("admissionControl", Value::List(vec![plugin]));
        set("auditPolicy", audit_policy());
        server
    }

    /// Control planes get the key, workers the certificate alone.
    fn certificate(&self, authority: &Authority) -> Value {
        let key =
            if self.is_control_plane() { STANDARD.encode(authority.key.expose()) } else { String::new() };
        tree! { "crt" => STANDARD.encode(&authority.certificate), "key" => key }
    }
}
