//! Where states are kept: what may be done to one as a pure function ([`rules`]), and storages that decide and do it in one step.
//!
//! The state server and the stores that need no server use the same storages: one for buckets, one for PostgreSQL, one for SQLite. A storage
//! knows nothing of HTTP, users, clocks or of what a state says.

pub mod embedded;
mod error;
mod head;
mod lock;
mod name;
pub mod postgres;
mod rules;
pub mod s3;
mod storage;

pub use error::{Failure, FailureKind, Source, StorageError};
pub use head::{Head, Version};
pub use lock::{Beat, Lock, LockKind};
pub use name::{BadName, StateName};
pub use rules::{Command, Content, Decision, Effect, Outcome, Refusal, Replaces, Write, decide};
pub use storage::{CHUNK, ContentStream, ImportContent, Retention, Staging, Storage, Which};
