//! Proxmox VE client and provider.
//!
//! From the wire up: `api` (requests and answers as data), `client` (sends them), `codec` (specs and configurations), then the
//! provider: `observe`, `execute`, `settle`, `preflight`, and `datacenter` for what is no guest. docs/ownership.md is the law of what may be touched.

mod absence;
mod api;
pub mod cidata;
mod client;
mod codec;
mod datacenter;
mod execute;
mod firewall;
mod guest;
pub mod kinds;
mod marked;
mod media;
mod observe;
mod options;
mod ownership;
mod preflight;
mod provider;
mod review;
mod settle;
mod snippets;
mod storages;

pub use api::{ApiError, ApiErrorKind, Upid, Version};
pub use client::{CallError, Client, ConnectError};
pub use datacenter::TokenKeeper;
pub use marked::{MarkedGuest, MarkedGuests};
pub use options::{Login, ProxmoxOptions};
pub use ownership::TAKEN_OVER;
pub use preflight::{Privilege, required_role};
pub use provider::ProxmoxProvider;
pub use snippets::SNIPPETS;
