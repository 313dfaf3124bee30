//! A test's world: a repository, a simulator, the binary, and the simulator's control port.
//!
//! [`Repo`] is a folder with a repository, [`TestSim`] a simulated datacenter of its own, [`Strata`] the binary as a user runs it there,
//! [`Control`] what somebody else does to the datacenter meanwhile, [`FakeForge`] a forge with requests and people.
//!
//! For tests only, so it panics where a test should fail. Every server listens on the loopback, on a port that the system chose.
//!
//! ```
//! use strata_testkit::{Repo, TestSim};
//!
//! let sim = TestSim::start();
//! let repo = Repo::on(&sim);
//! repo.write("stacks/web/stack.yaml", "metadata: {name: web}\n");
//! assert!(repo.read("strata.yaml").contains(&sim.endpoint()));
//! sim.shutdown();
//! ```
#![allow(clippy::unwrap_used)]

mod binary;
mod control;
mod forge;
mod repo;
mod sim;

pub use binary::{Killed, Output, Strata};
pub use control::Control;
pub use forge::{Dialect, FakeForge, Fault};
pub use repo::Repo;
pub use sim::TestSim;
