//! Requests to Talos, Kubernetes and a TrueNAS that arrive after the lease of the run that sent them.

use serde_json::{Value, json};
use strata_testkit::Repo;

use super::lease::{apply_while_it_arrives, signal};
use crate::cluster::lab::{FILE, Lab, Shape};
use crate::state_server::{StateServer, TOKEN};

const SYSCTL: &str = "machine: {sysctls: {net.core.somaxconn: \"65535\"}}";

/// The same checkout on another machine: what a run leaves beside the source is not there.
fn checkout(of: &Repo) -> Repo {
    let copy = Repo::empty();
    for (path, bytes) in of.all_files() {
        let path = path.strip_prefix(of.path()).unwrap();
        if !path.starts_with(".strata") {
            copy.write(path.to_str().unwrap(), &String::from_utf8(bytes).unwrap());
        }
    }
    copy
}

/// The former run has changed the source and is stopped with the request under way. The next one, of the source as it was, waits for it, and what
/// the request did is gone at the end.
#[track_caller]
fn arrives_late(server: &StateServer, lab: &Lab, change: &dyn Fn(&Repo), request: &Value) {
    let control = lab.sim.control();
    let second = checkout(&lab.repo);
    let former = checkout(&lab.repo);
    change(&former);
    let fault = control.fault(request);
    let mut run = lab.strata_of(&former).spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0), "{request} did not strike");
    signal(&run, "-STOP");
    server.pass(61);

    let told = apply_while_it_arrives(&lab.strata_of(&second), &lab.sim, fault);
    control.clear_faults();
    let plan = lab.strata_of(&second).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{request}\n{told}\n{}", plan.all());

    // The former run goes on, finds that its lease is gone, and writes nothing more.
    signal(&run, "-CONT");
    assert!(!run.wait().unwrap().success(), "{request}");
    let plan = lab.strata_of(&second).run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{request}: after the former run went on\n{}", plan.all());
    lab.assert_sound("after a late request");
}

#[test]
fn a9_what_a_former_run_sent_to_talos_kubernetes_or_truenas_arrives_while_the_next_one_waits() {
    let server = StateServer::start();
    let mut shape = Shape::new(1, 1).whole();
    let lab = Lab::new(&shape);
    lab.repo.write("state-token", TOKEN);
    lab.repo.write("strata.yaml", &format!("{}state: {}\n", lab.repo.read("strata.yaml"), server.settings()));
    lab.apply();

    let held = |method: &str, path: &str| json!({"kind": "hold-before", "method": method, "path": path});
    shape.patches.push(SYSCTL.to_owned());
    let patched = shape.yaml();
    arrives_late(&server, &lab, &|repo| repo.write(FILE, &patched), &held("POST", "*/ApplyConfiguration"));

    let removed = |repo: &Repo| {
        repo.edit(FILE, "storage-api:", "storage-api-2:");
    };
    arrives_late(&server, &lab, &removed, &held("PATCH", "*/secrets/storage-api*"));

    let compressed = |repo: &Repo| repo.edit(FILE, "compression: LZ4", "compression: ZSTD");
    arrives_late(&server, &lab, &compressed, &held("PUT", "/truenas/*/pool.dataset.update"));
}
