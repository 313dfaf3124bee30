//! The state server: what OpenTofu, Terraform and Strata's own runs keep their states in.
//!
//! [`read_config`] reads its file, a [`Server`] listens, [`access`] says who may do what, [`back_up`] and [`restore`] keep and bring back all
//! states. A request is checked (`http`), becomes a command, and the [`storage`] decides and does it in one step.
//!
//! The same rules hold on every storage. No state is ever held in memory as a whole, nothing of one is logged, and guesses at passwords and
//! tokens are throttled in bounded memory.
//!
//! ```
//! use strata_server::read_config;
//!
//! let config = read_config("server.yaml", "listen: 127.0.0.1:8420\ndata: /var/lib/strata\n".to_owned());
//! assert!(config.is_ok());
//! let Err((_, found)) = read_config("server.yaml", "lissen: 127.0.0.1:8420\n".to_owned()) else { panic!() };
//! assert!(found.iter().any(|one| one.message.contains("`lissen`")));
//! ```

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
