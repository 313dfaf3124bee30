//! What Strata's own runs do: leases, heartbeats, journals, compare-and-swap.

use serde_json::json;

use crate::client::Client;
use crate::world::{World, lock_info, state};

fn lease(client: &mut Client, id: &str) -> crate::client::Response {
    let owner =
        json!({"owner": {"id": id, "who": "me@here", "pid": 7, "operation": "apply", "since": "now"}});
    client.send("POST", "/v1/leases/prod/web", owner.to_string().as_bytes())
}

#[test]
fn a_run_under_its_lease() {
    let world = World::started();
    let mut client = world.root();
    let got = lease(&mut client, "run-1").json();
    assert_eq!((&got["id"], &got["ttl"]), (&json!("run-1"), &json!(60)));
    let held = lease(&mut client, "run-2");
    assert_eq!(held.status, 423);
    assert_eq!(held.json()["holder"]["owner"]["pid"], 7);
    assert_eq!(client.send("LOCK", "/states/prod/web", &lock_info("tofu")).json()["Who"], "me@here");
    let ours = [("Strata-Lock", "run-1"), ("If-Serial", "0")];
    let put = client.send_with("PUT", "/v1/states/prod/web", &ours, &state(1, "l", 10));
    assert_eq!(put.json(), json!({"version": 1, "serial": 1}));
    let again = client.send_with("PUT", "/v1/states/prod/web", &ours, &state(1, "l", 10));
    assert_eq!(again.json(), json!({"version": 1, "serial": 1}), "the answer was lost");
    let moved = client.send_with("PUT", "/v1/states/prod/web", &ours, &state(2, "l", 10));
    assert_eq!((moved.status, &moved.json()["serial"]), (412, &json!(1)));
    let theirs = [("Strata-Lock", "run-2"), ("If-Serial", "1")];
    assert_eq!(client.send_with("PUT", "/v1/states/prod/web", &theirs, &state(2, "l", 10)).status, 423);
    assert_eq!(client.send("DELETE", "/v1/leases/prod/web?id=run-2", b"").status, 409);
    assert_eq!(client.send("DELETE", "/v1/leases/prod/web?id=run-1", b"").status, 200);
    assert_eq!(client.send_with("PUT", "/v1/states/prod/web", &theirs, &state(2, "l", 10)).status, 409);
    let read = client.send("GET", "/v1/states/prod/web", b"");
    assert_eq!((read.header("strata-serial"), read.header("strata-version")), (Some("1"), Some("1")));
    let list = client.send("GET", "/v1/states?prefix=prod", b"").json();
    assert_eq!((&list[0]["name"], &list[0]["serial"]), (&json!("prod/web"), &json!(1)));
    assert_eq!(client.send("GET", "/v1/states?prefix=pro", b"").json(), json!([]));
}

#[test]
fn the_journal_is_written_under_the_lock() {
    let world = World::started();
    let mut client = world.root();
    let path = "/v1/journal/prod/web";
    let one = [("Strata-Lock", "run-1")];
    assert_eq!(client.send_with("POST", path, &one, b"a\n").status, 409);
    lease(&mut client, "run-1");
    assert_eq!(client.send("POST", path, b"a\n").status, 400);
    assert_eq!(client.send_with("POST", path, &one, b"torn").status, 400);
    assert_eq!(client.send_with("POST", path, &one, b"a\nb\n").status, 200);
    assert_eq!(client.send_with("POST", path, &one, b"c\n").status, 200);
    assert_eq!(client.send_with("POST", path, &[("Strata-Lock", "run-2")], b"x\n").status, 409);
    assert_eq!(client.send("GET", path, b"").body, b"a\nb\nc\n");
    // The run is gone, and with it its lease; the next one reads what it left.
    assert_eq!(client.send("DELETE", "/v1/leases/prod/web", b"").json()["taken"]["id"], "run-1");
    lease(&mut client, "run-2");
    assert_eq!(client.send_with("POST", path, &one, b"late\n").status, 409);
    assert_eq!(client.send("GET", path, b"").body, b"a\nb\nc\n");
    assert_eq!(client.send_with("DELETE", path, &one, b"").status, 409);
    assert_eq!(client.send_with("DELETE", path, &[("Strata-Lock", "run-2")], b"").status, 200);
    assert_eq!(client.send("GET", path, b"").body, b"");
}

#[test]
fn a_lease_lapses_without_heartbeats_whatever_the_clock_on_the_wall_says() {
    let world = World::started();
    let mut client = world.root();
    lease(&mut client, "run-1");
    for _ in 0..5 {
        world.clock.pass(50);
        assert_eq!(client.send("PUT", "/v1/leases/prod/web?id=run-1", b"").status, 200);
        assert_eq!(lease(&mut client, "run-2").status, 423);
    }
    world.clock.set_back(100_000);
    world.clock.pass(59);
    assert_eq!(lease(&mut client, "run-2").status, 423);
    assert_eq!(client.send("GET", "/v1/leases/prod/web", b"").json()["lapsed"], false);
    world.clock.pass(1);
    assert_eq!(client.send("GET", "/v1/leases/prod/web", b"").json()["lapsed"], true);
    // Nobody has taken it yet: the holder that was only slow goes on.
    assert_eq!(client.send("PUT", "/v1/leases/prod/web?id=run-1", b"").status, 200);
    assert_eq!(lease(&mut client, "run-2").status, 423);
    world.clock.pass(60);
    assert_eq!(lease(&mut client, "run-2").status, 200);
    assert_eq!(client.send("PUT", "/v1/leases/prod/web?id=run-1", b"").status, 409);
    let old = [("Strata-Lock", "run-1"), ("If-Serial", "0")];
    assert_eq!(client.send_with("PUT", "/v1/states/prod/web", &old, &state(1, "l", 10)).status, 423);
}

#[test]
fn a_lock_of_tofu_never_lapses() {
    let world = World::started();
    let mut client = world.root();
    client.send("LOCK", "/states/prod/web", &lock_info("tofu"));
    assert_eq!(lease(&mut client, "run-1").status, 423);
    world.clock.pass(1_000_000);
    assert_eq!(lease(&mut client, "run-1").status, 423);
}

#[test]
fn a_restart_keeps_locks_and_begins_leases_anew() {
    let mut world = World::started();
    lease(&mut world.root(), "run-1");
    world.clock.pass(59);
    world.stop();
    world.start();
    world.clock.pass(59);
    assert_eq!(lease(&mut world.root(), "run-2").status, 423);
    world.clock.pass(1);
    assert_eq!(lease(&mut world.root(), "run-2").status, 200);
}
