//! Talos clusters on the simulator: from nothing to Flux in one apply, and through everything that may happen to them after that.

mod addresses;
mod arrival;
mod boot;
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
