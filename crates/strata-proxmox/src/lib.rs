//! Proxmox VE client and provider.

mod api;
mod client;
mod codec;
mod options;

pub use api::{ApiError, ApiErrorKind, Upid, Version};
pub use client::{CallError, Client, ConnectError};
pub use options::{Login, ProxmoxOptions};
