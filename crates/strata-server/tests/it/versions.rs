//! Versions: kept, bounded, compared, restored.

use serde_json::{Value, json};
use strata_server::storage::Retention;

use crate::world::{World, lock_info, state};

#[test]
fn versions_are_listed_and_read() {
    let world = World::started();
    let mut client = world.root();
    for serial in 1..=3 {
        world.clock.pass(10);
        client.send("POST", "/states/a", &state(serial, "l", 10));
    }
    let versions = client.send("GET", "/v1/versions/a", b"").json();
    let numbers: Vec<&Value> =
        versions.as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(versions[0]["current"], true);
    assert_eq!(versions[1]["current"], false);
    assert_eq!(versions[2]["by"], "root");
    assert_eq!(versions[2]["written"], "2027-01-15T08:00:10Z");
    assert_eq!(client.send("GET", "/v1/versions/a?version=2", b"").body, state(2, "l", 10));
    assert_eq!(client.send("GET", "/v1/versions/a?serial=1", b"").body, state(1, "l", 10));
    assert_eq!(client.send("GET", "/v1/versions/a?version=9", b"").status, 404);
    assert_eq!(client.send("GET", "/v1/versions/a?version=x", b"").status, 400);
    // A deleted state keeps them.
    client.send("DELETE", "/states/a", b"");
    assert_eq!(client.send("GET", "/v1/versions/a?version=2", b"").status, 200);
    assert_eq!(client.send("GET", "/v1/versions/none", b"").json(), json!([]));
}

#[test]
fn going_back_is_a_new_version() {
    let world = World::started();
    let mut client = world.root();
    for (serial, size) in [(1, 10), (2, 700_000), (3, 20)] {
        client.send("POST", "/states/a", &state(serial, "l", size));
    }
    let restored = client.send("POST", "/v1/restore/a?version=2", b"");
    assert_eq!(restored.json(), json!({"version": 4, "serial": 4}));
    let expected =
        String::from_utf8(state(2, "l", 700_000)).unwrap().replacen("\"serial\": 2", "\"serial\": 4", 1);
    assert!(client.send("GET", "/states/a", b"").body == expected.as_bytes());
    client.send("LOCK", "/states/a", &lock_info("one"));
    assert_eq!(client.send("POST", "/v1/restore/a?version=1", b"").status, 423);
    let ours = [("Strata-Lock", "one")];
    assert_eq!(client.send_with("POST", "/v1/restore/a?version=1", &ours, b"").status, 200);
    client.send("UNLOCK", "/states/a", b"");
    client.send("DELETE", "/states/a", b"");
    assert_eq!(
        client.send("POST", "/v1/restore/a?version=3", b"").json(),
        json!({"version": 6, "serial": 4})
    );
    assert_eq!(client.send("POST", "/v1/restore/a?version=99", b"").status, 404);
    let encrypted = br#"{"serial":9,"lineage":"l","encrypted_data":"x"}"#;
    assert_eq!(client.send("POST", "/states/a", encrypted).status, 200);
    assert_eq!(client.send("POST", "/states/a", &state(10, "l", 1)).status, 200);
    assert_eq!(client.send("POST", "/v1/restore/a?version=7", b"").status, 409);
}

#[test]
fn versions_are_compared_without_values() {
    let world = World::started();
    let mut client = world.root();
    client.send("POST", "/states/a", &state(1, "l", 10));
    client.send("POST", "/states/a", &state(2, "l", 10));
    let diff = client.send("GET", "/v1/diff/a?from=1&to=2", b"");
    assert_eq!(
        diff.json(),
        json!({"from": 1, "to": 2, "added": [], "removed": [], "changed": ["terraform_data.a"]})
    );
    assert_eq!(client.send("GET", "/v1/diff/a?from=1", b"").json()["to"], 2);
    assert_eq!(client.send("GET", "/v1/diff/a", b"").status, 400);
    assert_eq!(client.send("GET", "/v1/diff/a?from=7", b"").status, 404);
}

