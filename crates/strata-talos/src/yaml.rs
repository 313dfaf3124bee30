//! YAML as Talos' tools read and write it: streams of several documents, scalars that stay text until a shape asks.

mod read;
mod scalar;
mod write;

pub(crate) use read::{Node, NodeKind, read};
pub(crate) use scalar::{Plain, Scalar};
pub(crate) use write::{write, write_all};

/// Why a text could not be read. The text itself is never quoted: it may be a secret.
pub use strata_yaml::build::Error as YamlError;
