//! From a live guest to the YAML that describes it: the way back of what a blueprint does.
//!
//! [`vm`], [`template`] and [`container`] take a spec as a provider reads it and give the entry of `stack.yaml` that is drawn to the same spec. Only
//! what differs from what the blueprint would choose is written; what no key expresses goes under `options`, and what cannot be expressed
//! at all is a note. Nothing is dropped without a message: every field of the spec is taken once, and what is left over is reported.
//!
//! [`object`] does the same for what a datacenter has besides guests, with the entry of a file of `hypervisors/`.
//!
//! Pure. Whether the result is right is not decided here: whoever adopts draws it and compares it with the live guest.
//!
//! ```
//! use strata_adopt::{StackDefaults, vm};
//! use strata_resource::Spec;
//!
//! let live: Spec = serde_json::from_str(r#"{"vmid": 9100, "name": "web", "node": "pve2", "cpu": {"cores": 4}}"#).unwrap();
//! let stack = StackDefaults { node: Some("pve1".into()), ..StackDefaults::default() };
//! let written = vm("web", &live, &stack);
//! assert_eq!(written.yaml["vmId"], 9100);
//! assert_eq!(written.yaml["node"], "pve2", "the stack says another one");
//! assert!(written.yaml.get("name").is_none(), "it is the key");
//! ```

#![warn(missing_docs)]

pub mod accept;
mod cloud_init;
mod container;
mod datacenter;
mod defaults;
mod device;
mod diff;
mod disk;
mod fields;
mod firewall;
mod group;
mod guest;
mod network;
mod record;
mod vm;

use serde_json::Value as Json;

pub use container::{IMAGE_STANDS_IN, container};
pub use datacenter::{
    WrittenObject, guests_of, host_of, is_of_guest, is_unsaid, is_written, new_file, object, object_name,
    put_objects, put_part,
};
pub use defaults::StackDefaults;
pub use diff::{DiffLine, line_diff};
pub use group::{GroupBy, REST, guest_key};
pub use vm::{linked_vm, template, vm};

/// A guest as it is written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The record, as the source would have it.
    pub yaml: Json,
    /// What is live and no key says, one line each.
    pub notes: Vec<String>,
}
