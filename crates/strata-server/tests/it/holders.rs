//! A lock belongs to the user who took it: its id opens nothing for others, and is not told to them.

use serde_json::json;
use strata_server::access::{AccessFile, Action, Token, token_digest};

use crate::world::{World, lock_info, rule, state};

/// `bob` may read and write what `ci` does, `boss` may take locks away, `peer` may lock too.
fn world() -> World {
    let mut world = World::new();
    let path = AccessFile::path(world.data.path());
    let mut file = AccessFile::load(&path).unwrap();
    for (name, actions) in [
        ("bob", &[Action::Read, Action::Write][..]),
        ("peer", &[Action::Read, Action::Write, Action::Lock]),
        ("boss", &[Action::Read, Action::Unlock]),
    ] {
        file.add_user(name, None, vec![rule("prod", actions)]).unwrap();
        let token = Token { name: "t".into(), sha256: token_digest(&format!("{name}-token")), expires: None };
        file.add_token(name, token).unwrap();
    }
    file.save(&path).unwrap();
    world.start();
    world
}

const ID: &str = "5e1f-run-of-ci";

#[test]
fn c3_a_lock_id_is_no_key() {
    let world = world();
    let mut ci = world.client("Bearer ci-token");
    let owner =
        json!({"owner": {"id": ID, "who": "ci@runner", "pid": 7, "operation": "apply", "since": "now"}});
    assert_eq!(ci.send("POST", "/v1/leases/prod/a", owner.to_string().as_bytes()).status, 200);
    let lock = [("Strata-Lock", ID), ("If-Serial", "0")];
    assert_eq!(ci.send_with("PUT", "/v1/states/prod/a", &lock, &state(1, "l", 1)).status, 200);
    assert_eq!(ci.send_with("POST", "/v1/journal/prod/a", &lock, b"begun\n").status, 200);
    for name in ["bob", "peer", "boss", "eve"] {
        let mut other = world.client(&format!("Bearer {name}-token"));
        let next = [("Strata-Lock", ID), ("If-Serial", "1")];
        for (method, path, body) in [
            ("PUT", "/v1/states/prod/a", &state(99, "l", 1)[..]),
            ("PUT", "/v1/versions/prod/a", &state(99, "l", 1)),
            ("POST", "/states/prod/a?ID=5e1f-run-of-ci", &state(99, "l", 1)),
            ("POST", "/v1/restore/prod/a?version=1", b""),
            ("POST", "/v1/journal/prod/a", b"not mine\n"),
            ("DELETE", "/v1/journal/prod/a", b""),
            ("DELETE", "/v1/states/prod/a", b""),
            ("DELETE", "/states/prod/a?ID=5e1f-run-of-ci", b""),
            ("PUT", "/v1/leases/prod/a?id=5e1f-run-of-ci", b""),
        ] {
            let answer = other.send_with(method, path, &next, body);
            assert!(matches!(answer.status, 403 | 409 | 423), "{name} {method} {path}: {}", answer.status);
        }
        if name != "boss" {
            let freed = other.send("DELETE", "/v1/leases/prod/a?id=5e1f-run-of-ci", b"").status;
            assert_eq!(freed, 403, "{name}");
        }
    }
    let mut ci = world.client("Bearer ci-token");
    assert_eq!(ci.send("GET", "/v1/states/prod/a", b"").header("strata-serial"), Some("1"));
    assert_eq!(ci.send("GET", "/v1/journal/prod/a", b"").body, b"begun\n");
    assert_eq!(ci.send("PUT", "/v1/leases/prod/a?id=5e1f-run-of-ci", b"").status, 200);
    assert_eq!(ci.send("DELETE", "/v1/leases/prod/a?id=5e1f-run-of-ci", b"").status, 200);
}

#[test]
fn c3_the_id_of_a_lock_is_told_to_its_holder_and_to_who_may_take_it_away() {
    let world = world();
    for way in ["lease", "tofu"] {
        let mut ci = world.client("Bearer ci-token");
        let owner = json!({"owner": {"id": ID, "who": "ci@runner"}}).to_string();
        match way {
            "lease" => assert_eq!(ci.send("POST", "/v1/leases/prod/a", owner.as_bytes()).status, 200),
            _ => assert_eq!(ci.send("LOCK", "/states/prod/a", &lock_info(ID)).status, 200),
        }
        let other = json!({"owner": {"id": "other"}}).to_string();
        let told = |name: &str| -> String {
            let mut client = world.client(&format!("Bearer {name}-token"));
            let lock = [("Strata-Lock", "other"), ("If-Serial", "0")];
            let answers = [
                client.send("GET", "/v1/leases/prod/a", b""),
                client.send("GET", "/states/prod/a/lock", b""),
                client.send("GET", "/v1/states", b""),
                client.send("LOCK", "/states/prod/a", &lock_info("other")),
                client.send("POST", "/v1/leases/prod/a", other.as_bytes()),
                client.send("POST", "/states/prod/a", &state(1, "l", 1)),
                client.send_with("PUT", "/v1/states/prod/a", &lock, &state(1, "l", 1)),
                client.send_with("POST", "/v1/journal/prod/a", &lock, b"x\n"),
                client.send("PUT", "/v1/leases/prod/a?id=other", b""),
                client.send("DELETE", "/v1/leases/prod/a?id=other", b""),
                client.send("UNLOCK", "/states/prod/a", &lock_info("other")),
            ];
            answers.iter().map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).collect()
        };
        for name in ["bob", "peer", "eve"] {
            let said = told(name);
            assert!(!said.contains(ID), "{way}, {name}: {said}");
            assert!(said.contains("hidden:"), "{way}, {name}: {said}");
        }
        for name in ["ci", "boss"] {
            assert!(told(name).contains(ID), "{way}, {name}");
        }
        // `force-unlock` of somebody who may, with the id that was told.
        let mut boss = world.client("Bearer boss-token");
        let held = boss.send("GET", "/states/prod/a/lock", b"").json();
        let id = json!({"ID": held["ID"]}).to_string();
        assert_eq!(boss.send("UNLOCK", "/states/prod/a", id.as_bytes()).status, 200);
    }
}

#[test]
fn c3_a_revoked_token_frees_no_lock_and_writes_nothing_more() {
    let world = world();
    let mut ci = world.client("Bearer ci-token");
    assert_eq!(ci.send("LOCK", "/states/prod/a", &lock_info(ID)).status, 200);
    let path = AccessFile::path(world.data.path());
    let mut file = AccessFile::load(&path).unwrap();
    file.remove_token("ci", "t").unwrap();
    file.save(&path).unwrap();
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        ci.send("GET", "/states/prod/a", b"").status == 401
    });
    assert!(gone, "the token still works");
    assert_eq!(ci.send("POST", &format!("/states/prod/a?ID={ID}"), &state(1, "l", 1)).status, 401);
    assert_eq!(ci.send("UNLOCK", "/states/prod/a", &lock_info(ID)).status, 401);
    let mut peer = world.client("Bearer peer-token");
    assert_eq!(peer.send("LOCK", "/states/prod/a", &lock_info("next")).status, 423);
    assert_eq!(world.client("Bearer boss-token").send("UNLOCK", "/states/prod/a", b"").status, 200);
    assert_eq!(peer.send("LOCK", "/states/prod/a", &lock_info("next")).status, 200);
}
