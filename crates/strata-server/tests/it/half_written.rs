//! An object of a bucket that is not what was written: said, and nothing else is lost. Runs where `STRATA_TEST_STORAGE` is a bucket.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use strata_server::storage::s3::{S3Storage, conditional_objects};
use strata_server::storage::{Retention, Storage as _};

use crate::client::Client;
use crate::process::ServerProcess;
use crate::storages;
use crate::world::{ROOT, World, lock_info, state};

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
    // Whoever wants all states is not given fewer; whoever wants another gets it, after a restart too.
    assert_eq!(client.send("GET", "/v1/states", b"").status, 500);
    world.stop();
    world.start();
    let mut client = world.root();
    assert_eq!(client.send("POST", "/states/b", &state(1, "l", 10)).status, 200);
    assert_eq!(client.send("GET", "/states/a", b"").status, 500);
    wait(objects.put(&heads[0].path, head)).unwrap();
    assert_eq!(client.send("GET", "/states/a", b"").body, state(3, "l", 10));
}

/// A server is killed in the middle of an upload: what it had written of it goes, and nothing else.
#[test]
fn leftovers_of_a_killed_server_go() {
    let world = World::new();
    let Some(options) = storages::bucket(world.data.path()) else { return };
    let mut server = ServerProcess::start(world.data.path(), 0);
    let mut client = Client::new(server.address, Some(ROOT));
    let large = state(1, "l", 9_000_000);
    assert_eq!(client.send("POST", "/states/kept", &large).status, 200);
    client.send("POST", "/v1/leases/kept", br#"{"owner": {"id": "run"}}"#);
    let ours = [("Strata-Lock", "run")];
    assert_eq!(client.send_with("POST", "/v1/journal/kept", &ours, b"a\n").status, 200);
    let objects = wait(conditional_objects(&options)).unwrap();
    let there = || {
        let mut paths: Vec<String> = Vec::new();
        for folder in ["contents", "journals"] {
            paths.extend(wait(objects.list(folder)).unwrap().into_iter().map(|found| found.path));
        }
        paths.sort();
        paths
    };
    let named = there();
    assert_eq!(named.len(), 4, "{named:?}");
    let mut half = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /states/lost HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nContent-Length: {}\r\n\r\n",
        large.len()
    );
    half.write_all(head.as_bytes()).unwrap();
    half.write_all(&large[..large.len() - 10]).unwrap();
    while there().len() < 6 {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill();
    wait(objects.put("journals/lost", Bytes::from_static(b"a\n"))).unwrap();
    let swept = |after: Duration| {
        wait(async {
            let storage = S3Storage::open(&options, Retention::default()).await.unwrap();
            storage.with_leftovers_after(after).sweep(Some(1_800_000_000)).await
        })
    };
    // It could be an upload of another server.
    swept(Duration::from_secs(3600)).unwrap();
    assert_eq!(there().len(), 7);
    // A record that cannot be read may name anything: then nothing goes.
    let heads = wait(objects.list("heads")).unwrap();
    let head = wait(objects.get(&heads[0].path)).unwrap().unwrap().bytes;
    wait(objects.put(&heads[0].path, head.slice(..5))).unwrap();
    assert!(swept(Duration::ZERO).is_err());
    assert_eq!(there().len(), 7);
    wait(objects.put(&heads[0].path, head)).unwrap();
    swept(Duration::ZERO).unwrap();
    assert_eq!(there(), named);
    let server = ServerProcess::start(world.data.path(), 0);
    let mut client = Client::new(server.address, Some(ROOT));
    assert!(client.send("GET", "/states/kept", b"").body == large);
    assert_eq!(client.send("GET", "/v1/journal/kept", b"").body, b"a\n");
    assert_eq!(client.send("GET", "/states/lost", b"").status, 404);
}
