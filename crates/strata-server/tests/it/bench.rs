//! Rounds of lock, read, write and unlock: how many a second, and how long the slowest take.
//!
//! Every acknowledged write is on the disk. The rate of syncs of the same disk is printed beside it: nobody with one client can do more
//! durable writes than that.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::process::ServerProcess;
use crate::world::{ROOT, World, lock_info, state};

/// Few, so that the disk does not fill up: a hundred clients write gigabytes.
const KEPT: u64 = 3;
const LASTS: Duration = Duration::from_secs(5);

/// Syncs a second of a file that is overwritten, 16 kB at a time.
fn sync_rate(folder: &std::path::Path) -> f64 {
    let mut file = std::fs::File::create(folder.join("sync")).unwrap();
    let piece = vec![7; 16 * 1024];
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < Duration::from_secs(2) {
        file.seek(SeekFrom::Start(count % 64 * 16 * 1024)).unwrap();
        file.write_all(&piece).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    count as f64 / started.elapsed().as_secs_f64()
}

fn round(client: &mut Client, path: &str, me: usize, serial: u64, bytes: &[u8]) {
    let id = format!("{me}-{serial}");
    assert_eq!(client.send("LOCK", path, &lock_info(&id)).status, 200);
    assert!(matches!(client.send("GET", path, b"").status, 200 | 404));
    let written = client.send("POST", &format!("{path}?ID={id}"), bytes);
    assert_eq!(written.status, 200, "{}", String::from_utf8_lossy(&written.body));
    assert_eq!(client.send("UNLOCK", path, &lock_info(&id)).status, 200);
}

#[test]
#[ignore = "a measurement: just bench-server"]
fn bench_server() {
    println!("\nclients     size   rounds/s     p50 ms     p99 ms   peak MB   cpu s/s   syncs/s");
    for size in [10_000, 1_000_000, 20_000_000] {
        for clients in [1, 16, 64, 128] {
            let world = World::new();
            let syncs = sync_rate(world.data.path());
            let server = ServerProcess::start_with(world.data.path(), 0, KEPT);
            let count = AtomicU64::new(0);
            let started = Instant::now();
            let mut times: Vec<Duration> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..clients)
                    .map(|me| {
                        let (server, count) = (&server, &count);
                        scope.spawn(move || {
                            let mut client = Client::new(server.address, Some(ROOT));
                            let path = format!("/states/bench/s{me}");
                            let padding = size - state(1_000_000, "l", 0).len();
                            let mut times = Vec::new();
                            for serial in 1_000_000.. {
                                let bytes = state(serial, "l", padding);
                                let begun = Instant::now();
                                round(&mut client, &path, me, serial, &bytes);
                                times.push(begun.elapsed());
                                count.fetch_add(1, Ordering::Relaxed);
                                if started.elapsed() > LASTS {
                                    break;
                                }
                            }
                            times
                        })
                    })
                    .collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            let lasted = started.elapsed().as_secs_f64();
            times.sort();
            let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
            let (peak, cpu) = server.usage();
            println!(
                "{clients:7} {size:8} {:10.0} {:10.1} {:10.1} {:9} {:9.2} {syncs:9.0}",
                count.load(Ordering::Relaxed) as f64 / lasted,
                at(0.5),
                at(0.99),
                peak / 1024,
                cpu / lasted,
            );
        }
    }
}
