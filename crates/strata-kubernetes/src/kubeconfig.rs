//! A kubeconfig with a client certificate, as Talos hands it out: read, and turned into options for the client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use strata_secret::SecretString;

use crate::KubeOptions;
use crate::manifest::read_values;

/// What a kubeconfig's current context says. It has no `Debug`.
#[derive(Clone)]
pub struct Kubeconfig {
    pub server: String,
    /// PEM.
    pub ca: Vec<u8>,
    pub certificate: Vec<u8>,
    pub key: SecretString,
}

/// Why a kubeconfig cannot be used. It never quotes the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeconfigError {
    #[error("the kubeconfig is not YAML")]
    NotYaml,
    #[error("the kubeconfig has no `{0}`")]
    Missing(&'static str),
    #[error("`{0}` of the kubeconfig is not base64")]
    NotBase64(&'static str),
}

impl Kubeconfig {
    pub fn parse(text: &SecretString) -> Result<Self, KubeconfigError> {
        let documents = read_values(text.expose()).map_err(|_| KubeconfigError::NotYaml)?;
        let config = documents.first().ok_or(KubeconfigError::NotYaml)?;
        let current = config.get("current-context").and_then(Value::as_str);
        let context = named(config, "contexts", current).ok_or(KubeconfigError::Missing("contexts"))?;
        let refers = |pointer: &str| context.pointer(pointer).and_then(Value::as_str);
        let cluster = named(config, "clusters", refers("/context/cluster"));
        let cluster = cluster.ok_or(KubeconfigError::Missing("clusters"))?;
        let user =
            named(config, "users", refers("/context/user")).ok_or(KubeconfigError::Missing("users"))?;
        let server = cluster.pointer("/cluster/server").and_then(Value::as_str);
        let key = decoded(user, "/user/client-key-data", "client-key-data")?;
        Ok(Self {
            server: server.ok_or(KubeconfigError::Missing("server"))?.to_owned(),
            ca: decoded(cluster, "/cluster/certificate-authority-data", "certificate-authority-data")?,
            certificate: decoded(user, "/user/client-certificate-data", "client-certificate-data")?,
            key: SecretString::new(
                String::from_utf8(key).map_err(|_| KubeconfigError::NotBase64("client-key-data"))?,
            ),
        })
    }

    /// Options for this cluster; the endpoint can be another one than the file names.
    pub fn options(&self) -> KubeOptions {
        KubeOptions::new(self.server.clone(), self.ca.clone(), self.certificate.clone(), self.key.clone())
    }
}

/// The entry of this name; the first one if no name is given.
fn named<'c>(config: &'c Value, list: &str, name: Option<&str>) -> Option<&'c Value> {
    let mut entries = config.get(list)?.as_array()?.iter();
    match name {
        Some(name) => entries.find(|entry| entry.get("name").and_then(Value::as_str) == Some(name)),
        None => entries.next(),
    }
}

fn decoded(entry: &Value, pointer: &str, name: &'static str) -> Result<Vec<u8>, KubeconfigError> {
    let text = entry.pointer(pointer).and_then(Value::as_str).ok_or(KubeconfigError::Missing(name))?;
    STANDARD.decode(text.trim()).map_err(|_| KubeconfigError::NotBase64(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_current_context() {
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: admin@b\ncontexts:\n- {name: admin@a, context: {cluster: a, user: ua}}\n- {name: admin@b, context: {cluster: b, user: ub}}\nclusters:\n- {name: a, cluster: {server: https://a, certificate-authority-data: YQ==}}\n- {name: b, cluster: {server: https://b:6443, certificate-authority-data: Yg==}}\nusers:\n- {name: ub, user: {client-certificate-data: Yw==, client-key-data: ZA==}}\n";
        let config = Kubeconfig::parse(&SecretString::from(text)).ok().unwrap();
        assert_eq!(
            (config.server.as_str(), &config.ca[..], config.key.expose()),
            ("https://b:6443", &b"b"[..], "d")
        );
        let error = Kubeconfig::parse(&SecretString::from(text.replace("ZA==", "Z*=="))).err().unwrap();
        assert_eq!(error.to_string(), "`client-key-data` of the kubeconfig is not base64");
        assert_eq!(Kubeconfig::parse(&SecretString::from("{a: [")).err(), Some(KubeconfigError::NotYaml));
        assert_eq!(
            Kubeconfig::parse(&SecretString::from("a: 1")).err(),
            Some(KubeconfigError::Missing("contexts"))
        );
    }
}
