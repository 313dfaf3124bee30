//! What every part of the simulated datacenter stands on: a network on the loopback, time, a seed, faults that tests order,
//! counts of requests, and the control interface. It knows none of the parts.
//!
//! # Main types
//! - [`Shared`]: what the servers of one simulator have in common. Each part keeps its own state behind its own lock.
//! - [`Network`]: who listens where. A part registers a [`Listener`] at a fixed place, or a finder for places that come and go.
//! - [`Faults`] and [`Requests`]: what tests order and count, by method and path.
//! - [`Clock`], [`Pace`], [`Seed`]: time passes at a pace; what is made up derives from a seed and from what it is for.
//! - [`Medium`]: what a system wrote on a disk. A hypervisor copies, moves and deletes it and never looks inside.
//!
//! # Invariants
//! - Nothing here holds a lock of a part, and [`Shared::advance`] is never called by someone who holds one.
//! - What is registered here holds its part weakly: a simulator that is dropped is gone.
//!
//! ```
//! use strata_sim_core::{Clock, Faults, Pace, Seed, Shared, Verb};
//!
//! let shared = Shared::new(Seed(7), Pace::FAST);
//! shared.count().add(Verb::Get, "/version");
//! assert_eq!(shared.count().total(), 1);
//!
//! // The same words give the same value in every run with this seed, at any pace.
//! assert_eq!(shared.seed.uuid(&["vm", "100"]), Seed(7).uuid(&["vm", "100"]));
//! assert_eq!(shared.clock().scaled_ms(1.0), 50);
//! # let _ = (Clock::default(), Faults::default());
//! ```

// The modules are private: `pub` in them means "for the rest of this crate", or what is named below.
#![allow(unreachable_pub)]

pub mod cert;
mod clock;
pub mod control;
mod faults;
mod medium;
pub mod network;
mod pace;
mod requests;
mod seed;
mod shared;
mod synthetic;
mod verb;
pub mod yaml;

pub use cert::{fingerprint, server_config};
pub use clock::Clock;
pub use faults::{After, Cut, Faults, TaskFault, Verdict, matches_glob};
pub use medium::Medium;
pub use network::{Listener, Network, Visit};
pub use pace::Pace;
pub use requests::Requests;
pub use seed::Seed;
pub use shared::Shared;
pub use synthetic::synthetic;
pub use verb::Verb;
