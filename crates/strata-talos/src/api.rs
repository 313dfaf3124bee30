//! The client of the Talos API: gRPC on port 50000 of every node, with mutual TLS or in maintenance mode.
//!
//! A [`TalosClient`] talks to one node, at its own address; it never asks a node to pass a call on to another. Every call is made once and
//! ends within a time that is known beforehand; whether one that failed may be made again follows from
//! [`TalosError::is_certainly_undone`] and from what the caller knows.

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
