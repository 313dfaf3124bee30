//! From a live guest to the YAML that describes it: the way back of what a blueprint does.
//!
//! [`vm`] and [`container`] take a spec as a provider reads it and give the entry of `stack.yaml` that is drawn to the same spec. Only
//! what differs from what the blueprint would choose is written; what no key expresses goes under `options`, and what cannot be expressed
//! at all is a note. Nothing is dropped in silence: every field of the spec is taken out of it once, and what is left over is told.
//!
//! Pure. Whether the result is right is not decided here: whoever adopts draws it and compares it with the live guest.

mod cloud_init;
mod container;
mod device;
mod diff;
mod disk;
mod fields;
mod firewall;
mod guest;
mod network;
mod vm;

use serde_json::Value as Json;

pub use container::{IMAGE_STANDS_IN, container};
pub use diff::{DiffLine, line_diff};
pub use vm::vm;

/// What a stack says for all its guests: a guest need not say it again.
#[derive(Debug, Clone, Default)]
pub struct StackDefaults {
    pub node: Option<String>,
    pub pool: Option<String>,
    /// Where disks go unless something says otherwise.
    pub disk_storage: Option<String>,
}

impl StackDefaults {
    /// The storage that the blueprint chooses for disks.
    fn disks(&self) -> &str {
        self.disk_storage.as_deref().unwrap_or("local-lvm")
    }
}

/// A guest as it is written.
#[derive(Debug, Clone)]
pub struct Written {
    pub yaml: Json,
    /// What is live and no key says, one line each.
    pub notes: Vec<String>,
}
