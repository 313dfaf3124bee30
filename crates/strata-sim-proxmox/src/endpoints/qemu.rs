//! Virtual machines.

pub mod agent;
mod agent_commands;
pub mod boot;
pub mod clone;
pub mod cloudinit;
pub mod config;
pub mod console;
pub mod copy;
pub mod cpu;
pub mod create;
pub mod destroy;
pub mod disks;
pub mod drive;
pub mod hotplug;
pub mod migrate;
pub mod move_disk;
pub mod net;
pub mod permit;
pub mod power;
pub mod resize;
pub mod restore;
pub mod schema;
pub mod snapshot;
pub mod start;
pub mod status;
pub mod template;
pub mod update;

use crate::api::Route;

pub fn routes() -> Vec<Route> {
    let parts: &[fn() -> Vec<Route>] = &[
        agent::routes,
        agent_commands::routes,
        clone::routes,
        cloudinit::routes,
        config::routes,
        console::routes,
        create::routes,
        destroy::routes,
        migrate::routes,
        move_disk::routes,
        power::routes,
        resize::routes,
        snapshot::routes,
        status::routes,
        template::routes,
        update::routes,
    ];
    parts.iter().flat_map(|part| part()).collect()
}
