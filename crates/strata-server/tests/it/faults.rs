//! Disk full, damaged files, two servers, secrets on the wire.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;
use strata_server::storage::StorageError;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};
use strata_server::{Server, ServerError};

use crate::world::{World, lock_info, options, state};

#[test]
fn a_full_disk_loses_nothing() {
    let mut world = World::new();
    world.max_bytes = Some(4 * 1024 * 1024);
    world.start();
    let mut client = world.root();
    client.send("POST", "/states/small", &state(1, "l", 10));
    let mut last = 0;
    let full = (1..200).find_map(|serial| {
        let status = client.send("POST", "/states/large", &state(serial, "l", 200_000)).status;
        if status == 200 {
            last = serial;
        }
        (status != 200).then_some(status)
    });
    assert_eq!(full, Some(507));
    assert_eq!(client.send("POST", "/states/huge", &state(1, "l", 3_000_000)).status, 507);
    assert!(last > 5);
    assert!(client.send("GET", "/states/large", b"").body == state(last, "l", 200_000));
    assert_eq!(client.send("GET", "/states/small", b"").body, state(1, "l", 10));
    // Locks still work, so that a run can end in order.
    assert_eq!(client.send("LOCK", "/states/small", &lock_info("one")).status, 200);
    assert_eq!(client.send("UNLOCK", "/states/small", &lock_info("one")).status, 200);
    world.stop();
    world.max_bytes = None;
    world.start();
    let mut client = world.root();
    assert!(client.send("GET", "/states/large", b"").body == state(last, "l", 200_000));
    assert_eq!(client.send("POST", "/states/large", &state(last + 1, "l", 200_000)).status, 200);
}

/// A state that no storage makes smaller.
fn noisy(serial: u64) -> Vec<u8> {
    let mut random = StdRng::seed_from_u64(serial);
    let noise: String = (0..900_000).map(|_| char::from(random.random_range(b'0'..=b'z'))).collect();
    json!({"version": 4, "serial": serial, "lineage": "l", "noise": noise}).to_string().into_bytes()
}

/// `STRATA_TEST_STORAGE` names a storage with little room.
#[test]
#[ignore = "needs a storage that is almost full: just stores postgres"]
fn a_full_storage_loses_nothing() {
    assert!(!crate::storages::is_embedded(), "STRATA_TEST_STORAGE is set");
    let mut world = World::started();
    let mut client = world.root();
    assert_eq!(client.send("POST", "/states/small", &state(1, "l", 10)).status, 200);
    let mut last = 0;
    let full = (1..500).find_map(|serial| {
        let answer = client.send("POST", "/states/large", &noisy(serial));
        if answer.status == 200 {
            last = serial;
        }
        (answer.status != 200).then_some(answer)
    });
    let full = full.expect("there was room for all of it");
    assert_eq!(full.status, 507, "{}", String::from_utf8_lossy(&full.body));
    assert!(full.json()["error"].as_str().unwrap().contains("no space left"), "{}", full.json());
    assert!(last > 2);
    let lock = client.send("LOCK", "/states/small", &lock_info("one")).status;
    assert!(matches!(lock, 200 | 507), "{lock}");
    for again in [false, true] {
        if again {
            world.stop();
            world.start();
            client = world.root();
        }
        assert!(client.send("GET", "/states/large", b"").body == noisy(last));
        assert_eq!(client.send("GET", "/states/small", b"").body, state(1, "l", 10));
        let versions = client.send("GET", "/v1/versions/large", b"").json();
        assert_eq!(versions[0]["serial"], last);
    }
}

fn open(world: &World) -> Result<EmbeddedStorage, StorageError> {
    EmbeddedStorage::open(&world.data.path().join(FILE), &EmbeddedOptions::default())
}

#[test]
fn a_damaged_database_is_said_to_be_damaged() {
    let mut world = World::started();
    let mut client = world.root();
    for serial in 1..50 {
        client.send("POST", "/states/a", &state(serial, "l", 20_000));
    }
    world.stop();
    let path = world.data.path().join(FILE);
    // Folds the log into the file.
    drop(open(&world).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(300));
    let whole = std::fs::read(&path).unwrap();
    assert!(whole.len() > 500_000, "{}", whole.len());
    for damaged in
        [&whole[..whole.len() / 2], &whole[..5000], b"this is no database at all, but long enough to be one"]
    {
        std::fs::write(&path, damaged).unwrap();
        let _ = std::fs::remove_file(path.with_extension("db-wal"));
        let _ = std::fs::remove_file(path.with_extension("db-shm"));
        let error = open(&world).err().expect("a damaged database was opened");
        assert!(matches!(error, StorageError::Damaged(_)), "{error}");
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
    }
}

#[test]
fn one_server_for_each_database() {
    let world = World::started();
    let error = open(&world).err().expect("a second server was let in");
    assert!(error.to_string().contains("in use by another server"), "{error}");
}

#[test]
fn states_are_not_sent_in_the_clear() {
    let world = World::new();
    let start = |listen: [u8; 4], plain: bool| {
        let storage = Arc::new(open(&world).unwrap());
        let mut options = options(world.data.path(), storage, world.clock.clone(), None);
        options.listen = (listen, 0).into();
        options.allow_plain = plain;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { Server::start(options).await.map(|_| ()) })
    };
    assert!(matches!(start([0, 0, 0, 0], false), Err(ServerError::Plain(_))));
    assert!(start([127, 0, 0, 1], false).is_ok());
}

#[test]
fn a_server_without_users_does_not_start() {
    let world = World::new();
    std::fs::write(strata_server::access::AccessFile::path(world.data.path()), "{}").unwrap();
    let storage = Arc::new(open(&world).unwrap());
    let options = options(world.data.path(), storage, world.clock.clone(), None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let started = runtime.block_on(async { Server::start(options).await.map(|_| ()) });
    assert!(matches!(started, Err(ServerError::Nobody)));
}
