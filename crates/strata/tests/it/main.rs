//! The program as a user runs it, on a simulated datacenter.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod adopt;
mod adopt_all;
mod arrival;
mod bad_input;
mod bare_metal;
mod bench;
mod breadth;
mod changed_source;
mod cluster;
mod collect;
mod dead_runner;
mod driven;
mod earlier_versions;
mod environments;
mod examples;
mod faults;
mod findings;
mod fleet;
/// The one that the stores are tried on.
#[path = "../../../strata-state/tests/it/gitlab_server.rs"]
#[allow(dead_code)]
mod gitlab_server;
mod half_truths;
mod honest;
mod house;
mod ignored;
mod imported;
mod interrupts;
mod inventory;
mod json;
mod kill;
mod layer0;
mod leak;
mod least_privilege;
mod moved;
mod places;
mod recovered;
mod reference;
mod renamed;
mod replaced;
mod review;
mod secrets;
mod selected;
mod sent;
mod serve;
mod stale_plan;
mod state_server;
mod stores;
mod story;
mod strangers;
mod talos_verbs;
mod team;
mod tofu;
mod windows;
mod world;
