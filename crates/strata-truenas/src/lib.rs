//! TrueNAS: its datasets over JSON-RPC 2.0 on a WebSocket, for TrueNAS 25.04 and later, and the provider that manages them.
//!
//! [`TrueNasClient`] is the connection, [`DatasetProvider`] what the engine asks, [`kinds`] what a dataset is in a spec.
//!
//! Every function of the client that writes makes one remote write. A dataset that is not provably empty is never deleted. A dataset
//! is managed where its ownership mark or the state says so; any other is left alone.
//!
//! ```no_run
//! use strata_net::WritePermit;
//! use strata_secret::SecretString;
//! use strata_truenas::{NewDataset, TrueNasClient, TrueNasError, TrueNasOptions};
//!
//! # async fn example() -> Result<(), TrueNasError> {
//! let options = TrueNasOptions::new("https://nas.example.org", SecretString::new("1-key".to_owned()));
//! let client = TrueNasClient::new(options)?;
//! let name = "tank/k8s/homelab".parse().expect("a name below a pool");
//! if client.dataset(&name).await?.is_none() {
//!     client.create_dataset(&WritePermit::unbound(), &NewDataset::new(name)).await?;
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod connection;
mod dataset;
mod empty;
mod error;
pub mod kinds;
mod property;
mod provider;

pub use client::{TrueNasClient, TrueNasOptions};
pub use dataset::{Dataset, DatasetName, InvalidDatasetName, NewDataset, Property};
pub use empty::{Deletion, EMPTY_SIZE};
pub use error::{Trouble, TrueNasError};
pub use property::is_as_wanted;
pub use provider::{DatasetProvider, MarkedDataset};
