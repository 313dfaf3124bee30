//! The simulated datacenter: Proxmox VE's API with its rules, texts, tasks and locks, on the loopback, from a seed.
//!
//! It shares no types with the clients it is for, so that an error in one cannot hide the same error in the other.

// The modules are private: `pub` in them means "for the rest of this crate".
#![allow(unreachable_pub)]

mod api;
mod auth;
mod cert;
mod control;
mod endpoints;
mod factory;
mod fetch;
mod gateway;
mod kubernetes;
mod options;
mod shared;
mod sim;
mod talos;
mod task;
mod truenas;
mod upload;
mod wire;
mod world;
mod yaml;

pub use cert::fingerprint;
pub use endpoints::synthetic_checksum;
pub use options::{DEFAULT_CONTROL_PORT, DEFAULT_GATEWAY_PORT, DEFAULT_PORT, Pace, SimOptions, WorldKind};
pub use sim::Sim;
pub use truenas::{TRUENAS_API_KEY, TRUENAS_HOST};
pub use world::begin::{DEMO_TOKEN, ROOT_PASSWORD, ROOT_TOKEN};
