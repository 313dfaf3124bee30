//! The provider against the simulated Proxmox, over TLS on loopback.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clones;
mod containers;
mod deaths;
mod faults;
mod firewall;
mod interop;
mod life;
mod moves;
mod preflight;
mod strangers;
mod world;
