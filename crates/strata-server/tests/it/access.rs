//! Who gets in, what they may do, and what is written down of it.

use base64::Engine as _;
use serde_json::Value;
use strata_server::access::AccessFile;

use crate::world::{World, lock_info, state};

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}")))
}

#[test]
fn tokens_and_passwords() {
    let world = World::started();
    let get = |authorization: &str| world.client(authorization).send("GET", "/states/prod/a", b"").status;
    assert_eq!(get("Bearer ci-token"), 404);
    assert_eq!(get("bearer ci-token"), 404);
    assert_eq!(get(&basic("ci", "ci-token")), 404, "a token as a password");
    assert_eq!(get(&basic("ann", "swordfish")), 404);
    assert_eq!(get(&basic("ann", "swordfish")), 404, "remembered");
    assert_eq!(get(&basic("ann", "ci-token")), 401, "the token of another");
    for wrong in
        ["Bearer no-token", "Bearer ", "Basic !!!", "Digest x", "", &basic("ann", "x"), &basic("no", "x")]
    {
        assert_eq!(get(wrong), 401, "{wrong}");
    }
    let mut nobody = crate::client::Client::new(world.address(), None);
    let answer = nobody.send("GET", "/states/prod/a", b"");
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").unwrap().starts_with("Basic"));
    assert_eq!(nobody.send("GET", "/metrics", b"").status, 401);
    assert_eq!(nobody.send("GET", "/healthz", b"").status, 200);
    assert_eq!(nobody.send("GET", "/readyz", b"").status, 200);
}

#[test]
fn guessing_is_slowed_down() {
    let world = World::started();
    let mut guesser = world.client(&basic("ann", "guess"));
    let statuses: Vec<u16> = (0..12).map(|_| guesser.send("GET", "/states/prod/a", b"").status).collect();
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10..], [429; 2]);
    assert!(guesser.send("GET", "/states/prod/a", b"").header("retry-after").is_some());
    assert_eq!(world.client(&basic("ann", "swordfish")).send("GET", "/states/prod/a", b"").status, 429);
    assert_eq!(
        world.client("Bearer ci-token").send("GET", "/states/prod/a", b"").status,
        404,
        "a token is none"
    );
    world.clock.pass(61);
    assert_eq!(world.client(&basic("ann", "swordfish")).send("GET", "/states/prod/a", b"").status, 404);
}

#[test]
fn rules_by_prefix_and_action() {
    let world = World::started();
    let (mut root, mut ci, mut eve) =
        (world.root(), world.client("Bearer ci-token"), world.client("Bearer eve-token"));
    assert_eq!(root.send("POST", "/states/lab/a", &state(1, "l", 1)).status, 200);
    assert_eq!(ci.send("POST", "/states/prod/a", &state(1, "l", 1)).status, 200);
    assert_eq!(ci.send("GET", "/states/lab/a", b"").status, 403);
    assert_eq!(ci.send("GET", "/states/lab/none", b"").status, 403, "not whether it is there");
    assert_eq!(eve.send("GET", "/states/prod/a", b"").status, 200);
    for (method, path) in [
        ("POST", "/states/prod/a"),
        ("DELETE", "/states/prod/a"),
        ("LOCK", "/states/prod/a"),
        ("UNLOCK", "/states/prod/a"),
        ("POST", "/v1/leases/prod/a"),
        ("POST", "/v1/restore/prod/a?version=1"),
        ("POST", "/v1/journal/prod/a"),
    ] {
        assert_eq!(eve.send(method, path, &state(2, "l", 1)).status, 403, "{method} {path}");
    }
    let names = |list: Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|state| state["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(ci.send("GET", "/v1/states", b"").json()), ["prod/a"]);
    assert_eq!(names(root.send("GET", "/v1/states", b"").json()), ["lab/a", "prod/a"]);
    // To take away another's lock needs its own action.
    assert_eq!(root.send("LOCK", "/states/prod/a", &lock_info("root-lock")).status, 200);
    assert_eq!(ci.send("UNLOCK", "/states/prod/a", br#"{"ID":"root-lock"}"#).status, 403);
    assert_eq!(ci.send("UNLOCK", "/states/prod/a", b"").status, 403);
    assert_eq!(root.send("UNLOCK", "/states/prod/a", b"").status, 200);
}

#[test]
fn changed_users_count_without_a_restart() {
    let world = World::started();
    let mut ci = world.client("Bearer ci-token");
    assert_eq!(ci.send("GET", "/states/prod/a", b"").status, 404);
    let path = AccessFile::path(world.data.path());
    let mut file = AccessFile::load(&path).unwrap();
    file.remove_token("ci", "t").unwrap();
    file.save(&path).unwrap();
    let gone = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        ci.send("GET", "/states/prod/a", b"").status == 401
    });
    assert!(gone, "the token still works");
}

#[test]
fn the_audit_log_says_who_did_what_and_nothing_of_the_state() {
    let mut world = World::started();
    let mut ci = world.client("Bearer ci-token");
    ci.send("LOCK", "/states/prod/a", &lock_info("one"));
    ci.send("POST", "/states/prod/a?ID=one", &state(3, "l", 10));
    world.client("Bearer eve-token").send("POST", "/states/prod/a", &state(4, "l", 10));
    world.root().send("POST", "/states/prod/a?force=true", &state(2, "l", 10));
    world.root().send("UNLOCK", "/states/prod/a", b"");
    world.client("Bearer wrong-token").send("GET", "/states/prod/a", b"");
    let metrics = String::from_utf8(world.root().send("GET", "/metrics", b"").body).unwrap();
    world.stop();
    let log = world.audit();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |index: usize| {
        let line = &lines[index];
        format!("{} {} {} {}", line["user"], line["action"], line["state"], line["status"]).replace('"', "")
    };
    assert_eq!(line(0), "ci lock prod/a 200");
    assert_eq!(line(1), "ci write prod/a 200");
    assert_eq!(
        (&lines[1]["serial"], &lines[1]["version"], &lines[1]["from"]),
        (&3.into(), &1.into(), &"127.0.0.1".into())
    );
    assert_eq!(line(2), "eve write prod/a 403");
    assert_eq!(line(3), "root write prod/a 200");
    assert_eq!(lines[3]["forced"], true);
    assert_eq!(line(4), "root unlock prod/a 200");
    assert_eq!(lines[4]["taken"], "one");
    assert_eq!(lines.len(), 5);
    let denied = world.denied();
    let counted: Value = serde_json::from_str(denied.trim_end()).unwrap();
    assert_eq!((&counted["from"], &counted["wrong"]), (&"127.0.0.1".into(), &1.into()));
    for text in [&log, &denied, &metrics] {
        for secret in ["hunter2", "token\"", "wrong-token", "ci-token", "terraform_data"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert!(metrics.contains("strata_requests_total{action=\"write\",status=\"200\"} 2"), "{metrics}");
}
