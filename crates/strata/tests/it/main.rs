//! The program as a user runs it, on a simulated datacenter.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod arrival;
mod bad_input;
mod bare_metal;
mod bench;
mod breadth;
mod cluster;
mod collect;
mod dead_runner;
mod examples;
mod faults;
mod interrupts;
mod kill;
mod leak;
mod least_privilege;
mod reference;
mod secrets;
mod serve;
mod stale_plan;
mod state_server;
mod stores;
mod strangers;
mod talos_verbs;
mod tofu;
mod world;
