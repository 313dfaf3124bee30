//! Compares the simulator with recorded answers of a real server, where those are present.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use strata_sim::{SimOptions, WorldKind};

use crate::client::{Site, TOKEN};

/// A recording, and what is asked of it.
struct Recording {
    file: &'static str,
    /// How many percent of all answers must be right.
    all: f64,
    /// Groups of recorded calls, and how many percent of each must be answered right.
    needed: &'static [(f64, &'static [&'static str])],
}

const BASIC: Recording = Recording {
    file: "pve/transcript.jsonl",
    all: 99.0,
    needed: &[
        (
            95.0,
            &[
                "auth", "wire", "read", "storage", "upload", "dl", "qemu", "cfg", "run", "clone", "tmpl",
                "move", "delete", "lxc", "task", "lock", "vfw",
            ],
        ),
        (90.0, &["nstorage", "snap", "acc", "perm", "pool", "fw", "sdn"]),
    ],
};

/// Every family of the API, with what is refused and what is wrong. What is not answered right is mostly what the recorded host had:
/// another name for its network card, directories that do not exist, servers that cannot be reached.
const BREADTH: Recording = Recording {
    file: "pve/breadth.jsonl",
    all: 97.5,
    needed: &[
        (85.0, &["pg", "sdna", "mx", "map", "st", "p", "b"]),
        (
            97.0,
            &[
                "bk", "vz", "ha", "har", "sdn", "sdnz", "sdnc", "sdni", "sdnd", "sdnv", "sdns", "sdnip",
                "sdnf", "sdnfab", "sdnl", "rep", "dom", "tfa", "acme", "ncfg", "cert", "nt", "nm", "opt",
                "jobs", "clog", "cconfig", "nfw", "hosts", "dns", "time", "syslog", "journal", "svc", "apt",
                "disks", "scan", "hw", "cap", "sub", "node", "pl", "ac", "pv", "cf", "q", "c", "ci", "sn",
                "t", "mg", "gf", "tg", "pr", "vis",
            ],
        ),
    ],
};

/// How often a replay is tried.
const ATTEMPTS: usize = 3;

/// The judge and the recording, or why there is nothing to compare with.
fn recordings(file: &str) -> Result<(PathBuf, PathBuf), String> {
    let shared = match std::env::var_os("STRATA_TEST_RECORDINGS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let (judge, transcript) = (shared.join("tools/pve-replay"), shared.join(file));
    if !judge.exists() || !transcript.exists() {
        return Err(format!("there is no recording `{file}` of a real server beside this repository"));
    }
    match Command::new("python3").arg("--version").output() {
        Ok(_) => Ok((judge, transcript)),
        Err(_) => Err("the comparison needs python3".to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs recordings of a real server and python3: just replay"]
async fn answers_are_those_of_a_real_server() {
    replay(&BASIC).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs recordings of a real server and python3: just replay"]
async fn every_family_answers_as_a_real_server() {
    replay(&BREADTH).await;
}

async fn replay(recording: &Recording) {
    let (judge, transcript) =
        recordings(recording.file).unwrap_or_else(|why| panic!("nothing was compared: {why}"));
    // Some answers say what a task has come to by then, so a machine that is busy with other tests gives other ones. What is wrong
    // in itself is wrong each time.
    let mut failed = String::new();
    for _ in 0..ATTEMPTS {
        failed = compare(recording, &judge, &transcript).await;
        if failed.is_empty() {
            return;
        }
    }
    panic!("{failed}");
}

/// One replay on a new simulator: the groups that are not good enough, and the judge's report.
async fn compare(recording: &Recording, judge: &Path, transcript: &Path) -> String {
    let site = Site::start(SimOptions {
        world: WorldKind::Single,
        token: Some(TOKEN.to_owned()),
        password: Some("swordfish".to_owned()),
        ..SimOptions::default()
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let mut command = Command::new("python3");
    command.arg(judge).args(["--endpoint", &site.sim.endpoint(), "--token", TOKEN, "--show", "20"]);
    command.arg("--transcript").arg(transcript).arg("--report").arg(&report);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let failed = shortcomings(recording, &report);
    if failed.is_empty() { failed } else { format!("{failed}{text}") }
}

/// The groups that were not answered well enough, or not at all.
fn shortcomings(recording: &Recording, report: &Value) -> String {
    let mut failed = String::new();
    let score = report["score"].as_f64().unwrap_or_default();
    if score < recording.all {
        failed += &format!("{score:.1} % of all right, {} % needed\n", recording.all);
    }
    for (needed, groups) in recording.needed {
        for group in *groups {
            let count = |verdict: &str| report["groups"][group][verdict].as_f64().unwrap_or_default();
            let judged = count("full") + count("status") + count("mismatch");
            if judged == 0.0 {
                failed += &format!("{group}: no answer was judged\n");
                continue;
            }
            let score = 100.0 * count("full") / judged;
            if score < *needed {
                failed += &format!("{group}: {score:.1} % of {judged} right, {needed} % needed\n");
            }
        }
    }
    failed
}

#[test]
fn a_group_without_answers_does_not_pass() {
    let recording = Recording { file: "", all: 95.0, needed: &[(80.0, &["pg", "vis"])] };
    let report = serde_json::json!({
        "score": 90.0, "groups": {"vis": {"full": 9, "status": 1, "mismatch": 0, "withheld": 3}},
    });
    let told = "90.0 % of all right, 95 % needed\npg: no answer was judged\n";
    assert_eq!(shortcomings(&recording, &report), told);
}
