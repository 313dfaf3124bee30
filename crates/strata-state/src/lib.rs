//! The state document, its journal, and the stores that keep both: local, HTTP, S3, PostgreSQL.
//!
//! A state is a [`StateDocument`] and a journal of [`JournalRecord`]s. The journal says what was begun and what came of it since the document
//! was written; [`replay`] puts the two together. A [`Store`] keeps them, with leases and history; a [`Codec`] encrypts, the same for all.
//!
//! Only a [`LockedState`] can be written, so nothing is written without the lock. A write names the serial that it replaces, and files
//! are written whole or not at all. Stores know nothing of what a resource is.
//!
//! ```
//! use strata_resource::Lineage;
//! use strata_state::{Codec, StateDocument, parse_journal, replay};
//!
//! let document = StateDocument::new(Lineage::derive("repository", "dev/web"), "dev/web");
//! let bytes = Codec::plain().encode(&document)?;
//! assert_eq!(Codec::plain().decode("dev/web", &bytes)?.lineage, document.lineage);
//! let now = replay(document, parse_journal(b"")?);
//! assert!(now.open.is_empty() && now.document.resources.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
mod compare;
mod copy;
mod direct;
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
pub use compare::{StateDifference, compare_states};
pub use copy::{Copied, CopiedHistory, copy_state};
pub use direct::DirectStore;
pub use document::{Departed, DeposedObject, FORMAT, MadeAs, StateDocument, StateResource, Writer};
pub use http::{HttpStore, HttpStoreOptions};
pub use journal::{
    Action, DamagedJournal, Destination, Effect, JournalRecord, JournalTally, OpenEntry, ReplayedState,
    parse_journal, replay,
};
pub use lease::{LeaseTerms, MonotonicClock, system_clock};
pub use local::LocalStore;
pub use owner::{Holder, Lease, LockOwner, ProcessMark};
pub use postgres::{PostgresStore, PostgresStoreOptions};
pub use s3::{LockTable, S3Store, S3StoreOptions};
pub use store::{LockedState, Store, StoreError, Version, has_open_work};
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
