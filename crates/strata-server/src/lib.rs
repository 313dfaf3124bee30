//! The state server: what OpenTofu, Terraform and Strata's own runs keep their states in.
//!
//! A request is checked (`http`), becomes a command, and the storage decides and does it in one step (`rules`). The same rules hold on
//! every storage. No state is ever held in memory as a whole, and nothing of one is logged.

pub mod access;
mod audit;
mod backup;
mod config;
mod denials;
mod diff;
mod head;
mod http;
mod leases;
mod lock;
mod metrics;
mod name;
mod proxies;
mod receive;
mod rules;
mod scan;
mod server;
mod service;
pub mod storage;
mod tls;

pub use backup::{BackupError, back_up, restore};
pub use config::{Config, PostgresSettings, S3Settings, StorageSettings, read_config};
pub use head::{Head, Version};
pub use lock::{Beat, Lock, LockKind};
pub use name::{BadName, StateName};
pub use proxies::{BadNetwork, ForwardedHeader, Network, Proxies};
pub use rules::{Command, Content, Outcome, Refusal, Replaces, Write};
pub use server::{Server, ServerError, ServerOptions};
pub use tls::{TlsError, TlsFiles};
