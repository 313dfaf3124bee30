//! The state document and its stores: locks, history, journal.
//!
//! A state is a document and a journal. The journal says what was begun and what came of it since the document was written;
//! [`replay`] puts the two together. Stores keep both; they know nothing of what a resource is.

mod document;
mod journal;
mod local;
mod store;

pub use document::{DeposedObject, FORMAT, StateDocument, StateResource};
pub use journal::{
    Action, DamagedJournal, Effect, JournalRecord, OpenEntry, ReplayedState, parse_journal, replay,
};
pub use local::LocalStore;
pub use store::{LockOwner, LockedState, Store, StoreError, Version};
