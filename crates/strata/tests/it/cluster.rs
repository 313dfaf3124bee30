//! Talos clusters on the simulator: from nothing to Flux in one apply, and through everything that may happen to them after that.

mod addresses;
pub(crate) mod arrival;
mod boot;
pub(crate) mod dice;
mod drills;
mod faults;
mod guards;
pub(crate) mod kill;
pub(crate) mod lab;
mod leak;
mod reboots;
mod rolling;
mod sequences;
mod sweep;
mod waits;
