//! A backup holds everything, and only a whole one is restored.

use std::path::Path;
use std::sync::Arc;

use strata_server::storage::Storage;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::{BackupError, back_up, restore};

use crate::storages;
use crate::world::{World, lock_info, state};

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn storage(world: &World) -> Arc<dyn Storage> {
    storages::open(world.data.path(), &EmbeddedOptions::default()).await
}

/// Beside a server that may run.
fn back_up_to(world: &World, folder: &Path) -> Result<usize, BackupError> {
    wait(async {
        let looking = match storages::is_embedded() {
            true => Arc::new(EmbeddedStorage::open_for_reading(&world.data.path().join(FILE)).unwrap()),
            false => storage(world).await,
        };
        back_up(&*looking, folder).await
    })
}

fn restore_from(world: &World, folder: &Path) -> Result<usize, BackupError> {
    wait(async { restore(&*storage(world).await, folder).await })
}

#[test]
fn everything_comes_back() {
    let mut world = World::started();
    let mut client = world.root();
    for (serial, size) in [(1, 10), (2, 700_000), (3, 20)] {
        client.send("POST", "/states/prod/a", &state(serial, "l", size));
    }
    client.send("POST", "/states/gone", &state(1, "l", 10));
    client.send("DELETE", "/states/gone", b"");
    client.send("LOCK", "/states/prod/a", &lock_info("one"));
    client.send_with("POST", "/v1/journal/prod/a", &[("Strata-Lock", "one")], b"line\n");
    let folder = world.data.path().join("backup");
    assert_eq!(back_up_to(&world, &folder).unwrap(), 2);
    assert!(matches!(back_up_to(&world, &folder), Err(BackupError::NotEmpty(_))));
    world.stop();
    let mut other = World::new();
    assert_eq!(restore_from(&other, &folder).unwrap(), 2);
    assert!(matches!(restore_from(&other, &folder), Err(BackupError::StatesThere(2))));
    other.start();
    let mut client = other.root();
    assert_eq!(client.send("GET", "/states/prod/a", b"").body, state(3, "l", 20));
    assert!(client.send("GET", "/v1/versions/prod/a?version=2", b"").body == state(2, "l", 700_000));
    assert_eq!(client.send("GET", "/v1/journal/prod/a", b"").body, b"line\n");
    assert_eq!(client.send("GET", "/states/gone", b"").status, 404);
    assert_eq!(client.send("GET", "/v1/versions/gone?version=1", b"").status, 200);
    assert_eq!(client.send("POST", "/states/prod/a", &state(4, "l", 1)).status, 423);
    assert_eq!(client.send("POST", "/states/prod/a?ID=one", &state(4, "l", 1)).status, 200);
    assert_eq!(client.send("GET", "/v1/versions/prod/a", b"").json()[0]["version"], 4);
}

#[test]
fn half_a_backup_is_none() {
    let mut world = World::started();
    world.root().send("POST", "/states/a", &state(1, "l", 10));
    world.stop();
    let folder = world.data.path().join("backup");
    back_up_to(&world, &folder).unwrap();
    let other = World::new();
    let version = folder.join("states/0001/1.json");
    let whole = std::fs::read(&version).unwrap();
    std::fs::write(&version, &whole[..whole.len() - 1]).unwrap();
    assert!(matches!(restore_from(&other, &folder), Err(BackupError::Damaged(path)) if path == version));
    let heads = wait(async { storage(&other).await.heads().await });
    assert!(heads.unwrap().is_empty(), "nothing was written");
    std::fs::write(&version, &whole).unwrap();
    std::fs::remove_file(folder.join("backup.json")).unwrap();
    assert!(matches!(restore_from(&other, &folder), Err(BackupError::NotWhole(_))));
}
