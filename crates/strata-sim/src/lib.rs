//! The simulated datacenter on the loopback, from a seed: Proxmox VE's API with its rules, texts, tasks and locks, the Talos machines
//! that its VMs become, the Kubernetes clusters that those make, a TrueNAS, and the network between them.
//!
//! Each part is a crate of its own; this one puts them together. None shares a type with the clients it is for, so that an error in
//! one cannot hide the same error in the other.
//!
//! # Main types
//! - [`SimOptions`]: everything that can be chosen.
//! - [`Sim`]: a running one, with its addresses, its token and the changes that somebody else makes.
//!
//! # Invariants
//! - Parts know only what is below them: `core`; then `proxmox`, `kubernetes`, `truenas`; then `talos`, which tells `kubernetes` what
//!   its machines are and asks a hypervisor that `host.rs` makes of `proxmox`.
//! - Locks are taken in one order: machines, datacenter, clusters, storage server.
//!
//! ```no_run
//! # async fn run() -> std::io::Result<()> {
//! use strata_sim::{Sim, SimOptions};
//!
//! let sim = Sim::start(SimOptions::default()).await?; // on free ports
//! println!("{} {}", sim.endpoint(), sim.token());
//! let change = serde_json::json!({ "power": { "vmid": 100, "running": false } });
//! assert!(sim.change(&change).await.is_err(), "there is no such guest");
//! assert_eq!(sim.export()["guests"], serde_json::json!([]));
//! sim.shutdown().await
//! # }
//! ```

mod host;
mod kept;
mod options;
mod passing;
mod sim;
mod whole;

pub use options::{DEFAULT_CONTROL_PORT, DEFAULT_GATEWAY_PORT, DEFAULT_PORT, SimOptions};
pub use sim::Sim;
pub use strata_sim_core::{Pace, fingerprint};
pub use strata_sim_proxmox::{DEMO_TOKEN, ROOT_PASSWORD, ROOT_TOKEN, WorldKind, synthetic_checksum};
pub use strata_sim_truenas::{TRUENAS_API_KEY, TRUENAS_HOST};
