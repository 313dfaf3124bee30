//! Containers.

pub mod apply;
pub mod clone;
pub mod config;
pub mod console;
pub mod create;
pub mod destroy;
pub mod migrate;
pub mod mount;
pub mod move_volume;
pub mod permit;
pub mod power;
pub mod resize;
pub mod restore;
pub mod schema;
pub mod snapshot;
pub mod status;
pub mod template;
pub mod update;

use crate::api::Route;

pub fn routes() -> Vec<Route> {
    let parts: &[fn() -> Vec<Route>] = &[
        clone::routes,
        config::routes,
        console::routes,
        create::routes,
        destroy::routes,
        migrate::routes,
        move_volume::routes,
        power::routes,
        resize::routes,
        snapshot::routes,
        status::routes,
        template::routes,
        update::routes,
    ];
    parts.iter().flat_map(|part| part()).collect()
}
