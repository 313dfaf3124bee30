//! The conformance suite: a store is given, its guarantees are tried.

use strata_resource::{Lineage, Spec};
use strata_state::{
    Action, Effect, JournalRecord, LockOwner, OpenEntry, ProcessMark, StateDocument, Store, StoreError,
    replay,
};

const KEY: &str = "dev/onprem/web";

pub(crate) fn owner(id: &str) -> LockOwner {
    LockOwner {
        id: id.into(),
        who: "me@here".into(),
        pid: 7,
        operation: "apply".into(),
        since: "2026-01-01T00:00:00Z".into(),
        process: None,
    }
}

fn document(serial: u64) -> StateDocument {
    StateDocument { serial, ..StateDocument::new(Lineage::derive("r", KEY), KEY) }
}

pub(crate) fn begin(id: u64) -> JournalRecord {
    JournalRecord::Begin(OpenEntry {
        id,
        action: Action::Create,
        address: address(),
        target: "pve".into(),
        identity: Spec::new(),
        spec_digest: String::new(),
        becomes: None,
        begun: 1,
        tasks: Vec::new(),
        to: None,
    })
}

/// Every key that the suite uses: some stores cannot list their states.
pub(crate) const KEYS: [&str; 5] = [KEY, "dev/adopted", "dev/moved", "dev/other", "dev/only-journal"];

pub(crate) async fn run(store: &dyn Store) {
    run_terse(store).await;
    the_holder_is_described(store).await;
}

/// Also where a store knows little more of a lock than its id.
pub(crate) async fn run_terse(store: &dyn Store) {
    a_state_is_read_back_and_counted(store).await;
    a_write_names_what_it_replaces(store).await;
    one_holder_at_a_time(store).await;
    many_want_it_and_one_gets_it(store).await;
    a_lock_can_be_taken_away(store).await;
    a_lock_of_the_dead_is_taken_over(store).await;
    the_journal_outlives_the_run(store).await;
    a_large_journal_is_read_in_order(store).await;
    versions_are_kept(store).await;
    a_state_is_adopted_once(store).await;
    a_history_is_adopted_before_its_state(store).await;
    a_state_that_is_only_a_journal_is_a_state(store).await;
}

async fn holder(store: &dyn Store) -> Option<String> {
    store.holder(KEY).await.unwrap().map(|holder| holder.owner.id)
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
        // What is there already may be written once more, since the answer to a write can be lost; anything else may not.
        let mut other = document(serial);
        other.folded = 1;
        let error = lock.write(&other).await.unwrap_err();
        assert!(matches!(error, StoreError::Moved { found: 1, .. }), "{error}");
    }
    assert_eq!(store.read(KEY).await.unwrap(), Some(document(1)));
    lock.release().await.unwrap();
}

async fn one_holder_at_a_time(store: &dyn Store) {
    assert_eq!(holder(store).await, None);
    let lock = store.lock(KEY, owner("3")).await.unwrap();
    assert_eq!(holder(store).await.as_deref(), Some("3"));
    let error = store.lock(KEY, owner("4")).await.err().expect("the lock is held");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    // Another state is not affected.
    store.lock("dev/other", owner("5")).await.unwrap().release().await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(holder(store).await, None);
    assert!(lock.append_journal(&[begin(1)]).await.is_err(), "nothing is written once it is released");
}

async fn many_want_it_and_one_gets_it(store: &dyn Store) {
    for round in 0..3 {
        let ids: Vec<String> = (0..8).map(|n| format!("race-{round}-{n}")).collect();
        let locks = futures::future::join_all(ids.iter().map(|id| store.lock(KEY, owner(id)))).await;
        let mut held = Vec::new();
        for lock in locks {
            match lock {
                Ok(lock) => held.push(lock),
                Err(StoreError::Locked { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(held.len(), 1, "round {round}");
        assert_eq!(holder(store).await.as_ref(), Some(&held[0].owner().id));
        held[0].release().await.unwrap();
    }
}

async fn a_lock_of_the_dead_is_taken_over(store: &dyn Store) {
    let mark = ProcessMark::of(std::process::id()).unwrap();
    let earlier = ProcessMark { started: mark.started.wrapping_sub(1), ..mark };
    let dead = LockOwner { pid: std::process::id(), process: Some(earlier), ..owner("dead") };
    let lock = store.lock(KEY, dead).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    drop(lock);
    let next = store.lock(KEY, owner("alive")).await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), [begin(1)]);
    next.clear_journal().await.unwrap();
    next.release().await.unwrap();
}

async fn a_lock_can_be_taken_away(store: &dyn Store) {
    let lock = store.lock(KEY, owner("6")).await.unwrap();
    let error = store.break_lock(KEY, "5").await.unwrap_err();
    assert!(matches!(error, StoreError::OtherLock { .. }), "{error}");
    lock.still_held().unwrap();
    store.break_lock(KEY, "6").await.unwrap();
    let next = store.lock(KEY, owner("7")).await.unwrap();
    // The former holder sees it at its next write at the latest, and for good.
    assert!(lock.append_journal(&[begin(1)]).await.is_err());
    assert!(lock.write(&document(2)).await.is_err());
    assert!(matches!(lock.still_held(), Err(StoreError::LockLost { .. })));
    lock.release().await.unwrap();
    assert_eq!(holder(store).await.as_deref(), Some("7"), "the new holder is left alone");
    next.still_held().unwrap();
    next.append_journal(&[begin(1)]).await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), [begin(1)]);
    next.clear_journal().await.unwrap();
    next.release().await.unwrap();
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

/// Larger than any store would keep in one piece.
async fn a_large_journal_is_read_in_order(store: &dyn Store) {
    let lock = store.lock(KEY, owner("11")).await.unwrap();
    let task = |id: u64| JournalRecord::Task { id, task: format!("UPID:{}", "x".repeat(40_000)) };
    for id in 1..=20 {
        lock.append_journal(&[task(id)]).await.unwrap();
    }
    let expected: Vec<JournalRecord> = (1..=20).map(task).collect();
    assert!(store.read_journal(KEY).await.unwrap() == expected);
    lock.clear_journal().await.unwrap();
    lock.append_journal(&[begin(21)]).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), [begin(21)]);
    let lock = store.lock(KEY, owner("12")).await.unwrap();
    let end = JournalRecord::End { id: 21, address: address(), effect: Effect::Unchanged };
    lock.append_journal(std::slice::from_ref(&end)).await.unwrap();
    assert_eq!(store.read_journal(KEY).await.unwrap(), [begin(21), end]);
    lock.clear_journal().await.unwrap();
    lock.release().await.unwrap();
}

