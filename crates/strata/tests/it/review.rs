//! What a commit range can change, as a pipeline asks for it; and plans that are reviewed, approved and applied.

mod desk;
mod forge;
mod guarded;
mod sealed;
mod stories;

use std::process::Command;

use serde_json::Value;
use strata_testkit::{Repo, Strata};

use crate::world::BINARY;

const SETTINGS: &str = "repository: demo1\ntargets: {pve: {proxmox: {endpoint: 'https://192.0.2.1:8006', token: {file: pve.token}}}}\n";

pub(crate) fn git(repo: &Repo, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(repo.path())
        .args(["-c", "user.name=t", "-c", "user.email=t@t.example", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_pipeline_is_told_what_a_request_can_change_and_why() {
    let repo = Repo::empty();
    repo.write("strata.yaml", SETTINGS);
    repo.write("pve.token", "a@pve!b=c");
    repo.write(".gitignore", "*.token\n.strata/\n");
    let stack = |vmid: u32| format!("proxmox: {{node: pve1}}\nvms: {{app: {{vmId: {vmid}, memory: 512}}}}\n");
    repo.write("stacks/web/stack.yaml", &stack(9100));
    repo.write("stacks/db/stack.yaml", &stack(9200));
    git(&repo, &["init", "-q"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "base"]);
    git(&repo, &["checkout", "-q", "-b", "request"]);
    repo.edit("stacks/web/stack.yaml", "memory: 512", "memory: 1024");
    git(&repo, &["commit", "-q", "-am", "change"]);
    let strata = Strata::new(BINARY, &repo);
    let changed = ["review", "changed", "--base", "main", "--detailed-exitcode"];
    let text = strata.run(&changed).code(2);
    let expected = "  ~ web (default)\n      `stacks/web/stack.yaml`\n1 of 2 stacks can change between ";
    assert!(text.stdout.starts_with(expected), "{}", text.all());
    let lines = strata.run(&[&changed[..], &["--json"]].concat()).code(2);
    let lines: Vec<Value> = lines.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "stack-changed");
    assert_eq!((&lines[0]["stack"], &lines[0]["environment"]), (&"web".into(), &"default".into()));
    assert_eq!(lines[0]["reasons"][0]["about"], "stacks/web/stack.yaml");
    assert_eq!((&lines[1]["event"], &lines[1]["changed"]), (&"commit-range".into(), &1.into()));
    // The same commit changes nothing; a commit that is not there is named, with what helps.
    let same = strata.run(&["review", "changed", "--base", "HEAD", "--detailed-exitcode"]).ok();
    assert!(same.stdout.starts_with("0 of 2 stacks can change"), "{}", same.all());
    let lost = strata.run(&["review", "changed", "--base", "nowhere"]).code(1);
    assert!(
        lost.stderr.contains("there is no commit `nowhere`") && lost.stderr.contains("hint:"),
        "{}",
        lost.all()
    );
}
