//! Many clients, a server that is killed at random: no acknowledged write is lost, nobody shares a lock, serials only go up.
//!
//! Every client works in rounds: lock, read a counter, write it plus one, note it in the journal, unlock. A request without an answer is
//! sent again until there is one. In the end each counter is the number of rounds, and each state's journal has every round's line.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::client::{Client, Response};
use crate::process::ServerProcess;
use crate::world::{ROOT, World};

const STATES: usize = 3;
const CLIENTS: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// What all clients know of a state.
#[derive(Default)]
struct Known {
    /// A serial that was acknowledged or read: every read that begins later shows at least this.
    serial: AtomicU64,
    /// Who holds the lock, as the holders see it; 0 for nobody.
    holder: AtomicU64,
    rounds: AtomicU64,
    lines: Mutex<HashSet<String>>,
}

struct Runner<'k> {
    me: u64,
    client: Client,
    random: StdRng,
    known: &'k [Known],
    done: &'k AtomicBool,
}

fn body(serial: u64, padding: usize) -> Vec<u8> {
    let padding = "x".repeat(padding);
    json!({"serial": serial, "lineage": "l", "counter": serial, "padding": padding}).to_string().into_bytes()
}

impl Runner<'_> {
    /// Sends until there is an answer that is not the server's trouble.
    fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        loop {
            match self.client.try_send(method, path, headers, body) {
                Ok(response) if response.status < 500 => return response,
                _ => std::thread::sleep(Duration::from_millis(self.random.random_range(1..20))),
            }
        }
    }

    fn run(mut self) {
        while !self.done.load(Ordering::SeqCst) {
            let state = self.random.random_range(0..STATES);
            if self.random.random_ratio(1, 4) {
                self.read(state);
            } else {
                self.round(state);
            }
        }
    }

    /// The serial that is there now; never less than what was known when we asked.
    fn read(&mut self, state: usize) -> u64 {
        let known = &self.known[state];
        let least = known.serial.load(Ordering::SeqCst);
        let response = self.send("GET", &format!("/states/s{state}"), &[], b"");
        let serial = match response.status {
            404 => 0,
            200 => {
                let value: Value = response.json();
                assert_eq!(value["serial"], value["counter"]);
                value["serial"].as_u64().unwrap()
            }
            status => panic!("reading was answered with {status}"),
        };
        assert!(serial >= least, "state {state} went back from {least} to {serial}");
        known.serial.fetch_max(serial, Ordering::SeqCst);
        serial
    }

    fn round(&mut self, state: usize) {
        let id = format!("{}-{}", self.me, self.random.random::<u64>());
        let as_lease = self.random.random_bool(0.5);
        let (lock, lock_path, wanted) = if as_lease {
            ("POST", format!("/v1/leases/s{state}"), json!({"owner": {"id": id}}))
        } else {
            ("LOCK", format!("/states/s{state}"), json!({"ID": id}))
        };
        match self.send(lock, &lock_path, &[], wanted.to_string().as_bytes()).status {
            200 => {}
            423 => return,
            status => panic!("locking was answered with {status}"),
        }
        let known = &self.known[state];
        let former = known.holder.swap(self.me, Ordering::SeqCst);
        assert_eq!(former, 0, "state {state} has two holders");
        let serial = self.read(state) + 1;
        let padding =
            if self.random.random_ratio(1, 10) { 600_000 } else { self.random.random_range(0..20_000) };
        let written = self.send("POST", &format!("/states/s{state}?ID={id}"), &[], &body(serial, padding));
        assert_eq!(written.status, 200, "{} {}", serial, String::from_utf8_lossy(&written.body));
        known.serial.fetch_max(serial, Ordering::SeqCst);
        known.rounds.fetch_add(1, Ordering::SeqCst);
        let line = format!("{id} {serial}");
        let journal = format!("/v1/journal/s{state}");
        let noted = self.send("POST", &journal, &[("Strata-Lock", &id)], format!("{line}\n").as_bytes());
        assert_eq!(noted.status, 200, "{}", String::from_utf8_lossy(&noted.body));
        known.lines.lock().unwrap_or_else(PoisonError::into_inner).insert(line);
        let holder = known.holder.swap(0, Ordering::SeqCst);
        assert_eq!(holder, self.me, "state {state} had two holders");
        let freed =
            self.send("UNLOCK", &format!("/states/s{state}"), &[], json!({"ID": id}).to_string().as_bytes());
        // The answer was lost, it was sent again, and another has the lock by now.
        assert!(matches!(freed.status, 200 | 409), "{}", freed.status);
    }
}

fn check(seed: u64, kills: u32) {
    let world = World::new();
    let mut random = StdRng::seed_from_u64(seed);
    let mut server = ServerProcess::start(world.data.path(), 0);
    let address = server.address;
    let known: [Known; STATES] = Default::default();
    let done = AtomicBool::new(false);
    let mut client = Client::new(address, Some(ROOT));
    std::thread::scope(|scope| {
        for me in 1..=CLIENTS {
            let client = Client::new(address, Some(ROOT));
            let random = StdRng::seed_from_u64(seed * 1000 + me);
            let runner = Runner { me, client, random, known: &known, done: &done };
            scope.spawn(|| runner.run());
        }
        let rounds = || known.iter().map(|known| known.rounds.load(Ordering::SeqCst)).sum::<u64>();
        for _ in 0..kills {
            // Something is done between two kills, however slow the machine is.
            let (before, since) = (rounds(), Instant::now());
            while rounds() < before + 2 && since.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(random.random_range(30..500)));
            server.kill();
            server = ServerProcess::start(world.data.path(), address.port());
        }
        std::thread::sleep(Duration::from_millis(300));
        done.store(true, Ordering::SeqCst);
    });
    let mut rounds = 0;
    for (state, known) in known.iter().enumerate() {
        let value = client.try_send("GET", &format!("/states/s{state}"), &[], b"");
        let value =
            value.or_else(|_| client.try_send("GET", &format!("/states/s{state}"), &[], b"")).unwrap().json();
        assert_eq!(
            value["counter"].as_u64(),
            Some(known.rounds.load(Ordering::SeqCst)),
            "state {state}, seed {seed}"
        );
        let journal =
            String::from_utf8(client.send("GET", &format!("/v1/journal/s{state}"), b"").body).unwrap();
        let written: HashSet<&str> = journal.lines().collect();
        for line in known.lines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            assert!(
                written.contains(line.as_str()),
                "the journal of state {state} lost `{line}`, seed {seed}"
            );
        }
        rounds += known.rounds.load(Ordering::SeqCst);
    }
    assert!(rounds > u64::from(kills), "{rounds} rounds prove nothing");
    println!("seed {seed}: {rounds} rounds, {kills} kills");
}

#[test]
fn kills_lose_nothing() {
    check(1, 6);
}

/// `STRATA_TEST_SEEDS` (10) times 30 kills, on the storage of `STRATA_TEST_STORAGE`.
#[test]
#[ignore = "takes minutes: just linear-test"]
fn linear_all() {
    let seeds = std::env::var("STRATA_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(10);
    for seed in 1..=seeds {
        check(seed, 30);
    }
}
