//! The conformance suite: a store is given, the promises are tried.

use strata_resource::{Lineage, Spec};
use strata_state::{Action, JournalRecord, LockOwner, OpenEntry, StateDocument, Store, StoreError, replay};

const KEY: &str = "dev/onprem/web";

pub(crate) fn owner(id: &str) -> LockOwner {
    LockOwner {
        id: id.into(),
        who: "me@here".into(),
        pid: 7,
        operation: "apply".into(),
        since: "2026-01-01T00:00:00Z".into(),
    }
}

fn document(serial: u64) -> StateDocument {
    StateDocument { serial, ..StateDocument::new(Lineage::derive("r", KEY), KEY) }
}

pub(crate) fn begin(id: u64) -> JournalRecord {
    JournalRecord::Begin(OpenEntry {
        id,
        action: Action::Create,
        address: "web/vm/web-1".parse().unwrap(),
        target: "pve".into(),
        identity: Spec::new(),
        spec_digest: String::new(),
        becomes: None,
        begun: 1,
        tasks: Vec::new(),
    })
}

pub(crate) async fn run(store: &dyn Store) {
    a_state_is_read_back_and_counted(store).await;
    a_write_names_what_it_replaces(store).await;
    one_holder_at_a_time(store).await;
    a_lock_can_be_taken_away(store).await;
    the_journal_outlives_the_run(store).await;
    versions_are_kept(store).await;
}

async fn a_state_is_read_back_and_counted(store: &dyn Store) {
    assert_eq!(store.read(KEY).await.unwrap(), None);
    let lock = store.lock(KEY, owner("1")).await.unwrap();
    lock.write(&document(1)).await.unwrap();
    assert_eq!(store.read(KEY).await.unwrap(), Some(document(1)));
    assert_eq!(store.keys().await.unwrap(), [KEY]);
    lock.release().await.unwrap();
}

async fn a_write_names_what_it_replaces(store: &dyn Store) {
    let lock = store.lock(KEY, owner("2")).await.unwrap();
    for serial in [1, 3] {
        let error = lock.write(&document(serial)).await.unwrap_err();
        assert!(matches!(error, StoreError::Moved { found: 1, .. }), "{error}");
    }
    assert_eq!(store.read(KEY).await.unwrap(), Some(document(1)));
    lock.release().await.unwrap();
}

async fn one_holder_at_a_time(store: &dyn Store) {
    assert_eq!(store.holder(KEY).await.unwrap(), None);
    let lock = store.lock(KEY, owner("3")).await.unwrap();
    assert_eq!(store.holder(KEY).await.unwrap(), Some(owner("3")));
    let error = store.lock(KEY, owner("4")).await.err().expect("the lock is held");
    assert_eq!(
        error.to_string(),
        "the state `dev/onprem/web` is locked by me@here (pid 7) for `apply` since 2026-01-01T00:00:00Z"
    );
    // Another state is not affected.
    store.lock("dev/other", owner("5")).await.unwrap().release().await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.holder(KEY).await.unwrap(), None);
}

async fn a_lock_can_be_taken_away(store: &dyn Store) {
    let lock = store.lock(KEY, owner("6")).await.unwrap();
    assert_eq!(store.break_lock(KEY).await.unwrap(), Some(owner("6")));
    let next = store.lock(KEY, owner("7")).await.unwrap();
    assert!(matches!(lock.still_held(), Err(StoreError::LockLost { .. })));
    assert!(lock.write(&document(2)).await.is_err());
    assert!(lock.append_journal(&[begin(1)]).await.is_err());
    next.still_held().unwrap();
    next.release().await.unwrap();
    assert_eq!(store.break_lock(KEY).await.unwrap(), None);
}

async fn the_journal_outlives_the_run(store: &dyn Store) {
    let lock = store.lock(KEY, owner("8")).await.unwrap();
    lock.append_journal(&[begin(1), begin(2)]).await.unwrap();
    lock.append_journal(&[JournalRecord::Task { id: 2, task: "UPID:x".into() }]).await.unwrap();
    lock.release().await.unwrap();
    let state = replay(document(1), store.read_journal(KEY).await.unwrap());
    assert_eq!(state.open.iter().map(|entry| entry.tasks.len()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(store.read(KEY).await.unwrap().unwrap().serial, 1, "the journal does not change the serial");
    let lock = store.lock(KEY, owner("9")).await.unwrap();
    lock.clear_journal().await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), []);
    lock.append_journal(&[begin(3)]).await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), [begin(3)]);
    lock.clear_journal().await.unwrap();
    lock.release().await.unwrap();
}

async fn versions_are_kept(store: &dyn Store) {
    let lock = store.lock(KEY, owner("10")).await.unwrap();
    lock.write(&document(2)).await.unwrap();
    lock.write(&document(3)).await.unwrap();
    lock.release().await.unwrap();
    let serials: Vec<u64> = store.history(KEY).await.unwrap().iter().map(|version| version.serial).collect();
    assert_eq!(serials, [3, 2, 1]);
    assert_eq!(store.read_version(KEY, 2).await.unwrap(), document(2));
    assert!(matches!(store.read_version(KEY, 9).await, Err(StoreError::NoVersion { serial: 9, .. })));
}
