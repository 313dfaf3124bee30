//! talosconfig: how a client reaches a cluster's Talos API.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use strata_secret::{RandomSource, SecretString};

use crate::pki::{CertificateRequest, Issued, PkiError};
use crate::secrets::SecretsBundle;
use crate::tree::{Map, Value, tree};
use crate::yaml::write;

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalosRole {
    Admin,
    Operator,
    Reader,
    EtcdBackup,
}

impl TalosRole {
    pub fn name(self) -> &'static str {
        match self {
            Self::Admin => "os:admin",
            Self::Operator => "os:operator",
            Self::Reader => "os:reader",
            Self::EtcdBackup => "os:etcd:backup",
        }
    }
}

/// How long an administrator's certificate is valid if nobody says otherwise.
pub const CLIENT_VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

/// A client's access to one cluster.
#[derive(Clone)]
pub struct Talosconfig {
    /// The name of the context.
    pub context: String,
    /// Addresses of control planes; never the virtual one, which only etcd makes.
    pub endpoints: Vec<String>,
    /// The nodes that a command is for if it names none.
    pub nodes: Vec<String>,
    /// The authority that nodes' certificates are checked against, in PEM.
    pub authority: Vec<u8>,
    pub client: Issued,
}

impl SecretsBundle {
    /// A certificate for the Talos API.
    pub fn talos_client(
        &self,
        role: TalosRole,
        now: Timestamp,
        validity: Duration,
        random: &mut dyn RandomSource,
    ) -> Result<Issued, PkiError> {
        let request = CertificateRequest {
            common_name: None,
            organization: role.name().to_owned(),
            not_before: now,
            not_after: now.checked_add(validity).map_err(|_| PkiError::Time)?,
            key_encipherment: false,
        };
        self.os.issue(&request, random)
    }

    /// An administrator's talosconfig.
    pub fn talosconfig(
        &self,
        context: &str,
        endpoints: &[String],
        now: Timestamp,
        random: &mut dyn RandomSource,
    ) -> Result<Talosconfig, PkiError> {
        Ok(Talosconfig {
            context: context.to_owned(),
            endpoints: endpoints.to_vec(),
            nodes: Vec::new(),
            authority: self.os.certificate.clone(),
            client: self.talos_client(TalosRole::Admin, now, CLIENT_VALIDITY, random)?,
        })
    }
}

impl Talosconfig {
    /// The file, as talosctl reads it.
    pub fn to_yaml(&self) -> SecretString {
        let mut context = Map::new();
        let mut set = |key: &str, value: Value| drop(context.insert(key.to_owned(), value));
        set("endpoints", Value::texts(self.endpoints.iter().cloned()));
        if !self.nodes.is_empty() {
            set("nodes", Value::texts(self.nodes.iter().cloned()));
        }
        set("ca", STANDARD.encode(&self.authority).into());
        set("crt", STANDARD.encode(&self.client.certificate).into());
        set("key", STANDARD.encode(self.client.key.expose()).into());
        let file = tree! {
            "context" => self.context.as_str(),
            "contexts" => tree! { self.context.as_str() => context },
        };
        SecretString::from(write(&file))
    }
}
