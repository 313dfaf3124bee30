//! The reboots that a plan foretells are those that happen, in every version of Talos.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::lab::{Lab, Shape};
use super::rolling::reboots;

/// Changes of the machine configuration. The first word says what 1.14 calls it, where that is a document of its own.
const CHANGES: [(&str, &str); 17] = [
    ("sysctl", "machine: {sysctls: {net.core.somaxconn: \"65535\"}}"),
    ("sysfs", "machine: {sysfs: {devices.system.cpu.cpu0.cpufreq.scaling_governor: performance}}"),
    ("labels", "machine: {nodeLabels: {rack: a}}"),
    ("annotations", "machine: {nodeAnnotations: {owner: me}}"),
    ("kubelet arguments", "machine: {kubelet: {extraArgs: {rotate-server-certificates: \"true\"}}}"),
    ("kubelet settings", "machine: {kubelet: {extraConfig: {serverTLSBootstrap: true}}}"),
    ("time", "machine: {time: {servers: [192.0.2.1]}}"),
    ("names", "machine: {certSANs: [lab.example]}"),
    ("a kernel module", "machine: {kernel: {modules: [{name: nbd}]}}"),
    ("its parameters", "machine: {kernel: {modules: [{name: nbd, parameters: [\"max_part=8\"]}]}}"),
    ("a file", "machine: {files: [{path: /var/etc/a, content: b, permissions: 0o600, op: create}]}"),
    ("the environment", "machine: {env: {GRPC_GO_LOG_SEVERITY_LEVEL: info}}"),
    ("udev", "machine: {udev: {rules: [\"SUBSYSTEM==drm\"]}}"),
    (
        "logging",
        "machine: {logging: {destinations: [{endpoint: \"tcp://192.0.2.1:5140\", format: json_lines}]}}",
    ),
    ("the API server", "cluster: {apiServer: {extraArgs: {profiling: \"false\"}}}"),
    (
        "a static pod",
        "machine: {pods: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: b}]}}]}",
    ),
    ("pods on control planes", "cluster: {allowSchedulingOnControlPlanes: true}"),
];

/// Nodes whose step in the plan has a restart.
fn foretold(lab: &Lab) -> (BTreeSet<String>, Vec<String>) {
    let plan = lab.run(&["--json", "plan"]).ok();
    let mut restarts = BTreeSet::new();
    let mut perhaps = Vec::new();
    for line in plan.stdout.lines() {
        let Ok(step) = serde_json::from_str::<Value>(line) else { continue };
        let Some(name) = step["address"].as_str().and_then(|address| address.strip_prefix("lab/machine/"))
        else {
            continue;
        };
        if step["restart"] == json!(true) {
            restarts.insert(name.to_owned());
        }
        if step["reasons"].to_string().contains("may") {
            perhaps.push(format!("{name}: {}", step["reasons"]));
        }
    }
    (restarts, perhaps)
}

fn as_foretold(talos: &str, kubernetes: &str) {
    let mut shape = Shape::new(1, 1).versions(talos, kubernetes);
    let lab = Lab::booted(&shape);
    let (mut rebooted, mut stayed) = (0, 0);
    for (what, patch) in CHANGES {
        let what = format!("{what} on {talos}");
        shape.patches.push(patch.to_owned());
        lab.source(&shape);
        let plan = lab.run(&["plan"]);
        if plan.code != 0 {
            // What this version has another place for is refused with its name.
            assert!(plan.all().contains("document"), "{what}:\n{}", plan.all());
            shape.patches.pop();
            continue;
        }
        lab.change(&json!({"reset-counters": {}}));
        let (foretold, perhaps) = foretold(&lab);
        assert!(perhaps.is_empty(), "{what}: it is known for certain: {perhaps:?}");
        lab.apply();
        let happened: BTreeSet<String> = reboots(&lab).into_iter().collect();
        assert_eq!(happened, foretold, "{what}");
        for machine in lab.talos()["machines"].as_array().unwrap() {
            assert_eq!(machine["reboot-pending"], false, "{what}: {machine}");
        }
        lab.assert_settled(&what);
        rebooted += foretold.len();
        stayed += usize::from(foretold.is_empty());
    }
    println!("{talos}: {rebooted} reboots foretold and seen, {stayed} changes without one");
    assert!(rebooted > 0 && stayed > 5, "{rebooted} {stayed}");
}

#[test]
fn reboots_of_1_11_are_foretold() {
    as_foretold("v1.11.6", "v1.34.1");
}

#[test]
fn reboots_of_1_12_are_foretold() {
    as_foretold("v1.12.6", "v1.35.0");
}

#[test]
fn reboots_of_1_13_are_foretold() {
    as_foretold("v1.13.9", "v1.36.3");
}

#[test]
fn reboots_of_1_14_are_foretold() {
    as_foretold("v1.14.0", "v1.37.0");
}
