//! The state server: what OpenTofu, Terraform and Strata's own runs keep their states in.
//!
//! A request is checked (`http`), becomes a command, and the storage decides and does it in one step (`strata-storage`). The same rules hold
//! on every storage. No state is ever held in memory as a whole, and nothing of one is logged.

pub mod access;
mod audit;
mod backup;
mod config;
mod denials;
mod diff;
mod http;
mod leases;
mod metrics;
mod proxies;
mod receive;
mod scan;
mod server;
mod service;
mod tls;

pub use backup::{BackupError, back_up, restore};
pub use config::{Config, PostgresSettings, S3Settings, StorageSettings, read_config};
pub use proxies::{BadNetwork, ForwardedHeader, Network, Proxies};
pub use server::{Server, ServerError, ServerOptions};
/// Where the states are.
pub use strata_storage as storage;
pub use tls::{TlsError, TlsFiles};
