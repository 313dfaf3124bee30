//! The client of the Talos API: gRPC on port 50000 of every node, with mutual TLS or in maintenance mode.
//!
//! A [`TalosClient`] talks to one node with [`Credentials`] made from the cluster's secrets; [`TalosError`] says what failed and what
//! that means; [`Resource`] is anything that a node knows about itself. What is sent, the machine configuration, is made by `strata-talos`.
//!
//! A client talks to its node at its own address; it never asks a node to pass a call on to another. Every call is made once and
//! ends within a time that is known beforehand; whether one that failed may be made again follows from
//! [`TalosError::is_certainly_undone`] and from what the caller knows.
//!
//! ```no_run
//! use strata_net::DialMap;
//! use strata_secret::RandomSource;
//! use strata_talos::SecretsBundle;
//! use strata_talos_client::{Credentials, MachineStage, TalosClient};
//!
//! # async fn example(
//! #     bundle: &SecretsBundle, now: jiff::Timestamp, random: &mut dyn RandomSource,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = Credentials::issue(bundle, now, random)?;
//! let node = TalosClient::connect("192.0.2.41", &DialMap::new(), &credentials)?;
//! if node.machine_status().await?.is_some_and(|status| status.stage == MachineStage::Running) {
//!     let version = node.version().await?;
//!     assert!(version.tag.starts_with("v1."));
//! }
//! # Ok(())
//! # }
//! ```

mod archive;
mod channel;
mod client;
mod credentials;
mod error;
mod etcd;
mod machine;
mod message;
mod pin;
mod reset;
mod resource;
mod snapshot;
mod status;
mod tls;
mod typed;
mod upgrade;
mod watch;
mod wire;
mod witness;

pub use client::{TalosClient, Timeouts};
pub use credentials::Credentials;
pub use error::{TalosError, TalosReason, TlsProblem};
pub use etcd::{EtcdAlarm, EtcdAlarmKind, EtcdMember, EtcdStatus};
pub use machine::{Applied, ApplyMode, RebootMode, Service, TalosVersion};
pub use pin::{SpkiPin, SpkiPinError};
pub use reset::{Reset, Wipe};
pub use resource::{Resource, ResourceKind};
pub use snapshot::{Snapshot, is_intact as is_intact_snapshot};
pub use typed::{ConfigSlot, MachineStage, MachineStatus, Member, UnmetCondition};
pub use upgrade::{ImageStore, Upgraded};
pub use watch::{Watch, WatchEvent};
