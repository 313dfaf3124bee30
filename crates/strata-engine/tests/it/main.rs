//! Whole runs over a remote and a store that live in memory: stories, kills, faults, interrupts, saved plans.

#![allow(clippy::unwrap_used)]

mod datacenter;
mod faults;
mod interrupts;
mod kill;
mod recovery;
mod saved_plans;
mod scenarios;
mod scheduling;
mod waiting;
mod world;
