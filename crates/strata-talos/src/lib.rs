//! Talos PKI, machine config, image factory and API client.

pub mod api;
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
pub use pki::{Authority, CertificateRequest, Issued, PkiError};
pub use secrets::{BundleError, SecretsBundle, ServiceAccountKey};
pub use spec::{Shown, config_spec, is_hidden_id};
pub use talosconfig::{CLIENT_VALIDITY, TalosRole, Talosconfig};
pub use tree::{Map, Value};
pub use yaml::YamlError;
