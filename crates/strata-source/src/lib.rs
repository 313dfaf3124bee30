//! The repository's files as typed values; overlays; cross-file checks; JSON Schema; the import formats.

mod check;
pub mod cluster;
pub mod environment;
pub mod hypervisor;
pub mod machine;
mod repository;
pub mod schema;
pub mod settings;
pub mod stack;
pub mod value;
pub mod world;

pub use check::FLUX_HOMELESS;
pub use repository::{
    DEFAULT_ENVIRONMENT, EffectiveStack, Model, Repository, SelectError, StackEntry, StackKind, code_digest,
};
pub use strata_yaml::{Map, Places, Raw, Reference, Source, Spanned, Value};
