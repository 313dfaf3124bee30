//! What OpenTofu sends and what it expects.

use base64::Engine as _;
use md5::{Digest as _, Md5};

use crate::world::{World, lock_info, state};

fn md5(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(Md5::digest(bytes))
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let world = World::started();
    let mut client = world.root();
    for prefix in ["/states", "/tfstate"] {
        let path = format!("{prefix}/a/my%20state");
        client.send("DELETE", &path, b"");
        assert_eq!(client.send("GET", &path, b"").status, 404);
        let bytes = state(1, "l", 100);
        let sum = md5(&bytes);
        assert_eq!(client.send_with("POST", &path, &[("Content-MD5", &sum)], &bytes).status, 200);
        let read = client.send("GET", &path, b"");
        assert_eq!((read.status, &read.body), (200, &bytes));
        assert_eq!(read.header("content-md5"), Some(sum.as_str()));
        let head = client.send("HEAD", &path, b"");
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(client.send("DELETE", &path, b"").status, 200);
        assert_eq!(client.send("DELETE", &path, b"").status, 200);
        assert_eq!(client.send("GET", &path, b"").status, 404);
    }
}

#[test]
fn large_states_come_and_go_in_pieces() {
    let world = World::started();
    let mut client = world.root();
    let chunk = 256 * 1024;
    let empty = state(1, "l", 0).len();
    let sizes =
        [chunk - empty - 1, chunk - empty, chunk - empty + 1, 2 * chunk - empty, 5 * chunk + 7, 20_000_000];
    for (serial, size) in (10..).zip(sizes) {
        let bytes = state(serial, "l", size);
        assert_eq!(client.send("POST", "/states/big", &bytes).status, 200, "{size}");
        let read = client.send("GET", "/states/big", b"");
        assert!(read.body == bytes, "{size}: {} bytes became {}", bytes.len(), read.body.len());
    }
    let refused = client.send("POST", "/states/big", &state(99, "l", 25 * 1024 * 1024));
    assert_eq!(refused.status, 413);
    assert_eq!(client.send("GET", "/states/big", b"").header("strata-serial"), Some("15"));
}

#[test]
fn a_changed_state_is_refused() {
    let world = World::started();
    let mut client = world.root();
    let mut send = |sum: &str, bytes: &[u8]| {
        client.send_with("POST", "/states/a", &[("Content-MD5", sum)], bytes).status
    };
    let bytes = state(1, "l", 10);
    assert_eq!(send(&md5(b"other"), &bytes), 400);
    assert_eq!(send("nonsense", &bytes), 400);
    assert_eq!(send("", &bytes), 400);
    assert_eq!(send(&md5(&bytes[..20]), &bytes[..20]), 400, "no JSON");
    assert_eq!(world.root().send("GET", "/states/a", b"").status, 404);
}

#[test]
fn locks_in_all_the_ways_that_clients_know() {
    let world = World::started();
    let mut client = world.root();
    let ways = [
        ("LOCK", "/states/a/b", "UNLOCK", "/states/a/b"),
        ("LOCK", "/states/a/b/lock", "UNLOCK", "/states/a/b/lock"),
        ("PUT", "/states/a/b/lock", "DELETE", "/states/a/b/lock"),
        ("POST", "/tfstate/a/b/lock", "DELETE", "/tfstate/a/b/lock"),
    ];
    for (lock, lock_path, unlock, unlock_path) in ways {
        assert_eq!(client.send("GET", "/states/a/b/lock", b"").status, 404);
        assert_eq!(client.send(lock, lock_path, &lock_info("one")).status, 200);
        assert_eq!(client.send(lock, lock_path, &lock_info("one")).status, 200, "the answer was lost");
        let held = client.send(lock, lock_path, &lock_info("two"));
        assert_eq!((held.status, held.json()["ID"].as_str()), (423, Some("one")));
        assert_eq!(client.send("GET", "/states/a/b/lock", b"").json()["Who"], "me@here");
        assert_eq!(client.send(unlock, unlock_path, &lock_info("two")).status, 409);
        assert_eq!(client.send(unlock, unlock_path, &lock_info("one")).status, 200);
        assert_eq!(client.send(unlock, unlock_path, &lock_info("one")).status, 200, "the answer was lost");
        // What force-unlock sends.
        for body in [&br#"{"ID":"one"}"#[..], b"", b"\"one\"", b"null"] {
            assert_eq!(client.send(lock, lock_path, &lock_info("one")).status, 200);
            assert_eq!(client.send(unlock, unlock_path, body).status, 200);
        }
    }
    for body in
        [&b""[..], b"{}", b"[]", b"{\"ID\":1}", b"{\"ID\":\"\"}", b"not json", b"{\"ID\":\"a\\u0000\"}"]
    {
        assert_eq!(client.send("LOCK", "/states/a/b", body).status, 400, "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(client.send("LOCK", "/states/a/b", &vec![b' '; 20_000]).status, 413);
}

#[test]
fn only_the_holder_of_the_lock_writes() {
    let world = World::started();
    let mut client = world.root();
    let mut post = |query: &str, serial| {
        client.send("POST", &format!("/states/a{query}"), &state(serial, "l", 10)).status
    };
    assert_eq!(post("", 1), 200);
    assert_eq!(world.root().send("LOCK", "/states/a", &lock_info("one")).status, 200);
    assert_eq!(post("", 2), 423);
    assert_eq!(post("?ID=two", 2), 423);
    assert_eq!(post("?ID=one", 2), 200);
    assert_eq!(world.root().send("DELETE", "/states/a", b"").status, 423);
    assert_eq!(world.root().send("UNLOCK", "/states/a", b"").status, 200);
    assert_eq!(post("?ID=one", 3), 409, "it was taken away");
    assert_eq!(post("", 3), 200);
}

#[test]
fn serial_and_lineage_are_kept() {
    let world = World::started();
    let mut client = world.root();
    let mut post = |query: &str, serial, lineage| {
        client.send("POST", &format!("/states/a{query}"), &state(serial, lineage, 10)).status
    };
    assert_eq!(post("", 5, "l"), 200);
    assert_eq!(post("", 5, "l"), 200, "the answer was lost");
    assert_eq!(post("", 4, "l"), 409);
    assert_eq!(post("", 6, "m"), 409);
    assert_eq!(post("?force=maybe", 4, "l"), 400);
    assert_eq!(post("?force=true", 4, "m"), 200);
    drop(world.root().send("GET", "/healthz", b""));
    let mut ci = world.client("Bearer ci-token");
    assert_eq!(ci.send("POST", "/states/prod/a", &state(5, "l", 10)).status, 200);
    assert_eq!(ci.send("POST", "/states/prod/a?force=true", &state(4, "l", 10)).status, 403);
    let versions = world.root().send("GET", "/v1/versions/a", b"").json();
    assert_eq!(versions[0]["forced"], true);
    assert_eq!(versions[0]["serial"], 4);
    assert_eq!(versions[1]["forced"], false);
}
