//! The secrets bundle of a cluster: made once, kept in an encrypted file, the same in talosctl's and talhelper's hands.

mod file;
mod from_config;
mod generate;

use strata_secret::{Redactor, SecretBytes, SecretString};

pub use generate::ServiceAccountKey;

use crate::pki::{Authority, PkiError, PrivateKey};
use crate::yaml::YamlError;

/// All secrets that the configurations of one cluster are made from.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretsBundle {
    /// Names the cluster to the discovery service; not secret.
    pub cluster_id: String,
    pub cluster_secret: SecretString,
    /// Kubernetes' bootstrap token.
    pub bootstrap_token: SecretString,
    /// The key that etcd's secrets are encrypted with.
    pub secretbox_secret: Option<SecretString>,
    /// The same in clusters that began before Talos 1.3.
    pub aescbc_secret: Option<SecretString>,
    /// What a joining node shows to trustd.
    pub trustd_token: SecretString,
    pub etcd: Authority,
    pub kubernetes: Authority,
    pub aggregator: Authority,
    /// The key that service account tokens are signed with, in PEM.
    pub service_account_key: SecretBytes,
    /// Talos' own authority.
    pub os: Authority,
}

/// What is wrong with a secrets bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    #[error(transparent)]
    Yaml(#[from] YamlError),
    #[error("the file holds no secrets bundle")]
    NotBundle,
    #[error("the file is still encrypted with SOPS")]
    Encrypted,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{0}` is not base64")]
    NotBase64(&'static str),
    #[error(
        "only one of `secrets.secretboxencryptionsecret` and `secrets.aescbcencryptionsecret` can be there"
    )]
    TwoEncryptionSecrets,
    #[error("`{part}`: {error}")]
    Pki { part: &'static str, error: PkiError },
}

impl SecretsBundle {
    /// Checks that everything is there, can be read and belongs together.
    pub fn check(&self) -> Result<(), BundleError> {
        for (name, missing) in [
            ("cluster.id", self.cluster_id.is_empty()),
            ("cluster.secret", self.cluster_secret.is_empty()),
            ("secrets.bootstraptoken", self.bootstrap_token.is_empty()),
            ("trustdinfo.token", self.trustd_token.is_empty()),
        ] {
            if missing {
                return Err(BundleError::Missing(name));
            }
        }
        match (&self.secretbox_secret, &self.aescbc_secret) {
            (None, None) => return Err(BundleError::Missing("secrets.secretboxencryptionsecret")),
            (Some(_), Some(_)) => return Err(BundleError::TwoEncryptionSecrets),
            _ => {}
        }
        for (part, authority) in self.authorities() {
            authority.check().map_err(|error| BundleError::Pki { part, error })?;
        }
        PrivateKey::from_pem(self.service_account_key.expose())
            .and_then(|key| key.signer())
            .map_err(|error| BundleError::Pki { part: "certs.k8sserviceaccount", error })?;
        Ok(())
    }

    /// From now on, scrubs every secret of the bundle from text that others wrote.
    pub fn add_to(&self, redactor: &Redactor) {
        let texts = [&self.cluster_secret, &self.bootstrap_token, &self.trustd_token];
        let encryption = [&self.secretbox_secret, &self.aescbc_secret].into_iter().flatten();
        texts.into_iter().chain(encryption).for_each(|secret| redactor.add(secret));
        let keys = self.authorities().map(|(_, authority)| &authority.key);
        for key in keys.into_iter().chain([&self.service_account_key]) {
            if let Ok(text) = key.clone().into_string() {
                redactor.add(&text);
            }
        }
    }

    /// The authorities, each under its name in the file.
    pub fn authorities(&self) -> [(&'static str, &Authority); 4] {
        [
            ("certs.etcd", &self.etcd),
            ("certs.k8s", &self.kubernetes),
            ("certs.k8saggregator", &self.aggregator),
            ("certs.os", &self.os),
        ]
    }
}
