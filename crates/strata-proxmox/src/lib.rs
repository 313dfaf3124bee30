//! Proxmox VE: its kinds, a client of its API, and the provider that looks, reviews and acts for the engine.
//!
//! [`ProxmoxProvider`] is what the engine asks, made from [`ProxmoxOptions`]; [`kinds`] is what guests, images and the objects of a
//! datacenter are in a spec. Inside, from the wire up: `api` (requests and answers as data), `client` (sends them), `codec` (specs and
//! configurations, both directions from one table), then `observe`, `review`, `preflight`, `execute`, `wait_for_tasks`, and `datacenter` for what is
//! no guest.
//!
//! docs/ownership.md is the law of what may be touched. Absence and effect are proven: what a listing lacks is asked for by name, what was
//! written is read back. No write is sent without a permit of the run, and every one that takes a digest carries it.
//!
//! ```no_run
//! use std::sync::Arc;
//! use strata_engine::Provider;
//! use strata_proxmox::{ProxmoxOptions, ProxmoxProvider, kinds};
//! use strata_secret::SecretString;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! kinds::register();
//! let mut options = ProxmoxOptions::new("https://192.0.2.10:8006", Arc::new(|| 7));
//! options.token = Some(SecretString::new("strata@pve!ci=00000000-0000-0000-0000-000000000000"));
//! let provider = ProxmoxProvider::connect(options)?;
//! println!("{}", provider.client().version().await?.version);
//! assert!(provider.observe_all(&[]).await?.is_empty());
//! # Ok(())
//! # }
//! ```

mod absence;
mod acts;
mod addresses;
mod api;
mod archives;
mod before_change;
mod capacity;
pub mod cidata;
mod client;
pub mod codec;
mod datacenter;
mod execute;
mod firewall;
mod guest;
mod hosts;
mod interrupted_tasks;
pub mod kinds;
mod live_guest;
mod live_object;
mod maintenance;
mod marked;
mod marked_objects;
mod media;
mod observe;
mod options;
mod ownership;
mod preflight;
mod provider;
mod review;
mod snippets;
mod storages;

pub use acts::{BackupRequest, Snapshot};
pub use addresses::has_agent;
pub use api::{ApiError, ApiErrorKind, Upid, Version};
pub use archives::{Archive, Archives, Verified, Whose};
pub use capacity::Capacity;
pub use client::{CallError, Client, ConnectError};
pub use hosts::{Host, HostedGuest, Hosts};
pub use kinds::TokenKeeper;
pub use live_guest::LiveGuest;
pub use live_object::DatacenterObject;
pub use maintenance::{GuestOnHost, HostNotes, HostNow, HostRow, HostRows, MaintenanceMark, Movable, Stage};
pub use marked::{MarkedGuest, MarkedGuests};
pub use marked_objects::{Found, MarkedObject, NamedVolume};
pub use options::{Login, ProxmoxOptions};
pub use ownership::TAKEN_OVER;
pub use preflight::{Privilege, required_role};
pub use provider::ProxmoxProvider;
pub use snippets::SNIPPETS;
