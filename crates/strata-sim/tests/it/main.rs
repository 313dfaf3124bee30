//! The simulator seen from outside: what a client of the API and a test with the control port observe.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod accounts;
mod client;
mod clone;
mod config;
mod containers;
mod control;
mod faults;
mod files;
mod firewalls;
mod guests;
mod ha;
mod kubernetes;
mod lived_in;
mod migrate;
mod networks;
mod persistence;
mod power;
mod replay;
mod sections;
mod storages;
mod talos;
mod tasks;
mod truenas;
mod wire;
