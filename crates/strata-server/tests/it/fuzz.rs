//! Whatever is sent, the answer is a 4xx, and the server goes on.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use base64::Engine as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::client::{Response, read_response};
use crate::world::{ROOT, World, state};

fn raw(address: SocketAddr, bytes: &[u8]) -> Option<Response> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may answer and hang up before all of it is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    read_response(&mut BufReader::new(stream), bytes.starts_with(b"HEAD")).ok()
}

fn is_refused(address: SocketAddr, bytes: &[u8]) {
    let status = raw(address, bytes).map(|response| response.status);
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    // A connection that is closed without an answer is a refusal as well: hyper does that where there is no request.
    assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?} for {shown:?}");
}

#[test]
fn odd_requests_are_refused() {
    let world = World::started();
    let address = world.address();
    let good = |path: &str, method: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\n\r\n")
    };
    let odd_paths = [
        "/states/../../etc/passwd",
        "/states/..%2f..%2fetc",
        "/states/%2e%2e/%2e%2e",
        "/states/a/%00",
        "/states/a%0d%0ax",
        "/states/%ff%fe",
        "/states/%c0%ae%c0%ae/a",
        "/states/a%",
        "/states/a%2",
        "/states//",
        "/states/./a",
        "/states/a/",
        "/states/a\\b",
        "/states/%5c..%5c",
        "/states/lock",
        "/states",
        "/v1/states/..",
        "/v1/leases/",
        "/v1",
        "//states/a",
        "/STATES/a",
        "/states/a?ID=%ff",
        "http://elsewhere/states/../a",
        "*",
        "/v1/versions/a?version=-1",
        "/v1/versions/a?version=99999999999999999999",
        "/v1/diff/a?from=1%00",
        "/states/%e0%80%af/a",
        "/states/%u002e%u002e",
        "/states/a%09b",
        "/states/a%0a",
        "/states/a%7f",
        "/states/%c2%85",
        "/states/a/%2e",
        "/states/%2E%2E/a",
        "/states/a%2fb",
        "/states/lock/lock",
        "/tfstate/..",
        "/tfstate/%2e%2e%2f",
        "/v1/leases/%2e%2e",
        "/v1/journal/a/..",
        "/v1/versions/../a",
        "/v1/restore/a?version=%31%00",
        "/v1/diff/%ff?from=1",
        "/v1/states/a/%00?prefix=x",
        "/../states/a",
        "/states/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r",
    ];
    for path in odd_paths {
        for method in
            ["GET", "POST", "DELETE", "LOCK", "UNLOCK", "PUT", "PATCH", "TRACE", "CONNECT", "FOO", "get"]
        {
            // To delete what is not there is no error; none of these is a name, though.
            is_refused(address, good(path, method).as_bytes());
        }
    }
    let long = "a".repeat(100_000);
    let many = "a/".repeat(300);
    for bytes in [
        good(&format!("/states/{long}"), "GET"),
        good(&format!("/states/{many}a"), "DELETE"),
        good(&format!("/states/{}", "%61".repeat(513)), "DELETE"),
        good(&format!("/states/a?ID={long}"), "POST"),
        good(&format!("/v1/leases/a?id={}", "%41".repeat(5000)), "DELETE"),
        format!("GET /states/a HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n"),
        format!("GET /states/a HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(10_000)),
        format!("{long} /states/a HTTP/1.1\r\n\r\n"),
        "GET /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: \u{1}\r\n\r\n".to_owned(),
        format!("POST /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nContent-Length: -1\r\n\r\n"),
        format!(
            "POST /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nContent-Length: 99999999999\r\n\r\n"
        ),
        format!(
            "POST /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nContent-Length: 10\r\n\r\n{{\"a\""
        ),
        format!(
            "POST /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
        format!(
            "POST /states/a HTTP/1.1\r\nHost: x\r\nAuthorization: {ROOT}\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        "\r\n\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{0}".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        is_refused(address, bytes.as_bytes());
    }
    assert_eq!(world.root().send("GET", "/states/a", b"").status, 404, "nothing was written");
    assert_eq!(world.root().send("GET", "/v1/states", b"").body, b"[]");
}

/// Every address with every method, under names that are none.
#[test]
fn nobody_comes_in_without_a_name() {
    let world = World::started();
    world.root().send("POST", "/states/prod/a", &state(1, "l", 10));
    let base64 = |text: &[u8]| base64::engine::general_purpose::STANDARD.encode(text);
    let names: Vec<Vec<u8>> = [
        "".to_owned(),
        "Bearer".to_owned(),
        "Bearer  ".to_owned(),
        "Bearer root-toke".to_owned(),
        "Bearer root-token,".to_owned(),
        "Bearer root-tokenx".to_owned(),
        "Bearer ROOT-TOKEN".to_owned(),
        "Token root-token".to_owned(),
        "root-token".to_owned(),
        "Digest username=\"root\"".to_owned(),
        "Negotiate root-token".to_owned(),
        "Basic".to_owned(),
        "Basic !!!".to_owned(),
        format!("Basic {}", base64(b"")),
        format!("Basic {}", base64(b":")),
        format!("Basic {}", base64(b"root")),
        format!("Basic {}", base64(b"root:")),
        format!("Basic {}", base64(b":root-token")),
        format!("Basic {}", base64(b"ci:root-token")),
        format!("Basic {}", base64(b"root:root-token\0")),
        format!("Basic {}", base64(b"ro\xffot:root-token")),
        format!("Basic {}", base64("x".repeat(20_000).as_bytes())),
        format!("Bearer {}", "x".repeat(20_000)),
        format!("Bearer {}", "x".repeat(200_000)),
    ]
    .into_iter()
    .map(String::into_bytes)
    .chain([b"Bearer \xff\xfe".to_vec(), b"Bearer root-token\r\nAuthorization: Bearer x".to_vec()])
    .collect();
    let places = [
        "/states/prod/a",
        "/tfstate/prod/a/lock",
        "/v1/states",
        "/v1/states/prod/a",
        "/v1/versions/prod/a",
        "/v1/diff/prod/a?from=1",
        "/v1/restore/prod/a?version=1",
        "/v1/leases/prod/a",
        "/v1/journal/prod/a",
        "/metrics",
    ];
    let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "LOCK", "UNLOCK"];
    for name in &names {
        for (place, method) in places.iter().flat_map(|place| methods.map(|method| (place, method))) {
            let mut bytes =
                format!("{method} {place} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nAuthorization: ")
                    .into_bytes();
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(b"\r\n\r\n");
            let Some(answer) = raw(world.address(), &bytes) else { continue };
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
            // 429 once too many passwords were tried.
            assert!(matches!(answer.status, 400 | 401 | 405 | 429 | 431), "{} for {shown:?}", answer.status);
            assert!(!String::from_utf8_lossy(&answer.body).contains("hunter2"), "{shown:?}");
        }
    }
    assert_eq!(world.root().send("GET", "/states/prod/a", b"").body, state(1, "l", 10));
    assert_eq!(world.root().send("GET", "/v1/leases/prod/a", b"").status, 404);
}

#[test]
fn random_requests_do_no_harm() {
    let world = World::started();
    let mut client = world.root();
    client.send("POST", "/states/kept", &state(1, "l", 10));
    let mut random = StdRng::seed_from_u64(7);
    let methods = ["GET", "POST", "PUT", "DELETE", "LOCK", "UNLOCK", "HEAD", "OPTIONS", "X"];
    let parts = [
        "states",
        "tfstate",
        "v1",
        "versions",
        "leases",
        "journal",
        "diff",
        "restore",
        "lock",
        "..",
        ".",
        "",
        "%2e",
        "%00",
        "a",
        "é",
        "%C3%A9",
        "%E0%80",
        "?",
        "&",
        "=",
        "ID",
        "#",
        "+",
        "%",
        "\u{7f}",
        "version=1",
        "force=true",
    ];
    let bodies: [&[u8]; 8] = [
        b"",
        b"{}",
        b"[",
        b"{\"ID\":\"x\"}",
        b"{\"owner\":[],\"ttl\":1}",
        b"\xff\xfe",
        b"null",
        b"{\"serial\":1e999}",
    ];
    for _ in 0..1500 {
        let path: String = (0..random.random_range(0..7))
            .map(|_| format!("/{}", parts.choose(&mut random).unwrap()))
            .collect();
        let body = bodies.choose(&mut random).unwrap();
        let method = methods.choose(&mut random).unwrap();
        let auth = ["Bearer x", "Basic Og==", "Basic", ROOT].choose(&mut random).unwrap();
        let mut bytes = format!(
            "{method} /{path} HTTP/1.1\r\nHost: x\r\nAuthorization: {auth}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        if random.random_ratio(1, 5) {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        if let Some(response) = raw(world.address(), &bytes) {
            assert!(response.status < 500, "{} for {:?}", response.status, String::from_utf8_lossy(&bytes));
            let right = auth == &ROOT;
            assert!(
                right || response.status >= 400 || bytes.windows(5).any(|found| found == b"healt"),
                "let in"
            );
        }
    }
    // Of a connection that sent nothing for so long the server may have had enough.
    assert_eq!(world.root().send("GET", "/states/kept", b"").body, state(1, "l", 10));
}
