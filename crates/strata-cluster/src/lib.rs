//! A Talos cluster as the engine sees it: its machines, its etcd, its Kubernetes, and the hand-over to Flux.
//!
//! A [`Cluster`] is the connections to one cluster and its rollout lock, made from [`ClusterOptions`]. [`ClusterProvider`] is what the engine
//! asks about its resources ([`kinds`]), [`GuardedProvider`] stands before the provider of its VMs, [`RemovedCluster`] is one that left the
//! source. [`health()`], [`take_snapshot`] and the reset are for the command line.
//!
//! Two rules hold for everything here. What disturbs a node happens under one lock for the whole cluster, after a look at etcd and the other
//! control planes, and ends with a healthy node: so one node at a time, whatever order the engine chooses. And etcd is bootstrapped only
//! where every control plane says that it holds no data: a second cluster beside the first is worse than any error.
//!
//! ```no_run
//! use std::sync::Arc;
//! use strata_cluster::{Cluster, ClusterOptions, ClusterProvider, GuardedProvider, health, kinds};
//! use strata_engine::Provider;
//!
//! # async fn example(
//! #     options: ClusterOptions, proxmox: Arc<dyn Provider>, now: jiff::Timestamp,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! kinds::register();
//! let stack = options.stack.clone();
//! let cluster = Arc::new(Cluster::new(options, now)?);
//! let machines: Arc<dyn Provider> = Arc::new(ClusterProvider::new(cluster.clone()));
//! let vms: Arc<dyn Provider> = Arc::new(GuardedProvider::new(proxmox, vec![(stack, cluster.clone())]));
//! println!("{} nodes", health(&cluster).await.nodes.len());
//! # let _ = (machines, vms);
//! # Ok(())
//! # }
//! ```

mod alarms;
mod bootstrap;
mod cluster;
mod config_write;
mod connections;
mod error;
mod etcd;
mod evidence;
mod flux;
mod forecast;
mod guard;
mod health;
mod installer;
pub mod kinds;
mod kubernetes;
mod machine;
mod moving;
mod node;
mod observe;
mod preconditions;
mod provider;
mod rejoin;
mod removed;
mod reset;
mod restart;
mod restore;
mod review;
mod rolling;
mod rollout;
mod running;
mod schematic;
mod secret;
mod shared_address;
mod snapshot;
mod survivors;
#[cfg(test)]
mod testing;
mod wait;

pub use cluster::{Cluster, ClusterOptions, Lease, Media, NodePlace};
pub use guard::GuardedProvider;
pub use health::{ClusterHealth, MemberHealth, NodeHealth, etcd_members, health, member_addresses};
pub use provider::ClusterProvider;
pub use removed::RemovedCluster;
pub use reset::{AfterReset, check_reset, remove_for_reset, wipe_node};
pub use snapshot::{EtcdSnapshot, SnapshotSink, take_snapshot};
pub use wait::Deadlines;
