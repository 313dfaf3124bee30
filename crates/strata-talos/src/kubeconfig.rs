//! kubeconfig: an administrator's access to a cluster's Kubernetes API, signed here and not asked of a node.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use strata_secret::{RandomSource, SecretString};

use crate::pki::{CertificateRequest, Issued, PkiError};
use crate::secrets::SecretsBundle;
use crate::tree::{Value, tree};
use crate::yaml::write;

/// How far a node's clock may be behind ours.
const SKEW: SignedDuration = SignedDuration::from_secs(10);

/// An administrator's access to one cluster.
#[derive(Clone)]
pub struct Kubeconfig {
    pub cluster_name: String,
    /// The URL of the Kubernetes API.
    pub server: String,
    /// The HTTP proxy through which it is reached, where it needs one.
    pub proxy: Option<String>,
    /// The authority that the API's certificate is checked against, in PEM.
    pub authority: Vec<u8>,
    pub client: Issued,
}

impl SecretsBundle {
    /// A certificate of the group `system:masters`.
    pub fn kubernetes_admin(
        &self,
        now: Timestamp,
        validity: Duration,
        random: &mut dyn RandomSource,
    ) -> Result<Issued, PkiError> {
        let request = CertificateRequest {
            common_name: Some("admin".to_owned()),
            organization: "system:masters".to_owned(),
            not_before: now.checked_sub(SKEW).map_err(|_| PkiError::Time)?,
            not_after: now.checked_add(validity).map_err(|_| PkiError::Time)?,
            key_encipherment: true,
        };
        self.kubernetes.issue(&request, random)
    }

    /// An administrator's kubeconfig.
    pub fn kubeconfig(
        &self,
        cluster_name: &str,
        server: &str,
        now: Timestamp,
        validity: Duration,
        random: &mut dyn RandomSource,
    ) -> Result<Kubeconfig, PkiError> {
        Ok(Kubeconfig {
            cluster_name: cluster_name.to_owned(),
            server: server.to_owned(),
            proxy: None,
            authority: self.kubernetes.certificate.clone(),
            client: self.kubernetes_admin(now, validity, random)?,
        })
    }
}

impl Kubeconfig {
    /// The name of the user and of the context.
    pub fn context(&self) -> String {
        format!("admin@{}", self.cluster_name)
    }

    /// The file, as kubectl reads it.
    pub fn to_yaml(&self) -> SecretString {
        let user = self.context();
        let mut cluster = vec![("certificate-authority-data", STANDARD.encode(&self.authority).into())];
        cluster.extend(self.proxy.as_deref().map(|proxy| ("proxy-url", proxy.into())));
        cluster.push(("server", self.server.as_str().into()));
        let cluster = Value::map(cluster);
        let context = tree! {
            "cluster" => self.cluster_name.as_str(),
            "namespace" => "default",
            "user" => user.as_str(),
        };
        let credentials = tree! {
            "client-certificate-data" => STANDARD.encode(&self.client.certificate),
            "client-key-data" => STANDARD.encode(self.client.key.expose()),
        };
        let file = tree! {
            "apiVersion" => "v1",
            "kind" => "Config",
            "clusters" => vec![named("cluster", &self.cluster_name, cluster)],
            "contexts" => vec![named("context", &user, context)],
            "current-context" => user.as_str(),
            "users" => vec![named("user", &user, credentials)],
        };
        SecretString::from(write(&file))
    }
}

fn named(key: &str, name: &str, value: Value) -> Value {
    Value::map([(key, value), ("name", name.into())])
}
