//! The files of a repository as typed values: what can be written, what stands in each environment, what is wrong with it.
//!
//! [`Repository::load`] reads `strata.yaml`, `stacks/`, `clusters/`, `hypervisors/` and `environments/` from a [`world::World`] and gives
//! everything that is wrong along with everything that could be read. The records of [`stack`], [`cluster`], [`hypervisor`], [`machine`] and
//! [`settings`] are declared with `record!`: decoder, JSON Schema and reference ([`schema`]) derive from one table.
//!
//! Nothing here asks a machine or resolves a secret, and no file stops another from being read. Every value knows its place in its file.
//!
//! ```
//! use strata_source::Repository;
//! use strata_source::world::Memory;
//!
//! let world = Memory::new()
//!     .file("strata.yaml", "targets: {pve: {proxmox: {endpoint: 'https://192.0.2.10:8006'}}}\n")
//!     .file("stacks/web/stack.yaml", "metadata: {name: web}\nvms: {app: {vmId: 9100, memmory: 512}}\n");
//! let (repository, found) = Repository::load(&world);
//! assert_eq!(repository.stacks().len(), 1);
//! assert!(found.iter().any(|one| one.message.contains("`memmory`")));
//! ```

mod check;
pub mod cluster;
pub mod environment;
pub mod hypervisor;
pub mod machine;
pub mod promote;
mod repository;
pub mod schema;
pub mod settings;
pub mod spread;
pub mod stack;
pub mod value;
pub mod world;

pub use check::FLUX_HOMELESS;
pub use repository::{
    DEFAULT_ENVIRONMENT, EffectiveStack, Input, Inputs, Model, Repository, SelectError, StackEntry,
    StackKind, code_digest,
};
pub use strata_yaml::{FieldSpans, Map, Raw, Reference, Source, Spanned, Value};
