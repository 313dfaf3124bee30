//! YAML as Talos' tools read and write it: streams of several documents, scalars that stay text until a shape asks.

mod read;
mod scalar;
mod write;

pub(crate) use read::{Node, NodeKind, read};
pub(crate) use scalar::{Plain, Scalar};
pub(crate) use write::{write, write_all};

/// What can go wrong while reading YAML. The text itself is never quoted: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    #[error("line {line}: {reason}")]
    Syntax { line: usize, reason: String },
    #[error("line {line}: the key `{key}` is there twice")]
    DuplicateKey { line: usize, key: String },
    #[error("line {line}: a key must be a plain text")]
    KeyNotText { line: usize },
    #[error("line {line}: nested more than {deepest} levels deep")]
    TooDeep { line: usize, deepest: usize },
    #[error("more than {most} values, with every alias written out")]
    TooManyValues { most: usize },
    #[error("{bytes} bytes are more than the {most} that are read")]
    TooLarge { bytes: usize, most: usize },
}
