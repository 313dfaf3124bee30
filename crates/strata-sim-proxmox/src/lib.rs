//! The simulated Proxmox VE: its API with its paths, parameters, checks, status codes, texts, tasks, locks, permissions and storages,
//! and what nodes do by themselves.
//!
//! # Main types
//! - [`Datacenter`]: the world behind its lock, and what its servers share; [`serve`] answers its API.
//! - [`World`]: every object that there is, as it is kept across runs. [`Beginning`] says what one begins with.
//! - [`tables`]: what every endpoint takes, to be compared with the published schema.
//! - [`Vm`], [`Drive`], [`Card`]: a virtual machine as the system inside it sees it. Systems are simulated elsewhere.
//!
//! # Invariants
//! - A handler runs under the lock of the world, from start to end, without waiting. What needs time is a task.
//! - What the server makes up (UUIDs, MACs, secrets) derives from the seed and from what it is for, never from the order of requests
//!   or from a clock.
//!
//! ```
//! use std::sync::Arc;
//! use serde_json::json;
//! use strata_sim_core::{Pace, Seed, Shared};
//! use strata_sim_proxmox::{Beginning, Datacenter, World};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let shared = Arc::new(Shared::new(Seed(1), Pace::INSTANT));
//! let datacenter = Datacenter::open(&shared, World::begin(&Beginning::default()), Default::default());
//! // Someone else's change: any call of the API, as root unless told otherwise.
//! let call = json!({ "method": "POST", "path": "/pools", "params": { "poolid": "test" } });
//! assert_eq!(datacenter.change(&call).await.unwrap()["status"], 200);
//! assert!(datacenter.world().export()["pools"]["test"].is_object());
//! # });
//! ```

// The modules are private: `pub` in them means "for the rest of this crate".
#![allow(unreachable_pub)]

mod api;
mod auth;
mod control;
mod datacenter;
mod endpoints;
mod fetch;
mod inside;
mod tables;
mod task;
mod upload;
mod wire;
mod world;

pub use datacenter::Datacenter;
pub use endpoints::synthetic_checksum;
pub use inside::{Card, Drive, Vm, Volume};
pub use tables::{Facts, Table, tables};
pub use wire::serve;
pub use world::World;
pub use world::begin::{Beginning, DEMO_TOKEN, ROOT_PASSWORD, ROOT_TOKEN};
pub use world::kind::WorldKind;
