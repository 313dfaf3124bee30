//! Where states are kept: what may be done to one as a pure function, and storages that decide and do it in one step.
//!
//! [`decide`] takes the [`Head`] of a state and a [`Command`] and gives a [`Decision`] or a [`Refusal`]. A [`Storage`] calls it in the same
//! atomic step in which it does what the decision says: [`embedded`] (SQLite), [`postgres`], [`s3`]. The state server and the stores that need
//! no server use the same ones.
//!
//! A storage knows nothing of HTTP, users, clocks or of what a state says. Who holds the lock is the only one who writes, and a write names
//! the serial that it replaces.
//!
//! ```
//! use strata_storage::{Command, Head, Lock, LockKind, Refusal, decide};
//!
//! let lock = |id: &str| Lock {
//!     id: id.to_owned(), kind: LockKind::Lease, user: "ann".to_owned(), owner: None, info: None, ttl: Some(60), beat: 0,
//! };
//! let take = |id: &str| Command::Lock { lock: lock(id), lapsed: None };
//! let free = Head::default();
//! assert!(decide(&free, &take("1")).is_ok());
//! let held = Head { lock: Some(lock("1")), ..Head::default() };
//! assert!(matches!(decide(&held, &take("2")), Err(Refusal::Held(_))));
//! ```

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
