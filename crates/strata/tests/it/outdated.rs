//! `strata outdated` as a user runs it: on the factory of the simulator, and on a registry behind a mirror of the settings.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::review::git;
use crate::world::BINARY;

const CLUSTER: &str = "# of the lab
metadata: {name: metal}
cluster:
  talos: {version: v1.13.9, schematic: {extensions: [siderolabs/iscsi-tools]}, installDisk: /dev/sda} # ask ops first
  kubernetes: {version: v1.36.3}
  network: {cidr: 198.51.100.0/24, gateway: 198.51.100.1, vip: 198.51.100.10}
  topology: {controlPlane: {count: 1, addresses: 198.51.100.11-198.51.100.13}}
";

fn lab(sim: &TestSim) -> Repo {
    let repo = Repo::empty();
    repo.write("network-ca.pem", sim.network_ca_pem());
    repo.write("clusters/metal/cluster.yaml", CLUSTER);
    repo.write("strata.yaml", &format!("repository: metal1\nproxy: http://{}\n", sim.gateway()));
    repo
}

fn sim() -> TestSim {
    TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() })
}

#[test]
fn talos_is_brought_up_to_date_and_what_does_not_answer_is_named() {
    let sim = sim();
    let repo = lab(&sim);
    let strata = Strata::new(BINARY, &repo).env("SSL_CERT_FILE", "network-ca.pem");
    let found = strata.run(&["outdated", "--detailed-exitcode"]).code(2);
    assert!(
        found.stdout.contains("~ talos  v1.13.9 → v1.14.0  clusters/metal/cluster.yaml:4"),
        "{}",
        found.all()
    );
    assert!(found.stdout.contains("siderolabs/iscsi-tools v0.1.13 → v0.1.14"), "{}", found.all());
    assert!(found.stdout.contains("? kubernetes  v1.36.3"), "{}", found.all());
    assert!(found.stderr.contains("no versions from `https://dl.k8s.io"), "{}", found.all());
    assert!(found.stdout.ends_with("outdated: 1 of 2 pinned versions, 1 not known\n"), "{}", found.all());
    assert_eq!(repo.read("clusters/metal/cluster.yaml"), CLUSTER, "nothing is written without being asked");
    let nobody = strata.run(&["outdated", "--write"]).code(3);
    assert!(nobody.stderr.contains("`--yes` goes ahead without asking"), "{}", nobody.all());
    let written = strata.run(&["outdated", "--write", "--yes"]).ok();
    assert!(written.stdout.contains("-  talos: {version: v1.13.9"), "{}", written.all());
    assert_eq!(repo.read("clusters/metal/cluster.yaml"), CLUSTER.replace("v1.13.9", "v1.14.0"));
    strata.run(&["validate"]).ok();
    let again = strata.run(&["outdated", "--write", "--yes", "--group", "talos", "--detailed-exitcode"]).ok();
    assert!(again.stdout.contains("up to date: 1 pinned version\nnothing was written"), "{}", again.all());
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_no_source() {
    let sim = sim();
    let repo = lab(&sim);
    let strata = Strata::new(BINARY, &repo);
    let words = ["outdated", "--write", "--yes", "--group", "talos", "--detailed-exitcode"];
    let found = strata.run(&words).code(1);
    assert!(found.stdout.contains("? talos  v1.13.9"), "{}", found.all());
    assert!(found.stderr.contains("cannot be verified"), "{}", found.all());
    assert_eq!(repo.read("clusters/metal/cluster.yaml"), CLUSTER);
}

/// A registry that answers whatever it is asked, until the test ends.
fn registry() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let body = match path {
                "/.well-known/terraform.json" => r#"{"providers.v1":"/p/","modules.v1":"/m/"}"#,
                "/p/a/x/versions" => r#"{"versions":[{"version":"1.4.0"},{"version":"1.9.2"}]}"#,
                "/m/a/net/sim/versions" => {
                    r#"{"modules":[{"versions":[{"version":"5.1.0"},{"version":"5.7.3"},{"version":"6.0.1"}]}]}"#
                }
                _ => "<html>nothing here</html>",
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn code(provider: &str, module: &str) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    x = {{ source = \"a/x\", version = \"{provider}\" }} # kept\n  }}\n}}\n\nmodule \"net\" {{\n  source  = \"a/net/sim\"\n  version = \"{module}\"\n}}\n"
    )
}

fn hand_written() -> Repo {
    let repo = Repo::empty();
    let settings = format!(
        "repository: hand1\nmirrors: {{'https://registry.opentofu.org': 'http://127.0.0.1:{}'}}\n",
        registry()
    );
    repo.write("strata.yaml", &settings);
    for stack in ["trial", "shop"] {
        repo.write(&format!("stacks/{stack}/main.tf"), &code("~> 1.4", "~> 5.1"));
    }
    repo
}

#[test]
fn a_major_version_goes_to_the_stack_that_is_named_and_to_no_other() {
    let repo = hand_written();
    let strata = Strata::new(BINARY, &repo);
    let refused = strata.run(&["outdated", "--write", "--major", "--yes"]).code(64);
    assert!(refused.stderr.contains("--on"), "{}", refused.all());
    let written = strata.run(&["outdated", "--write", "--major", "--on", "trial", "--yes"]).ok();
    assert!(
        written.stdout.contains("~ a/net/sim  ~> 5.1 → ~> 5.7  (next major: ~> 6.0)"),
        "{}",
        written.all()
    );
    assert_eq!(repo.read("stacks/trial/main.tf"), code("~> 1.9", "~> 6.0"));
    assert_eq!(repo.read("stacks/shop/main.tf"), code("~> 1.4", "~> 5.1"));
    strata.run(&["outdated", "--write", "--group", "providers", "--yes"]).ok();
    assert_eq!(repo.read("stacks/shop/main.tf"), code("~> 1.9", "~> 5.1"));
    strata.run(&["validate"]).ok();
    let group = strata.run(&["outdated", "--group", "cheese"]).code(64);
    assert!(group.stderr.contains("`cheese` is no group"), "{}", group.all());
}

#[test]
fn each_group_gets_a_branch_and_the_files_stay() {
    let repo = hand_written();
    let strata = Strata::new(BINARY, &repo);
    repo.write(".gitignore", ".strata/\n.cache/\n");
    git(&repo, &["init", "-q"]);
    git(&repo, &["config", "user.name", "t"]);
    git(&repo, &["config", "user.email", "t@t.example"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "base"]);
    let branches = ["outdated", "--write", "--branch", "--yes"];
    let lines = strata.run(&[&branches[..], &["--json"]].concat()).ok();
    let schema = strata.run(&["schema", "events"]).ok().stdout;
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let mut made = Vec::new();
    for line in lines.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        schema.validate(&event).unwrap_or_else(|error| panic!("{error}: {line}"));
        if event["event"] == "branch" {
            made.push(event["branch"].as_str().unwrap().to_owned());
        }
        if event["event"] == "pinned" && event["group"] == "modules" {
            assert_eq!((event["next"].as_str(), event["major"].as_str()), (Some("~> 5.7"), Some("~> 6.0")));
        }
    }
    assert_eq!(made, ["outdated/providers", "outdated/modules"]);
    assert_eq!(repo.read("stacks/shop/main.tf"), code("~> 1.4", "~> 5.1"));
    git(&repo, &["diff", "--quiet", "HEAD"]);
    git(&repo, &["checkout", "-q", "outdated/modules"]);
    assert_eq!(repo.read("stacks/shop/main.tf"), code("~> 1.4", "~> 5.7"));
    git(&repo, &["checkout", "-q", "-"]);
    let again = strata.run(&branches).ok();
    assert!(again.stdout.contains("branch `outdated/modules` is there already"), "{}", again.all());
    // What no commit has is no beginning of a branch.
    repo.edit("stacks/shop/main.tf", "# kept", "# mine");
    let refused = strata.run(&branches).code(3);
    assert!(
        refused.stderr.contains("`stacks/shop/main.tf` is not as the last commit has it"),
        "{}",
        refused.all()
    );
}
