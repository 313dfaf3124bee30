//! A server in a process of its own, so that it can be killed and measured: this very test program, run again.

use std::io::{BufRead, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use strata_net::SystemClock;
use strata_server::Server;
use strata_server::storage::Retention;
use strata_server::storage::embedded::EmbeddedOptions;

use crate::storages;
use crate::world::options;

const DATA: &str = "STRATA_TEST_SERVE_DATA";
const PORT: &str = "STRATA_TEST_SERVE_PORT";
const KEPT: &str = "STRATA_TEST_SERVE_KEPT";

pub(crate) struct ServerProcess {
    child: Child,
    /// Open for as long as it lives: a test that takes long says so, and would end where nobody listens.
    _output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    /// Starts one that keeps its data there; port 0 takes a free one. The storage is that of `STRATA_TEST_STORAGE`.
    pub(crate) fn start(data: &Path, port: u16) -> Self {
        Self::start_with(data, port, Retention::default().count)
    }

    /// One that keeps this many versions.
    pub(crate) fn start_with(data: &Path, port: u16, kept: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::serve_until_killed", "--ignored", "--nocapture"])
            .env(DATA, data)
            .env(PORT, port.to_string())
            .env(KEPT, kept.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = output
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                line.split_once("listening on ").and_then(|(_, address)| address.trim().parse().ok())
            })
            .expect("the server did not start");
        Self { child, _output: output, address }
    }

    /// With SIGKILL: it has no time for anything.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The most memory that it ever had, in kB, and its processor time in seconds.
    pub(crate) fn usage(&self) -> (u64, f64) {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap();
        let status = read("status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let stat = read("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        (peak.trim().trim_end_matches(" kB").parse().unwrap(), ticks / 100.0)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
#[ignore = "no test: the server process of others, such as in: just linear-test"]
fn serve_until_killed() {
    let data = std::env::var_os(DATA).expect("it is started by other tests");
    let port: u16 = std::env::var(PORT).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let count = std::env::var(KEPT).unwrap().parse().unwrap();
        let kept = EmbeddedOptions { retention: Retention { count, age: None }, max_bytes: None };
        let storage = storages::open(Path::new(&data), &kept).await;
        let mut options = options(Path::new(&data), storage, Arc::new(SystemClock::new()), None);
        options.listen.set_port(port);
        let server = Server::start(options).await.unwrap();
        println!("\nlistening on {}", server.address());
        std::future::pending::<()>().await;
    });
}
