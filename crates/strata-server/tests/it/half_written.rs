//! An object of a bucket that is not what was written: said, and nothing else is lost. Runs where `STRATA_TEST_STORAGE` is a bucket.

use bytes::Bytes;
use strata_state::conditional_objects;

use crate::storages;
use crate::world::{World, lock_info, state};

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn half_an_object_is_noticed() {
    let world = World::new();
    let Some(options) = storages::bucket(world.data.path()) else { return };
    let mut world = world;
    world.start();
    let mut client = world.root();
    assert_eq!(client.send("POST", "/states/a", &state(1, "l", 10)).status, 200);
    let objects = wait(conditional_objects(&options)).unwrap();
    let before: Vec<String> =
        wait(objects.list("contents")).unwrap().into_iter().map(|found| found.path).collect();
    // Two parts, of which the second loses its end.
    let large = state(2, "l", 5_000_000);
    assert_eq!(client.send("POST", "/states/a", &large).status, 200);
    let mut parts: Vec<String> =
        wait(objects.list("contents")).unwrap().into_iter().map(|found| found.path).collect();
    parts.retain(|path| !before.contains(path));
    parts.sort();
    assert_eq!(parts.len(), 2, "{parts:?}");
    let second = wait(objects.get(&parts[1])).unwrap().unwrap().bytes;
    wait(objects.put(&parts[1], second.slice(..second.len() / 2))).unwrap();
    let cut = client.try_send("GET", "/states/a", &[], b"");
    assert!(cut.is_err(), "half a state was given as a whole one");
    let first = wait(objects.get(&parts[0])).unwrap().unwrap().bytes;
    wait(objects.put(&parts[0], Bytes::from_static(b"{"))).unwrap();
    let refused = client.send("GET", "/states/a", b"");
    assert_eq!(refused.status, 500);
    assert!(refused.json()["error"].as_str().unwrap().contains("not written whole"), "{}", refused.json());
    // What was there before is still there, and what comes next is not kept back.
    assert_eq!(client.send("GET", "/v1/versions/a?version=1", b"").body, state(1, "l", 10));
    assert_eq!(client.send("LOCK", "/states/a", &lock_info("one")).status, 200);
    assert_eq!(client.send("POST", "/states/a?ID=one", &state(3, "l", 10)).status, 200);
    wait(objects.put(&parts[0], first)).unwrap();
    wait(objects.put(&parts[1], second)).unwrap();
    assert!(client.send("GET", "/v1/versions/a?version=2", b"").body == large);
    // The object that says which versions there are.
    let heads = wait(objects.list("heads")).unwrap();
    let head = wait(objects.get(&heads[0].path)).unwrap().unwrap().bytes;
    wait(objects.put(&heads[0].path, head.slice(..head.len() - 5))).unwrap();
    let refused = client.send("GET", "/states/a", b"");
    assert_eq!(refused.status, 500);
    assert!(refused.json()["error"].as_str().unwrap().contains("cannot be read"), "{}", refused.json());
    assert_eq!(
        client.send("POST", "/states/a", &state(4, "l", 10)).status,
        500,
        "a damaged head was replaced"
    );
    wait(objects.put(&heads[0].path, head)).unwrap();
    assert_eq!(client.send("GET", "/states/a", b"").body, state(3, "l", 10));
}
