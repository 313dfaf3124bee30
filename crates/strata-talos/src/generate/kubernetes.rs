//! Documents of Kubernetes, from 1.14 on, and the defaults that both forms share.

use super::legacy::KUBEPRISM_PORT;
use super::{Generator, pem_text};
use crate::document::Document;
use crate::tree::{Map, Value, tree};

pub(crate) const KUBELET: &str = "ghcr.io/siderolabs/kubelet";
pub(crate) const API_SERVER: &str = "registry.k8s.io/kube-apiserver";
pub(crate) const CONTROLLER_MANAGER: &str = "registry.k8s.io/kube-controller-manager";
pub(crate) const SCHEDULER: &str = "registry.k8s.io/kube-scheduler";
pub(crate) const PROXY: &str = "registry.k8s.io/kube-proxy";
pub(super) const EXCLUDE_FROM_LOAD_BALANCERS: &str =
    "node.kubernetes.io/exclude-from-external-load-balancers";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

impl Generator<'_> {
    /// What every node knows.
    pub(super) fn kubernetes_documents(&self) -> Vec<Document> {
        let cluster = tree! {
            "clusterName" => self.input.cluster_name.as_str(),
            "endpoint" => self.input.endpoint.as_str(),
        };
        let mut node = Map::new();
        if self.is_control_plane() {
            node.insert(
                "labels".to_owned(),
                tree! { CONTROL_PLANE => "", EXCLUDE_FROM_LOAD_BALANCERS => "" },
            );
            node.insert("taints".to_owned(), tree! { CONTROL_PLANE => "NoSchedule" });
        }
        let kubelet = tree! {
            "image" => self.input.image(KUBELET),
            "defaultRuntimeSeccompProfileEnabled" => true,
        };
        let network = tree! {
            "dnsDomain" => self.input.dns_domain.as_str(),
            "podSubnets" => Value::texts(self.input.pod_subnets.iter().cloned()),
            "serviceSubnets" => Value::texts(self.input.service_subnets.iter().cloned()),
        };
        let kubernetes = &self.secrets.kubernetes;
        let authority = if self.is_control_plane() {
            tree! { "issuingCA" => issuing(kubernetes) }
        } else {
            tree! { "acceptedCAs" => vec![Value::text(pem_text(&kubernetes.certificate).expose())] }
        };
        vec![
            Document::new("KubeClusterConfig", cluster),
            Document::new("KubeNodeConfig", Value::Map(node)),
            Document::new("KubeletConfig", kubelet),
            Document::new("KubeNetworkConfig", network),
            Document::new("KubeAPIServerCAConfig", authority),
            Document::new("KubePrismConfig", tree! { "port" => KUBEPRISM_PORT }),
        ]
    }

    /// What control planes alone know.
    pub(super) fn control_plane_documents(&self) -> Vec<Document> {
        let mut server = Map::new();
        server.insert("image".to_owned(), self.input.image(API_SERVER).into());
        if !self.input.additional_sans.is_empty() {
            let names = Value::texts(self.input.additional_sans.iter().cloned());
            server.insert("certExtraSANs".to_owned(), names);
        }
        let key = pem_text(self.secrets.service_account_key.expose());
        let issuer = tree! { "privateKey" => key.expose(), "issuerURL" => self.input.endpoint.as_str() };
        let authorizer = |name: &str, kind: &str| tree! { "name" => name, "type" => kind };
        let image = |repository| tree! { "image" => self.input.image(repository) };
        vec![
            Document::new(
                "KubeAggregatorCAConfig",
                tree! { "issuingCA" => issuing(&self.secrets.aggregator) },
            ),
            Document::new(
                "KubeAdmissionControlConfig",
                tree! { "name" => "PodSecurity", "configuration" => pod_security() },
            ),
            Document::new("KubeAuditPolicyConfig", tree! { "configuration" => audit_policy() }),
            Document::new("KubeAuthenticationConfig", tree! { "configuration" => authentication() }),
            Document::new("KubeAuthorizerConfig", authorizer("node", "Node")),
            Document::new("KubeAuthorizerConfig", authorizer("rbac", "RBAC")),
            Document::new("KubeEtcdEncryptionConfig", tree! { "config" => self.etcd_encryption() }),
            Document::new("KubeServiceAccountConfig", tree! { "issuer" => issuer }),
            Document::new("KubeAPIServerConfig", Value::Map(server)),
            Document::new("KubeControllerManagerConfig", image(CONTROLLER_MANAGER)),
            Document::new("KubeSchedulerConfig", image(SCHEDULER)),
            Document::new("KubeProxyConfig", image(PROXY)),
            Document::new("KubeFlannelCNIConfig", tree! { "backendType" => "vxlan", "backendPort" => 4789 }),
            Document::new("KubeCoreDNSConfig", tree! { "enabled" => true }),
        ]
    }

    /// The names of the keys are those that clusters of earlier versions have, so that etcd can still be read.
    fn etcd_encryption(&self) -> Value {
        let keys = [("key2", &self.secrets.secretbox_secret), ("key1", &self.secrets.aescbc_secret)];
        let providers = keys.into_iter().filter_map(|(name, secret)| {
            let key = tree! { "name" => name, "secret" => secret.as_ref()?.expose() };
            Some(tree! { "secretbox" => tree! { "keys" => vec![key] } })
        });
        let resource = tree! {
            "providers" => Value::List(providers.collect()),
            "resources" => Value::texts(["secrets"]),
        };
        tree! { "resources" => vec![resource] }
    }
}

fn issuing(authority: &crate::pki::Authority) -> Value {
    tree! {
        "cert" => pem_text(&authority.certificate).expose(),
        "key" => pem_text(authority.key.expose()).expose(),
    }
}

/// Pods are held to the baseline, and warned about what is not restricted.
pub(super) fn pod_security() -> Value {
    let defaults = tree! {
        "audit" => "restricted",
        "audit-version" => "latest",
        "enforce" => "baseline",
        "enforce-version" => "latest",
        "warn" => "restricted",
        "warn-version" => "latest",
    };
    let exemptions = tree! {
        "namespaces" => Value::texts(["kube-system"]),
        "runtimeClasses" => Value::List(Vec::new()),
        "usernames" => Value::List(Vec::new()),
    };
    tree! {
        "apiVersion" => "pod-security.admission.config.k8s.io/v1alpha1",
        "defaults" => defaults,
        "exemptions" => exemptions,
        "kind" => "PodSecurityConfiguration",
    }
}

pub(super) fn audit_policy() -> Value {
    tree! {
        "apiVersion" => "audit.k8s.io/v1",
        "kind" => "Policy",
        "rules" => vec![tree! { "level" => "Metadata" }],
    }
}

/// Anonymous users may ask whether the API is healthy, and nothing else.
fn authentication() -> Value {
    let paths = ["/livez", "/readyz", "/healthz"].map(|path| tree! { "path" => path });
    tree! {
        "anonymous" => tree! { "conditions" => Value::List(paths.into()), "enabled" => true },
        "jwt" => Value::List(Vec::new()),
    }
}
