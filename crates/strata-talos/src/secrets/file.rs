//! The file of a bundle: talosctl's `secrets.yaml`, which talhelper calls `talsecret.yaml`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strata_secret::{SecretBytes, SecretString};
use zeroize::Zeroizing;

use crate::pki::Authority;
use crate::secrets::{BundleError, SecretsBundle};
use crate::tree::{Map, Value, tree};
use crate::yaml::{Node, read, write};

impl SecretsBundle {
    /// Reads a bundle. Names are taken in any case and with underscores, as other tools write them.
    pub fn from_yaml(text: &SecretString) -> Result<Self, BundleError> {
        let documents = read(text.expose())?;
        let root = documents.first().filter(|root| root.as_map().is_some()).ok_or(BundleError::NotBundle)?;
        if root.get("sops").is_some() {
            return Err(BundleError::Encrypted);
        }
        let file = File { root };
        let encryption = |name| file.text(name).map(SecretString::from);
        let bundle = Self {
            cluster_id: file.required("cluster.id")?.to_owned(),
            cluster_secret: file.required("cluster.secret")?.into(),
            bootstrap_token: file.required("secrets.bootstraptoken")?.into(),
            secretbox_secret: encryption("secrets.secretboxencryptionsecret"),
            aescbc_secret: encryption("secrets.aescbcencryptionsecret"),
            trustd_token: file.required("trustdinfo.token")?.into(),
            etcd: file.authority("certs.etcd.crt", "certs.etcd.key")?,
            kubernetes: file.authority("certs.k8s.crt", "certs.k8s.key")?,
            aggregator: file.authority("certs.k8saggregator.crt", "certs.k8saggregator.key")?,
            service_account_key: SecretBytes::new(file.base64("certs.k8sserviceaccount.key")?.as_slice()),
            os: file.authority("certs.os.crt", "certs.os.key")?,
        };
        bundle.check()?;
        Ok(bundle)
    }

    /// The file as talosctl and talhelper read it. This is the one way out for all secrets at once.
    pub fn to_yaml(&self) -> SecretString {
        let mut secrets = Map::new();
        secrets.insert("bootstraptoken".to_owned(), self.bootstrap_token.expose().into());
        for (name, secret) in [
            ("aescbcencryptionsecret", &self.aescbc_secret),
            ("secretboxencryptionsecret", &self.secretbox_secret),
        ] {
            if let Some(secret) = secret {
                secrets.insert(name.to_owned(), secret.expose().into());
            }
        }
        let file = tree! {
            "cluster" => tree! { "id" => self.cluster_id.as_str(), "secret" => self.cluster_secret.expose() },
            "secrets" => secrets,
            "trustdinfo" => tree! { "token" => self.trustd_token.expose() },
            "certs" => tree! {
                "etcd" => pair(&self.etcd),
                "k8s" => pair(&self.kubernetes),
                "k8saggregator" => pair(&self.aggregator),
                "k8sserviceaccount" => tree! { "key" => STANDARD.encode(self.service_account_key.expose()) },
                "os" => pair(&self.os),
            },
        };
        SecretString::from(write(&file))
    }
}

fn pair(authority: &Authority) -> Value {
    tree! {
        "crt" => STANDARD.encode(&authority.certificate),
        "key" => STANDARD.encode(authority.key.expose()),
    }
}

struct File<'n> {
    root: &'n Node,
}

impl<'n> File<'n> {
    fn text(&self, path: &str) -> Option<&'n str> {
        let node = path.split('.').try_fold(self.root, |node, name| {
            let same = |key: &str| {
                let key = key.replace(['_', '-'], "").to_ascii_lowercase();
                key == name || name == "crt" && key == "cert"
            };
            node.as_map()?.iter().find(|(key, _)| same(key)).map(|(_, node)| node)
        })?;
        node.as_scalar()
            .filter(|scalar| !scalar.is_null())
            .map(|scalar| scalar.text.as_str())
            .filter(|text| !text.is_empty())
    }

    fn required(&self, path: &'static str) -> Result<&'n str, BundleError> {
        self.text(path).ok_or(BundleError::Missing(path))
    }

    fn base64(&self, path: &'static str) -> Result<Zeroizing<Vec<u8>>, BundleError> {
        let text = self.required(path)?;
        STANDARD.decode(text).map(Zeroizing::new).map_err(|_| BundleError::NotBase64(path))
    }

    fn authority(&self, certificate: &'static str, key: &'static str) -> Result<Authority, BundleError> {
        Ok(Authority {
            certificate: self.base64(certificate)?.to_vec(),
            key: SecretBytes::new(self.base64(key)?.as_slice()),
        })
    }
}
