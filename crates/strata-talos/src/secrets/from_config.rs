//! The bundle of a cluster that exists, read from the configuration of one of its control planes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strata_secret::{SecretBytes, SecretString};

use crate::config::MachineConfig;
use crate::pki::Authority;
use crate::secrets::{BundleError, SecretsBundle};
use crate::shape::V1ALPHA1;
use crate::tree::Value;

impl SecretsBundle {
    /// Takes the secrets out of a control plane's configuration, of any version.
    pub fn from_config(config: &MachineConfig) -> Result<Self, BundleError> {
        let source = Source { config };
        let encryption =
            |name, key| source.v1alpha1(&["cluster", name]).or_else(|| source.encryption_key(key));
        let bundle = Self {
            cluster_id: source
                .either(&["cluster", "id"], "DiscoveryIdentityConfig", &["clusterID"])
                .ok_or(BundleError::Missing("cluster.id"))?
                .to_owned(),
            cluster_secret: source
                .either(&["cluster", "secret"], "DiscoveryIdentityConfig", &["clusterSecret"])
                .ok_or(BundleError::Missing("cluster.secret"))?
                .into(),
            bootstrap_token: source
                .v1alpha1(&["cluster", "token"])
                .ok_or(BundleError::Missing("secrets.bootstraptoken"))?
                .into(),
            secretbox_secret: encryption("secretboxEncryptionSecret", "key2").map(SecretString::from),
            aescbc_secret: encryption("aescbcEncryptionSecret", "key1").map(SecretString::from),
            trustd_token: source
                .v1alpha1(&["machine", "token"])
                .ok_or(BundleError::Missing("trustdinfo.token"))?
                .into(),
            etcd: source.encoded(&["cluster", "etcd", "ca"]).ok_or(BundleError::Missing("certs.etcd"))?,
            kubernetes: source
                .encoded(&["cluster", "ca"])
                .or_else(|| source.plain("KubeAPIServerCAConfig"))
                .ok_or(BundleError::Missing("certs.k8s"))?,
            aggregator: source
                .encoded(&["cluster", "aggregatorCA"])
                .or_else(|| source.plain("KubeAggregatorCAConfig"))
                .ok_or(BundleError::Missing("certs.k8saggregator"))?,
            service_account_key: source
                .service_account()
                .ok_or(BundleError::Missing("certs.k8sserviceaccount"))?,
            os: source.encoded(&["machine", "ca"]).ok_or(BundleError::Missing("certs.os"))?,
        };
        bundle.check()?;
        Ok(bundle)
    }
}

struct Source<'c> {
    config: &'c MachineConfig,
}

impl<'c> Source<'c> {
    fn text(&self, kind: &str, path: &[&str]) -> Option<&'c str> {
        self.config.document(kind)?.at(path)?.as_text().filter(|text| !text.is_empty())
    }

    fn v1alpha1(&self, path: &[&str]) -> Option<&'c str> {
        self.text(V1ALPHA1, path)
    }

    fn either(&self, old: &[&str], kind: &str, new: &[&str]) -> Option<&'c str> {
        self.v1alpha1(old).or_else(|| self.text(kind, new))
    }

    /// An authority of the old document: base64 of PEM.
    fn encoded(&self, path: &[&str]) -> Option<Authority> {
        let decode = |field| {
            let path: Vec<&str> = path.iter().copied().chain([field]).collect();
            STANDARD.decode(self.v1alpha1(&path)?).ok()
        };
        Some(Authority { certificate: decode("crt")?, key: SecretBytes::new(decode("key")?) })
    }

    /// An authority of a document of its own: PEM as it is.
    fn plain(&self, kind: &str) -> Option<Authority> {
        Some(Authority {
            certificate: self.text(kind, &["issuingCA", "cert"])?.as_bytes().to_vec(),
            key: SecretBytes::new(self.text(kind, &["issuingCA", "key"])?.as_bytes()),
        })
    }

    fn service_account(&self) -> Option<SecretBytes> {
        let old =
            self.v1alpha1(&["cluster", "serviceAccount", "key"]).and_then(|key| STANDARD.decode(key).ok());
        let new = || {
            self.text("KubeServiceAccountConfig", &["issuer", "privateKey"])
                .map(|key| key.as_bytes().to_vec())
        };
        old.or_else(new).map(SecretBytes::new)
    }

    /// The secret of a key with this name in the configuration of etcd's encryption.
    fn encryption_key(&self, name: &str) -> Option<&'c str> {
        let lists = |value: &'c Value, key: &str| value.get(key).and_then(Value::as_list).unwrap_or_default();
        let config = self.config.document("KubeEtcdEncryptionConfig")?.at(&["config"])?;
        lists(config, "resources")
            .iter()
            .flat_map(|resource| lists(resource, "providers"))
            .filter_map(|provider| provider.get("secretbox"))
            .flat_map(|secretbox| lists(secretbox, "keys"))
            .find(|key| key.get("name").and_then(Value::as_text) == Some(name))
            .and_then(|key| key.get("secret")?.as_text())
    }
}
