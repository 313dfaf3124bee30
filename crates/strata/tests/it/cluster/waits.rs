//! What is waited for: told while it lasts, ended by Ctrl-C, and gone on with by the next apply.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::json;

use super::lab::{FILE, Lab, Shape};
use crate::interrupts::interrupt;

/// An apply that has come to a certain wait.
fn waiting(lab: &Lab, words: &str) -> Child {
    let mut command = lab.strata().command(&["--json", "apply", "--yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next().unwrap_or_else(|| panic!("it never waits for {words}:\n{said}")).unwrap();
        if line.contains(words) {
            break;
        }
        said.push_str(&line);
        said.push('\n');
    }
    // It must not be stopped by a pipe that nobody reads.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// Ends a wait with one Ctrl-C, and sees that the state is one to go on from.
fn interrupted(lab: &Lab, words: &str) {
    let mut child = waiting(lab, words);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130), "one Ctrl-C is enough: {words}");
    assert!(
        lab.repo.file(".strata/state/test/lab/journal").exists(),
        "the journal has what was begun: {words}"
    );
    let plan = lab.run(&["plan"]);
    assert!(plan.stdout.contains("`strata apply` finishes this first"), "{}", plan.all());
}

#[test]
fn one_interrupt_ends_the_wait_for_a_boot() {
    let shape = Shape::new(1, 1);
    let lab = Lab::new(&shape);
    // Nobody gives the control plane an address: it never answers.
    lab.repo.edit(
        FILE,
        "\nproxmox:\n",
        "\n  nodes: {lab-cp-1: {dhcp: true, mac: \"02:00:00:00:00:41\"}}\nproxmox:\n",
    );
    interrupted(&lab, "waits for Talos at 192.0.2.41");
    lab.change(&json!({"reserve": {"mac": "02:00:00:00:00:41", "address": "192.0.2.41"}}));
    lab.apply();
    lab.assert_sound("after the interrupt");
    lab.assert_is(&shape, "after the interrupt");
    lab.assert_settled("after the interrupt");
}

#[test]
fn one_interrupt_ends_the_wait_for_health() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    let mut changed = shape.clone();
    changed.patches = vec!["machine: {nodeLabels: {rack: a}}".to_owned()];
    lab.source(&changed);
    // The worker takes its configuration and is unhealthy after it.
    lab.sim.control().change(&json!({"kubernetes": {"cni": false}}));
    interrupted(&lab, "to be healthy");
    lab.sim.control().change(&json!({"kubernetes": {"cni": null}}));
    lab.apply();
    lab.assert_is(&changed, "after the interrupt");
    lab.assert_settled("after the interrupt");
}

#[test]
fn flux_that_has_nowhere_to_run_is_told_in_the_plan_and_its_wait_is_ended() {
    let shape = Shape::new(1, 0).with_gitops();
    let lab = Lab::new(&shape);
    let plan = lab.run(&["plan"]).ok();
    for words in ["the controllers of Flux have nowhere to run", "scheduleOnControlPlanes: true"] {
        assert!(plan.all().contains(words), "no `{words}` in:\n{}", plan.all());
    }
    interrupted(&lab, "waits for Deployment");
    lab.repo.edit(
        FILE,
        "kubernetes: {version: v1.36.3}",
        "kubernetes: {version: v1.36.3, scheduleOnControlPlanes: true}",
    );
    let plan = lab.run(&["plan"]);
    assert!(!plan.all().contains("nowhere to run"), "{}", plan.all());
    lab.apply();
    lab.assert_is(&shape, "with room for Flux");
    lab.assert_settled("with room for Flux");
}

#[test]
fn a_network_plug_in_that_somebody_else_installs_is_waited_for() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    lab.repo.edit(FILE, "kubernetes: {version: v1.36.3}", "kubernetes: {version: v1.36.3, cni: none}");
    lab.repo.edit(FILE, "\nproxmox:\n", "\n  timeouts: {flux: 2s}\nproxmox:\n");
    let failed = lab.run(&["apply", "--yes"]).code(1);
    for words in [
        "the network plug-in that you install (`cni: none`) did not come about",
        "is not ready",
        "`strata talos kubeconfig lab` gives you access",
    ] {
        assert!(failed.all().contains(words), "no `{words}` in:\n{}", failed.all());
    }
    let objects = lab.export()["kubernetes"].to_string();
    assert!(!objects.contains("source-controller"), "Flux is not begun without a network: {objects}");
    lab.repo.edit(FILE, "  timeouts: {flux: 2s}\n", "");
    let mut child = waiting(&lab, "waits for the network plug-in");
    lab.sim.control().change(&json!({"kubernetes": {"cni": true}}));
    assert!(child.wait().unwrap().success(), "it goes on as soon as the network is there");
    lab.assert_is(&shape, "with a network");
    lab.assert_settled("with a network");
}
