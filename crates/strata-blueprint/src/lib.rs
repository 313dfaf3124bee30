//! Turns a stack into its resource graph: cluster to images, VMs, machine configs, bootstrap, Flux.
//!
//! What a user left out is decided here, once and in the open: the result is complete and canonical, so that plan, rendering and
//! diff need no defaults of their own.

mod cloud_init;
mod cluster;
mod container;
mod fields;
mod firewall;
mod guest;
mod hardware;
mod hypervisor;
mod image;
pub mod kinds;
mod outputs;
mod resolved;
mod site;
mod stack;
mod storage;
mod template;
mod vm;
mod written;

pub use cluster::{ClusterPlan, NodePlan, cluster_target, draw_cluster};
pub use hypervisor::draw_hypervisor;
pub use site::{Blueprint, ForeignTemplate, Resolver, Site};
pub use stack::draw_stack;
use strata_resource::{Resource, Value};

/// The VMID of a guest that was drawn.
pub fn vmid_of(resource: &Resource) -> Option<u32> {
    resource.spec.get("vmid").and_then(Value::as_int).and_then(|vmid| u32::try_from(vmid).ok())
}
