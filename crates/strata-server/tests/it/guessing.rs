//! Whoever has no login: guesses at once, floods, proxies, bodies that nobody reads.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Barrier;
use std::time::Duration;

use base64::Engine as _;
use strata_server::Proxies;
use strata_server::access::new_token;

use crate::process::ServerProcess;
use crate::world::World;

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}")))
}

/// Sends them all at the same moment.
fn at_once(address: std::net::SocketAddr, claims: &[String]) -> Vec<u16> {
    let barrier = Barrier::new(claims.len());
    std::thread::scope(|scope| {
        let sending: Vec<_> = claims
            .iter()
            .map(|claim| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut client = crate::client::Client::new(address, Some(claim));
                    barrier.wait();
                    client.send("GET", "/states/prod/a", b"").status
                })
            })
            .collect();
        sending.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

#[test]
fn c4_guesses_at_once_are_no_better_than_one_by_one() {
    let world = World::started();
    let claims: Vec<String> = (0..200).map(|guess| basic("ann", &format!("guess-{guess}"))).collect();
    let statuses = at_once(world.address(), &claims);
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 10, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429 | 503)), "{statuses:?}");
    world.clock.pass(61);
    // And who is right is let in, however many ask at once.
    let statuses = at_once(world.address(), &vec![basic("ann", "swordfish"); 60]);
    assert_eq!(statuses, [404; 60]);
}

#[test]
fn c4_hashing_takes_a_bounded_amount_of_memory() {
    let world = World::new();
    let mut server = ServerProcess::start(world.data.path(), 0);
    let claims: Vec<String> = (0..90).map(|guess| basic(&format!("user-{guess}"), "guess")).collect();
    let (before, _) = server.usage();
    let statuses = at_once(server.address, &claims);
    assert!(statuses.iter().filter(|status| **status == 401).count() > 60, "{statuses:?}");
    let (after, _) = server.usage();
    let grown = after.saturating_sub(before) / 1024;
    assert!(grown < 100, "{grown} MiB for two hashes at a time of 19 MiB each");
    server.kill();
}

#[test]
fn c4_a_wrong_token_shuts_no_password_out() {
    let world = World::started();
    for form in ["Bearer", "Basic"] {
        for guess in 0..150 {
            let claim = match form {
                "Bearer" => format!("Bearer token-{guess}"),
                _ => basic("ann", &new_token().unwrap()),
            };
            assert_eq!(world.client(&claim).send("GET", "/states/prod/a", b"").status, 401, "{form} {guess}");
        }
    }
    assert_eq!(world.client(&basic("ann", "swordfish")).send("GET", "/states/prod/a", b"").status, 404);
}

#[test]
fn c4_nobody_fills_the_audit_log_without_a_login() {
    let mut world = World::started();
    world.client("Bearer ci-token").send("GET", "/states/prod/a", b"");
    let mut nobody = world.client("Bearer wrong");
    for _ in 0..3000 {
        nobody.send("GET", "/states/prod/a", b"");
    }
    world.client(&basic("ann", "wrong")).send("GET", "/states/prod/a", b"");
    world.stop();
    assert_eq!(world.audit().lines().count(), 1, "{}", world.audit());
    let denied = world.denied();
    assert!(denied.lines().count() <= 2, "{denied}");
    let count =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["wrong"].as_u64().unwrap();
    assert_eq!(denied.lines().map(count).sum::<u64>(), 3001);
}

#[test]
fn c4_behind_a_proxy_everybody_has_their_own_address() {
    let mut world = World::new();
    world.proxies = Proxies { trusted: vec!["127.0.0.1".parse().unwrap()], ..Proxies::default() };
    world.start();
    let get = |claim: &str, forwarded: &str| {
        let headers = [("X-Forwarded-For", forwarded)];
        world.client(claim).send_with("GET", "/states/prod/a", &headers, b"").status
    };
    let statuses: Vec<u16> = (0..12).map(|_| get(&basic("ann", "guess"), "203.0.113.5")).collect();
    assert_eq!((statuses[9], statuses[11]), (401, 429));
    // Whoever guesses does not get a new address by making one up.
    assert_eq!(get(&basic("ann", "guess"), "198.51.100.77, 203.0.113.5"), 429);
    assert_eq!(get(&basic("ann", "swordfish"), "203.0.113.6"), 404);
    world.client("Bearer ci-token").send_with(
        "GET",
        "/states/prod/a",
        &[("X-Forwarded-For", "203.0.113.9")],
        b"",
    );
    world.stop();
    assert!(world.audit().contains("203.0.113.9"), "{}", world.audit());
    assert!(world.denied().contains("203.0.113.5"), "{}", world.denied());
}

#[test]
fn c4_without_a_trusted_proxy_a_forwarded_address_is_not_read() {
    let mut world = World::started();
    for guess in 0..12 {
        let address = format!("203.0.113.{guess}");
        let headers = [("X-Forwarded-For", address.as_str()), ("Forwarded", "for=198.51.100.1")];
        world.client(&basic("ann", "guess")).send_with("GET", "/states/prod/a", &headers, b"");
    }
    assert_eq!(world.client(&basic("ann", "swordfish")).send("GET", "/states/prod/a", b"").status, 429);
    world.stop();
    assert!(!world.denied().contains("203.0.113"), "{}", world.denied());
}

/// What was not read of a request is read and dropped, or the answer says that the connection ends with it.
#[test]
fn f19_a_body_that_nobody_reads() {
    let world = World::started();
    let body = vec![b'x'; 300_000];
    for (claim, method, path, status) in [
        ("Bearer ci-token", "POST", "/nothing/here", 404),
        ("Bearer ci-token", "PATCH", "/states/prod/a", 405),
        ("Bearer ci-token", "POST", "/states/prod/a?x=%ff", 400),
        ("Bearer ci-token", "POST", "/states/lab/a", 403),
        ("Bearer ci-token", "GET", "/states/prod/a", 404),
        ("Bearer ci-token", "PUT", "/v1/leases/prod/a?id=x", 409),
        ("Bearer wrong", "POST", "/states/prod/a", 401),
        ("Bearer root-token", "GET", "/metrics", 200),
        ("Bearer root-token", "GET", "/healthz", 200),
    ] {
        let mut client = world.client(claim);
        for again in 0..3 {
            let answer = client.send(method, path, &body);
            assert_eq!(answer.status, status, "{method} {path} {again}");
            assert_eq!(answer.header("connection"), None, "{method} {path}: it was read");
        }
    }
    // More than is waited for from nobody: the answer comes, and says that this was it.
    let mut stream = TcpStream::connect(world.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = "POST /states/prod/a HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\nContent-Length: 50000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    // Who asks before sending is answered without being made to send.
    let mut stream = TcpStream::connect(world.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head =
        "POST /states/prod/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("100 Continue"), "{answer}");
}
