//! The state document and its stores: local, HTTP, S3, PostgreSQL; locks, history, journal, encryption.
//!
//! A state is a document and a journal. The journal says what was begun and what came of it since the document was written;
//! [`replay`] puts the two together. Stores keep both; they know nothing of what a resource is.

mod codec;
mod document;
mod http;
mod journal;
mod lease;
mod local;
mod owner;
mod postgres;
mod s3;
mod store;

pub use codec::{Codec, Encryption, KeySource, KeyWrap};
pub use document::{DeposedObject, FORMAT, StateDocument, StateResource};
pub use http::{HttpStore, HttpStoreOptions};
pub use journal::{
    Action, DamagedJournal, Effect, JournalRecord, JournalTally, OpenEntry, ReplayedState, parse_journal,
    replay,
};
pub use lease::{LeaseTerms, MonotonicClock, system_clock};
pub use local::LocalStore;
pub use owner::{Holder, Lease, LockOwner, ProcessMark};
pub use postgres::{PostgresStore, PostgresStoreOptions};
pub use s3::{LockTable, S3Store, S3StoreOptions};
pub use store::{LockedState, Store, StoreError, Version};
pub use strata_storage::s3::AwsCredentials;

#[cfg(test)]
mod test_kinds {
    use strata_resource::{Address, KindTable, register_kinds};

    static VM: KindTable = KindTable::new("vm", "", &[]);

    /// An address of a kind that some provider would have registered.
    pub(crate) fn address(text: &str) -> Address {
        register_kinds(&[&VM]);
        text.parse().unwrap()
    }
}
