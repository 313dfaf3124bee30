//! Etcd that must never be bootstrapped twice, wiped while it is healthy, or restored from another cluster's snapshot.

mod alarms;
mod bootstrap;
mod flux;
mod leaving;
mod metal;
mod random;
mod rejoining;
mod restore;
mod snapshots;

use serde_json::{Value, json};
use strata_testkit::Output;

use crate::cluster::lab::Lab;

const NAMES: [&str; 5] = ["lab-cp-1", "lab-cp-2", "lab-cp-3", "lab-cp-4", "lab-cp-5"];

/// Somebody resets machines by hand: nobody says goodbye to etcd.
fn reset(lab: &Lab, names: &[&str]) {
    for name in names {
        let machine = format!("vm/{}", lab.vm(name).1);
        lab.change(&json!({"reset": {"machine": machine, "partitions": ["STATE", "EPHEMERAL"]}}));
    }
    for name in names {
        until(lab, name, "maintenance");
    }
}

/// Waits until a machine, by its VM, is in that stage.
fn until(lab: &Lab, name: &str, stage: &str) {
    let key = format!("vm/{}", lab.vm(name).1);
    for _ in 0..2000 {
        let talos = lab.talos();
        let machines = talos["machines"].as_array().unwrap();
        if machines.iter().any(|machine| machine["machine"] == json!(key) && machine["stage"] == stage) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("`{name}` is not `{stage}`: {:#}", lab.talos());
}

fn power(lab: &Lab, name: &str, running: bool) {
    lab.sim.control().change(&json!({"power": {"vmid": lab.vm(name).1, "running": running}}));
}

fn lose_state(lab: &Lab) {
    std::fs::remove_dir_all(lab.repo.file(".strata/state")).unwrap();
}

/// Something that only the first etcd has.
fn remember(lab: &Lab, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    kubernetes(lab, "POST", "/api/v1/namespaces/default/configmaps", body);
}

fn remembers(lab: &Lab, name: &str) -> bool {
    let maps = kubernetes(lab, "GET", "/api/v1/namespaces/default/configmaps", Value::Null);
    maps.to_string().contains(&format!("\"{name}\""))
}

fn kubernetes(lab: &Lab, method: &str, path: &str, body: Value) -> Value {
    let call = json!({"method": method, "path": path, "body": body});
    lab.sim.control().change(&json!({"kubernetes": {"call": call}}))
}

/// How often etcd was bootstrapped, and the machines that hold data of it.
fn etcd(lab: &Lab) -> (u64, Vec<String>) {
    let talos = lab.talos();
    let bootstraps =
        talos["counters"].as_object().unwrap().values().map(|own| own["bootstraps"].as_u64().unwrap());
    let machines =
        talos["machines"].as_array().unwrap().iter().filter(|machine| machine["etcd-data"] == true);
    (
        bootstraps.sum(),
        machines.map(|machine| machine["hostname"].as_str().unwrap_or("?").to_owned()).collect(),
    )
}

/// Every snapshot, in the order of their names.
fn snapshots(lab: &Lab) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(lab.repo.file(".strata/snapshots")) else { return Vec::new() };
    let mut names: Vec<String> = folder.map(|entry| entry.unwrap().path().display().to_string()).collect();
    names.sort();
    names
}

#[track_caller]
fn says(output: &Output, words: &[&str]) {
    for words in words {
        assert!(output.all().contains(words), "no `{words}` in:\n{}", output.all());
    }
}
