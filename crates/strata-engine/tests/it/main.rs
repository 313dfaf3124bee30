//! Whole runs over a remote and a store that live in memory: stories, kills, faults, interrupts, saved plans.

mod datacenter;
mod kill;
mod scenarios;
mod world;
