//! TrueNAS client: datasets over JSON-RPC 2.0 on a WebSocket, for TrueNAS 25.04 and later.
//!
//! Every function that writes makes one remote write. A dataset that is not provably empty is never deleted.

mod client;
mod connection;
mod dataset;
mod empty;
mod error;
pub mod kinds;
mod property;

pub use client::{TrueNasClient, TrueNasOptions};
pub use dataset::{Dataset, DatasetName, InvalidDatasetName, NewDataset, Property};
pub use empty::{Deletion, EMPTY_SIZE};
pub use error::{Trouble, TrueNasError};
pub use property::is_as_wanted;
