//! What only the local store can show: damaged files, and a lock freed by death.

use strata_state::{LocalStore, Store, StoreError};

use crate::conformance::{self, owner};

#[tokio::test]
async fn the_local_store_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    conformance::run(&LocalStore::new(folder.path())).await;
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
        "the state `dev/web` was written by a newer Strata: its format is 9, this one knows up to 1"
    );
}

#[tokio::test]
async fn states_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, _store, file) = with_one_version().await;
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_lock_is_freed_when_its_holder_is_gone() {
    let (_folder, store, _file) = with_one_version().await;
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    drop(lock);
    store.lock("dev/web", owner("2")).await.unwrap().release().await.unwrap();
}
