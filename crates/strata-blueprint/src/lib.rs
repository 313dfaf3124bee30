//! Turns a stack, a cluster or a hypervisor of the source into its resource graph.
//!
//! [`draw_stack`], [`draw_cluster`] and [`draw_hypervisor`] take the typed source and a [`Site`] (where it is drawn for, and who resolves
//! secrets) and give a [`Blueprint`]: the graph, its outputs, and for a cluster what its provider works with besides.
//!
//! What a user left out is decided here, once and in the open: the result is complete and canonical, so that plan, rendering and diff need no
//! defaults of their own. A blueprint is a pure function of its input: nothing is asked of any machine, and nothing is random.
//!
//! ```
//! use std::collections::BTreeMap;
//! use strata_blueprint::{Resolver, Site, draw_stack, vmid_of};
//! # use strata_diagnostics::Diagnostic;
//! # use strata_resource::Lineage;
//! # use strata_source::{Reference, Repository, world::Memory};
//! # struct NoSecrets;
//! # impl Resolver for NoSecrets {
//! #     fn resolve(&self, reference: &Reference) -> Result<strata_secret::SecretString, Box<Diagnostic>> {
//! #         Err(Box::new(Diagnostic::error("no-secret", format!("there is no `{}`", reference.source))))
//! #     }
//! # }
//!
//! let world = Memory::new().file(
//!     "stacks/web/stack.yaml",
//!     "metadata: {name: web}\nproxmox: {target: pve, node: pve1}\nvms: {app: {vmId: 9100, disk: 4}}\n",
//! );
//! let (repository, _) = Repository::load(&world);
//! let stack = repository.effective().find_map(|stack| stack.machines()).expect("a stack of machines");
//! let site = Site {
//!     repository: "lab", environment: None, stack: "web", lineage: &Lineage::derive("lab", "dev/web"), origins: &BTreeMap::new(),
//!     homes: &BTreeMap::new(), default_target: None, shared_storages: &BTreeMap::new(), foreign_templates: &BTreeMap::new(), mirror: &|url| url.to_owned(),
//!     resolver: &NoSecrets, is_secret: &|_| false, cluster_secrets: None, sources: &repository.sources,
//! };
//! let blueprint = draw_stack(&site, stack).unwrap_or_else(|found| panic!("{found:?}"));
//! assert!(blueprint.graph.iter().filter_map(vmid_of).eq([9100]));
//! ```

#![warn(missing_docs)]

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
pub mod placement;
mod resolved;
mod site;
mod stack;
mod storage;
mod template;
mod vm;
mod written;

pub use cluster::{ClusterPlan, NodePlan, cluster_target, draw_cluster};
pub use hypervisor::draw_hypervisor;
pub use site::{Blueprint, ForeignTemplate, Origin, Resolver, Site};
pub use stack::draw_stack;
use strata_resource::{Resource, Value};

/// The VMID of a guest that was drawn.
pub fn vmid_of(resource: &Resource) -> Option<u32> {
    resource.spec.get("vmid").and_then(Value::as_int).and_then(|vmid| u32::try_from(vmid).ok())
}
