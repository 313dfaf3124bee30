//! Compares the simulator with recorded answers of a real server, where those are present.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use strata_sim::{SimOptions, WorldKind};

use crate::client::{Site, TOKEN};

/// Groups of recorded calls, and how many percent of each must be answered right.
const NEEDED: &[(f64, &[&str])] = &[
    (
        95.0,
        &[
            "auth", "wire", "read", "storage", "upload", "dl", "qemu", "cfg", "run", "clone", "tmpl", "move",
            "delete", "lxc", "task", "lock", "vfw",
        ],
    ),
    (80.0, &["nstorage", "snap", "acc", "perm", "pool", "fw"]),
];

/// How often a replay is tried.
const ATTEMPTS: usize = 3;

fn recordings() -> Option<(PathBuf, PathBuf)> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let (judge, transcript) = (shared.join("tools/pve-replay"), shared.join("pve/transcript.jsonl"));
    (judge.exists() && transcript.exists()).then_some((judge, transcript))
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_a_real_server() {
    let Some((judge, transcript)) = recordings() else {
        println!("skipped: no recordings of a real server beside this repository");
        return;
    };
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: the comparison needs python3");
        return;
    }
    // Some answers say what a task has come to by then, so a machine that is busy with other tests gives other ones. What is wrong
    // in itself is wrong each time.
    let mut failed = String::new();
    for _ in 0..ATTEMPTS {
        failed = compare(&judge, &transcript).await;
        if failed.is_empty() {
            return;
        }
    }
    panic!("{failed}");
}

/// One replay on a new simulator: the groups that are not good enough, and the judge's report.
async fn compare(judge: &Path, transcript: &Path) -> String {
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
    let mut failed = String::new();
    for (needed, groups) in NEEDED {
        for group in *groups {
            let count = |verdict: &str| report["groups"][group][verdict].as_f64().unwrap_or_default();
            let judged = count("full") + count("status") + count("mismatch");
            let score = 100.0 * count("full") / judged;
            if score < *needed {
                failed += &format!("{group}: {score:.1} % of {judged} right, {needed} % needed\n");
            }
        }
    }
    if failed.is_empty() { failed } else { format!("{failed}{text}") }
}
