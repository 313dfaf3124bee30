//! The endpoints, one family a file. A family gives its routes; this file puts them together.

mod access;
mod acme;
mod backup_jobs;
mod bulk_action;
pub mod calendar;
mod datacenter;
mod firewall;
mod guest;
pub mod ha;
mod index;
mod jobs;
mod login;
pub mod lxc;
mod mapping;
mod metrics;
mod network;
mod node_storage;
mod nodes;
mod notifications;
mod overview;
mod pools;
pub mod qemu;
mod replication;
mod resources;
mod sdn;
mod section;
mod snapshot;
mod storage;
mod tasks;
mod vzdump;

use std::sync::LazyLock;

use crate::api::Route;
use crate::api::router::Router;
pub use node_storage::download::synthetic_checksum;

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let families: &[fn() -> Vec<Route>] = &[
        index::routes,
        login::routes,
        nodes::routes,
        overview::routes,
        qemu::routes,
        tasks::routes,
        storage::routes,
        node_storage::routes,
        access::routes,
        lxc::routes,
        pools::routes,
        resources::routes,
        vzdump::routes,
        network::routes,
        firewall::routes,
        mapping::routes,
        ha::routes,
        metrics::routes,
        acme::routes,
        backup_jobs::routes,
        bulk_action::routes,
        jobs::routes,
        replication::routes,
        notifications::routes,
        sdn::routes,
        datacenter::routes,
    ];
    Router::new(families.iter().flat_map(|family| family()).collect())
});

pub fn router() -> &'static Router {
    &ROUTER
}