async fn a_state_is_adopted_once(store: &dyn Store) {
    let key = "dev/adopted";
    let moved = |serial| StateDocument { serial, ..StateDocument::new(Lineage::derive("r", key), key) };
    let lock = store.lock(key, owner("13")).await.unwrap();
    lock.adopt(&moved(7)).await.unwrap();
    let error = lock.adopt(&moved(9)).await.unwrap_err();
    assert!(matches!(error, StoreError::Exists { serial: 7, .. }), "{error}");
    lock.write(&moved(8)).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read(key).await.unwrap(), Some(moved(8)));
}

async fn the_holder_is_described(store: &dyn Store) {
    let lock = store.lock(KEY, owner("15")).await.unwrap();
    assert_eq!(store.holder(KEY).await.unwrap().map(|holder| holder.owner), Some(owner("15")));
    let error = store.lock(KEY, owner("16")).await.err().expect("the lock is held");
    assert_eq!(
        error.to_string(),
        "the state `dev/onprem/web` is locked by me@here (pid 7) for `apply` since 2026-01-01T00:00:00Z"
    );
    lock.release().await.unwrap();
}

/// A migration that is interrupted leaves no state behind that somebody could go on with.
async fn a_history_is_adopted_before_its_state(store: &dyn Store) {
    let key = "dev/moved";
    let moved = |serial| StateDocument { serial, ..StateDocument::new(Lineage::derive("r", key), key) };
    let lock = store.lock(key, owner("17")).await.unwrap();
    lock.adopt_version(&moved(3)).await.unwrap();
    lock.adopt_version(&moved(5)).await.unwrap();
    assert_eq!(store.read(key).await.unwrap(), None);
    lock.adopt(&moved(7)).await.unwrap();
    let serials: Vec<u64> = store.history(key).await.unwrap().iter().map(|version| version.serial).collect();
    assert_eq!(serials, [7, 5, 3]);
    assert_eq!(store.read_version(key, 5).await.unwrap(), moved(5));
    assert_eq!(store.read(key).await.unwrap(), Some(moved(7)));
    let error = lock.adopt_version(&moved(6)).await.unwrap_err();
    assert!(matches!(error, StoreError::Exists { serial: 7, .. }), "{error}");
    lock.write(&moved(8)).await.unwrap();
    lock.release().await.unwrap();
}

async fn a_state_that_is_only_a_journal_is_a_state(store: &dyn Store) {
    let key = "dev/only-journal";
    let lock = store.lock(key, owner("14")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    lock.release().await.unwrap();
    assert_eq!(store.read(key).await.unwrap(), None);
    assert_eq!(store.read_journal(key).await.unwrap(), [begin(1)]);
}

/// For stores whose locks lapse, opened with a short lease: the holder stops first, and what it began is not lost.
pub(crate) async fn run_leases(store: &dyn Store) {
    let key = "dev/leased";
    let lock = store.lock(key, owner("silent")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    // As if the process had died: nothing beats any more.
    drop(lock);
    let mut refused = 0;
    let next = loop {
        match store.lock(key, owner("patient")).await {
            Ok(lock) => break lock,
            Err(StoreError::Locked { holder, .. }) => {
                assert_eq!(holder.owner.id, "silent");
                refused += 1;
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert!(refused > 0, "a lock without a sign of life is respected for a while");
    assert_eq!(store.read_journal(key).await.unwrap(), [begin(1)]);
    next.clear_journal().await.unwrap();
    // One that beats keeps its lock far longer than its lease.
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        next.still_held().unwrap();
        assert!(matches!(store.lock(key, owner("greedy")).await, Err(StoreError::Locked { .. })));
    }
    next.append_journal(&[begin(2)]).await.unwrap();
    next.release().await.unwrap();
}

/// Of a kind that some provider would have registered.
fn address() -> strata_resource::Address {
    static VM: strata_resource::KindTable = strata_resource::KindTable::new("vm", "", &[]);
    strata_resource::register_kinds(&[&VM]);
    "web/vm/web-1".parse().unwrap()
}
