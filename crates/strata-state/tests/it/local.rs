//! What only the local store can show: damaged files, and a lock freed by death.

use strata_state::{JournalRecord, LocalStore, Store, StoreError};

use crate::conformance::{self, begin, owner};

#[tokio::test]
async fn the_local_store_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    conformance::run(&LocalStore::new(folder.path())).await;
}

#[tokio::test]
async fn an_encrypted_store_keeps_the_same_promises() {
    let folder = tempfile::tempdir().unwrap();
    let key = strata_state::KeySource::passphrase("correct horse".into(), 1000);
    let codec = strata_state::Codec::encrypted(strata_state::Encryption::new(Some(key), Vec::new(), false));
    conformance::run(&LocalStore::new(folder.path()).with_codec(codec)).await;
}

async fn with_one_version() -> (tempfile::TempDir, LocalStore, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::new(folder.path());
    let lineage = strata_resource::Lineage::derive("r", "dev/web");
    let mut document = strata_state::StateDocument::new(lineage, "dev/web");
    document.serial = 1;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.write(&document).await.unwrap();
    lock.release().await.unwrap();
    let file = folder.path().join("dev/web/state.json");
    (folder, store, file)
}

#[tokio::test]
async fn a_truncated_state_is_refused_and_the_last_good_version_named() {
    let (_folder, store, file) = with_one_version().await;
    let bytes = std::fs::read(&file).unwrap();
    for length in 0..bytes.len() - 2 {
        std::fs::write(&file, &bytes[..length]).unwrap();
        let error = store.read("dev/web").await.unwrap_err();
        assert!(matches!(error, StoreError::Damaged { newest_good: Some(1), .. }), "{length}: {error}");
    }
}

#[tokio::test]
async fn a_state_of_a_newer_program_is_refused() {
    let (_folder, store, file) = with_one_version().await;
    std::fs::write(&file, r#"{"format": 9, "what": "ever"}"#).unwrap();
    assert_eq!(
        store.read("dev/web").await.unwrap_err().to_string(),
        "the state `dev/web` was written by a newer Strata: its format is 9, this one knows up to 2"
    );
}

#[tokio::test]
async fn states_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store, file) = with_one_version().await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    for file in [file.with_file_name("journal"), file] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_lock_is_freed_when_its_holder_is_gone() {
    let (_folder, store, _file) = with_one_version().await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    drop(lock);
    store.lock("dev/web", owner("2")).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_torn_line_is_cut_off_before_the_next_record() {
    let (_folder, store, file) = with_one_version().await;
    let journal = file.with_file_name("journal");
    let whole = begin(1).to_line().unwrap();
    let torn = begin(2).to_line().unwrap();
    // Half a line, and a whole line whose bytes never reached the disk.
    for tail in [torn[..torn.len() / 2].to_owned(), format!("{}\n", "\0".repeat(torn.len() - 1))] {
        std::fs::write(&journal, format!("{whole}{tail}")).unwrap();
        let lock = store.lock("dev/web", owner("1")).await.unwrap();
        lock.append_journal(&[begin(3)]).await.unwrap();
        lock.release().await.unwrap();
        assert_eq!(store.read_journal("dev/web").await.unwrap(), [begin(1), begin(3)]);
    }
}

#[tokio::test]
async fn a_damaged_journal_is_neither_read_nor_extended() {
    let (_folder, store, file) = with_one_version().await;
    let mut bytes =
        [begin(1), begin(2)].map(|record: JournalRecord| record.to_line().unwrap()).concat().into_bytes();
    bytes[30] ^= 1;
    std::fs::write(file.with_file_name("journal"), &bytes).unwrap();
    assert_eq!(
        store.read_journal("dev/web").await.unwrap_err().to_string(),
        "the journal of `dev/web` cannot be read: line 1 is damaged: its checksum is wrong"
    );
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    assert!(matches!(lock.append_journal(&[begin(3)]).await, Err(StoreError::Journal { .. })));
    assert_eq!(std::fs::read(file.with_file_name("journal")).unwrap(), bytes);
}

#[tokio::test]
async fn what_a_death_leaves_half_written_is_no_version() {
    let (_folder, store, file) = with_one_version().await;
    std::fs::write(file.with_file_name("history").join("00000002.new"), "{").unwrap();
    let serials: Vec<u64> =
        store.history("dev/web").await.unwrap().iter().map(|version| version.serial).collect();
    assert_eq!(serials, [1]);
}

#[tokio::test]
async fn a_state_that_is_only_a_journal_yet_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::new(folder.path());
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    assert_eq!(store.keys().await.unwrap(), [] as [String; 0]);
    lock.append_journal(&[begin(1)]).await.unwrap();
    drop(lock);
    assert_eq!(store.keys().await.unwrap(), ["dev/web"]);
    assert_eq!(store.read("dev/web").await.unwrap(), None);
}

#[tokio::test]
async fn the_former_holder_of_a_lock_leaves_the_new_one_alone() {
    let (_folder, store, _file) = with_one_version().await;
    let former = store.lock("dev/web", owner("1")).await.unwrap();
    store.break_lock("dev/web", "1").await.unwrap();
    let next = store.lock("dev/web", owner("2")).await.unwrap();
    former.release().await.unwrap();
    assert_eq!(store.holder("dev/web").await.unwrap().unwrap().owner, owner("2"));
    next.append_journal(&[begin(1)]).await.unwrap();
    next.release().await.unwrap();
    assert!(next.append_journal(&[begin(2)]).await.is_err(), "nothing is written once it is released");
}

#[tokio::test]
async fn asking_who_holds_a_lock_does_not_refuse_the_next_holder() {
    let (_folder, store, _file) = with_one_version().await;
    let store = std::sync::Arc::new(store);
    let asking = store.clone();
    let asked = tokio::spawn(async move {
        for _ in 0..200 {
            asking.holder("dev/web").await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..20 {
        store.lock("dev/web", owner("1")).await.unwrap().release().await.unwrap();
    }
    asked.await.unwrap();
}
