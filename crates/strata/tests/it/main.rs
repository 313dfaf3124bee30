//! The program as a user runs it, on a simulated datacenter.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod bench;
mod breadth;
mod examples;
mod faults;
mod interrupts;
mod kill;
mod leak;
mod least_privilege;
mod reference;
mod stale_plan;
mod strangers;
mod world;
