//! Talos as text: what its machine configurations, keys and image names are, without asking any machine.
//!
//! [`SecretsBundle`] holds the keys of a cluster, [`generate()`] makes a [`MachineConfig`] for a version's [`Contract`], [`Patch`] changes one,
//! [`forecast()`] says which changes reboot a node, [`Factory`] names images, [`check_pair`] and its siblings say which versions go together.
//!
//! Everything here is a pure function of its input: time and randomness are passed in, and nothing opens a connection (that is
//! `strata-talos-client`). A configuration has no `Debug` and no `Serialize`, as any text in it may be a secret.
//!
//! ```
//! use strata_talos::{ConfigInput, Contract, Role, SecretsBundle, ServiceAccountKey, generate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut random = |buffer: &mut [u8]| buffer.fill(7);
//! let now = "2026-11-15T12:00:00Z".parse()?;
//! let bundle = SecretsBundle::generate(now, ServiceAccountKey::Ecdsa, &mut random)?;
//! let contract: Contract = "v1.13".parse()?;
//! let input = ConfigInput::new(contract, "lab", "https://192.0.2.40:6443", contract.default_kubernetes());
//! let config = generate(&input, &bundle, Role::Worker)?;
//! assert_eq!(config.is_control_plane(), Some(false));
//! assert!(!config.to_redacted_yaml().contains("BEGIN"));
//! # Ok(())
//! # }
//! ```

mod compatibility;
mod components;
mod config;
mod contract;
mod document;
mod etcd_database;
mod factory;
mod forecast;
mod gen_config;
mod generate;
mod kubeconfig;
mod node;
#[cfg(test)]
mod oracle;
mod patch;
mod pki;
pub mod running;
mod secrets;
mod shape;
mod spec;
mod talosconfig;
mod tree;
mod yaml;

pub use compatibility::{
    CompatibilityError, Version, check_kubernetes_upgrade, check_pair, check_talos_upgrade,
};
pub use components::{Component, ComponentError};
pub use config::{ConfigError, MachineConfig};
pub use contract::{Contract, UnknownContract};
pub use document::{Document, DocumentError, DocumentId};
pub use etcd_database::{DatabaseMember, EtcdDatabase};
pub use factory::{Arch, BadFactory, Factory, FactoryImage, Overlay, Platform, Schematic, SecureBoot};
pub use forecast::{ConfigChange, Forecast, RebootEffect, forecast};
pub use gen_config::{
    DEFAULT_KUBERNETES_VERSION, GenConfigArgs, GenConfigError, GeneratedFile, GeneratedFiles, PatchSource,
    gen_config,
};
pub use generate::{ConfigInput, EndpointError, GenerateError, RegistryMirror, Role, generate};
pub use kubeconfig::Kubeconfig;
pub use node::{Cni, DiskKey, KernelModule, Link, NodeError, NodeInput, NodeNetwork, NodePatch, node_config};
pub use patch::{Patch, PatchError, PatchesBetween};
pub use pki::{
    Authority, CertificateRequest, Issued, PairError, PkiError, certificate_der, certificate_fingerprint,
    check_certificate_key,
};
pub use secrets::{BundleError, SecretsBundle, ServiceAccountKey};
pub use spec::{Shown, config_spec, is_hidden_id};
pub use talosconfig::{CLIENT_VALIDITY, TalosRole, Talosconfig};
pub use tree::{Map, Value};
pub use yaml::YamlError;