#[test]
fn old_versions_go_and_the_newest_stay() {
    let mut world = World::new();
    world.retention = Retention { count: 20, age: Some(1000) };
    world.start();
    let mut client = world.root();
    for serial in 1..=30 {
        client.send("POST", "/states/a", &state(serial, "l", if serial % 7 == 0 { 600_000 } else { 10 }));
    }
    let count = |client: &mut crate::client::Client| {
        client.send("GET", "/v1/versions/a", b"").json().as_array().unwrap().len()
    };
    assert_eq!(count(&mut client), 20);
    // A clock far in the future takes what is old by it, but never the newest ten.
    world.clock.pass(1_000_000_000);
    world.stop();
    world.start();
    let mut client = world.root();
    let shrunk = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        count(&mut client) == 10
    });
    assert!(shrunk, "{} are left", count(&mut client));
    assert_eq!(client.send("GET", "/states/a", b"").body, state(30, "l", 10));
    assert_eq!(client.send("GET", "/v1/versions/a?version=28", b"").body, state(28, "l", 600_000));
}

#[test]
fn a_clock_that_goes_back_loses_and_reorders_nothing() {
    let mut world = World::new();
    world.retention = Retention { count: 100, age: Some(1000) };
    world.start();
    let mut client = world.root();
    for serial in 1..=15 {
        assert_eq!(client.send("POST", "/states/a", &state(serial, "l", 10)).status, 200);
        world.clock.set_back(10_000_000);
    }
    assert_eq!(client.send("LOCK", "/states/a", &lock_info("one")).status, 200);
    world.stop();
    world.start();
    let mut client = world.root();
    assert_eq!(client.send("GET", "/states/a/lock", b"").json()["ID"], "one");
    let versions = client.send("GET", "/v1/versions/a", b"").json();
    let numbers: Vec<u64> =
        versions.as_array().unwrap().iter().map(|version| version["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=15).rev().collect::<Vec<_>>());
    assert_eq!(client.send("GET", "/states/a", b"").body, state(15, "l", 10));
    assert_eq!(client.send("POST", "/states/a?ID=one", &state(16, "l", 10)).status, 200);
}

#[test]
fn a_history_joins_a_state_that_is_not_there_yet() {
    let world = World::started();
    let mut client = world.root();
    let ours = [("Strata-Lock", "one")];
    assert_eq!(client.send("PUT", "/v1/versions/a", &state(3, "l", 10)).status, 400);
    assert_eq!(client.send_with("PUT", "/v1/versions/a", &ours, &state(3, "l", 10)).status, 409);
    client.send("LOCK", "/states/a", &lock_info("one"));
    let other = [("Strata-Lock", "two")];
    assert_eq!(client.send_with("PUT", "/v1/versions/a", &other, &state(3, "l", 10)).status, 423);
    for (serial, size) in [(3, 10), (5, 700_000)] {
        assert_eq!(client.send_with("PUT", "/v1/versions/a", &ours, &state(serial, "l", size)).status, 200);
    }
    // Until the state itself comes there is none.
    assert_eq!(client.send("GET", "/states/a", b"").status, 404);
    assert_eq!(client.send("GET", "/v1/versions/a?serial=3", b"").body, state(3, "l", 10));
    assert!(client.send("GET", "/v1/versions/a?serial=5", b"").body == state(5, "l", 700_000));
    let put = [("Strata-Lock", "one"), ("If-Serial", "0")];
    assert_eq!(client.send_with("PUT", "/v1/states/a", &put, &state(7, "l", 10)).status, 200);
    let late = client.send_with("PUT", "/v1/versions/a", &ours, &state(6, "l", 10));
    assert_eq!((late.status, &late.json()["serial"]), (412, &json!(7)));
    let versions = client.send("GET", "/v1/versions/a", b"").json();
    let serials: Vec<u64> =
        versions.as_array().unwrap().iter().map(|version| version["serial"].as_u64().unwrap()).collect();
    assert_eq!(serials, [7, 5, 3]);
    let mut eve = world.client("Bearer eve-token");
    assert_eq!(eve.send_with("PUT", "/v1/versions/prod/a", &ours, &state(3, "l", 10)).status, 403);
}
