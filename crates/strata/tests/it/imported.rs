//! `strata import`, and then `strata plan`: what was carried over can be made, and what is missing is asked for.

use std::path::{Path, PathBuf};

use serde_json::Value;
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

/// The repositories that the importers are tried on.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../strata-import/tests/it/fixtures").join(name)
}

/// Imports a fixture into `new`.
fn imported(fixture_name: &str) -> (Repo, Strata) {
    let repo = Repo::empty();
    let strata = Strata::new(BINARY, &repo);
    strata.run(&["-C", "new", "import", fixture(fixture_name).to_str().unwrap()]).ok();
    strata.run(&["-C", "new", "validate"]).ok();
    (repo, strata)
}

/// Every target is the simulator, whatever its endpoint; the state is kept here.
fn on(sim: &TestSim, repo: &Repo, strata: Strata) -> Strata {
    let written = repo.read("new/strata.yaml");
    let mut lines: Vec<String> = Vec::new();
    let mut section = "";
    let mut dial = serde_json::Map::new();
    let host = sim.endpoint().trim_start_matches("https://").to_owned();
    for line in written.lines() {
        let text = line.split(" #").next().unwrap_or(line);
        if !text.starts_with(' ') {
            section = if text.starts_with("state:") { "state" } else { "" };
        }
        if section == "state" {
            if !text.starts_with(' ') {
                lines.extend(["state:".to_owned(), "  backend: local".to_owned()]);
            }
        } else if let Some(endpoint) = text.strip_prefix("      endpoint: https://") {
            // Nobody is at an address that stands in.
            let endpoint = endpoint.replace(".invalid", ".example");
            let place = if endpoint.contains(':') { endpoint.clone() } else { format!("{endpoint}:443") };
            dial.insert(place, serde_json::json!(host));
            lines.push(format!("      endpoint: https://{endpoint}"));
        } else if text.trim_start().starts_with("secret: proxmox_api_token") {
            lines.push("        env: TOKEN".to_owned());
        } else if !text.trim_start().starts_with("tls:") && text.trim_start() != "insecure: true" {
            lines.push(text.to_owned());
        }
    }
    let trusted = lines.join("\n").replace(
        "        env: TOKEN",
        &format!("        env: TOKEN\n      tls: {{fingerprint: \"{}\"}}", sim.fingerprint()),
    );
    repo.write("new/strata.yaml", &format!("{trusted}\n"));
    dial.insert("*".to_owned(), serde_json::json!(sim.gateway()));
    repo.write("dial.json", &serde_json::Value::Object(dial).to_string());
    let dial = repo.file("dial.json");
    strata.env("TOKEN", sim.token()).env("STRATA_DIAL", dial.to_str().unwrap())
}

/// Imports and plans: so many are made, these among them.
fn creates(name: &str, stacks: &[&str], count: usize, some: &[&str]) {
    let sim = TestSim::start();
    let (repo, strata) = imported(name);
    let strata = on(&sim, &repo, strata);
    // Those of the fixtures open for nobody; without them, new ones would be made.
    for (path, _) in repo.all_files() {
        if path.ends_with("talos.sops.yaml") {
            std::fs::remove_file(repo.path().join(path)).unwrap();
        }
    }
    let mut arguments = vec!["-C", "new", "plan"];
    arguments.extend(stacks);
    let plan = strata.run(&arguments);
    for part in some {
        assert!(plan.stdout.contains(part), "{name}: {part}: {}", plan.all());
    }
    arguments.push("--json");
    let events = strata.run(&arguments).code(plan.code).stdout;
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let made =
        events.iter().filter(|event| event["event"] == "planned" && event["action"] == "create").count();
    assert_eq!(made, count, "{name}: {}", plan.all());
    // The simulated datacenter is not theirs: it has other nodes, storages and bridges, and its token fewer privileges. Nothing else is wrong.
    let problems: Vec<&Value> = events.iter().filter(|event| event["event"] == "problem").collect();
    assert_eq!(plan.code, if problems.is_empty() { 0 } else { 3 }, "{name}: {}", plan.all());
    for problem in problems {
        assert_eq!(problem["problem"]["kind"], "preflight", "{name}: {problem}");
    }
}

#[test]
fn layered_terraform() {
    creates(
        "layered",
        &["datacenter", "k8s-prod", "legacy", "nas"],
        16,
        &["VM 400 on pve1", "Talos v1.11.2 on 192.0.2.41", "VM 1500 on pve1"],
    );
}

#[test]
fn stacks_old_and_new() {
    creates("stacks", &["server-a", "server-b"], 8, &["server-a/vm/web-01"]);
    creates("groups", &[], 3, &["harbour/vm/worker-1  VM 1101 on moor", "harbour/container/tunnel"]);
}

#[test]
fn one_cluster_yaml_for_each_cluster() {
    creates("clusters", &[], 10, &["VM 810 on pve", "homelab/machine/homelab-cp1"]);
}

#[test]
fn environments() {
    creates(
        "environments",
        &[],
        6,
        &["shop-dev/template/debian12  template 9000", "clone", "container 9200"],
    );
}

#[test]
fn roots_of_either_provider() {
    creates(
        "telmate",
        &[],
        9,
        &["old/vm/web-2  VM 311 on pve1", "new/container/cache  container 420 on pve2"],
    );
    creates("together", &[], 7, &["machine/"]);
}

#[test]
fn files_of_talos_tools() {
    creates("talconfig", &[], 4, &["Talos v1.11.1 on 192.0.2.41"]);
    creates("simple", &[], 4, &["machine/"]);
    creates("toml", &[], 3, &["machine/"]);
    creates("topf", &[], 4, &["machine/"]);
    creates("templates", &[], 5, &["machine/"]);
}

#[test]
fn what_is_missing_is_asked_for() {
    let (_kept, strata) = imported("template");
    let refused = strata.run(&["-C", "new", "plan"]).code(1);
    assert!(refused.stderr.contains("`proxmox_api_token_secret`"), "{}", refused.all());
    assert!(refused.stderr.contains("strata secrets collect"), "{}", refused.all());
    let (repo, strata) = imported("stacks");
    let refused = strata.run(&["-C", "new", "plan", "server-a"]).code(1);
    assert!(refused.stderr.contains("stands in for an endpoint that no file said"), "{}", refused.all());
    let written = repo.read("new/strata.yaml").replace(".invalid", ".example");
    repo.write("new/strata.yaml", &written);
    let refused = strata.run(&["-C", "new", "plan", "server-a"]).code(1);
    assert!(refused.stderr.contains("is not set yet"), "{}", refused.all());
    assert!(refused.stderr.contains("strata secrets edit secrets.sops.yaml"), "{}", refused.all());
}
