//! B2, F9: keys are made under the lock, and belong to one cluster of one environment.

use std::process::{Child, Stdio};

use serde_json::json;
use strata_testkit::{Output, Repo};

use crate::cluster::lab::{FILE, Lab, Shape, dial};
use crate::state_server::{StateServer, TOKEN};

const BUNDLE: &str = "clusters/lab/talos.sops.yaml";

/// The cluster of `test`, laid over for `prod`: other machines, other addresses.
const PROD: &str = r"
clusters:
  lab:
    cluster:
      talos: {clusterName: lab-prod}
      network: {vip: 192.0.2.140}
      topology:
        controlPlane: {addresses: 192.0.2.141-192.0.2.149}
        workers: {addresses: 192.0.2.151-192.0.2.159}
    proxmox: {vm: {idBase: 850}}
";

/// The source of another cluster, in its own folder.
fn sibling(lab: &Lab) {
    let text = lab.repo.read(FILE);
    let text = text.replace("name: lab", "name: lab2").replace("192.0.2.4", "192.0.2.14");
    let text = text.replace("192.0.2.5", "192.0.2.15").replace("192.0.2.6", "192.0.2.16");
    lab.repo.write("clusters/lab2/cluster.yaml", &text.replace("idBase: 800", "idBase: 850"));
}

#[test]
fn b2_each_environment_has_keys_of_its_own() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    lab.repo.write("environments/prod.yaml", PROD);
    lab.run(&["validate"]).ok();
    lab.run(&["-e", "prod", "apply", "--yes"]).ok();
    let own = lab.repo.read("clusters/lab/talos.prod.sops.yaml");
    assert!(own.contains("environment: \"prod\"") && own.contains("ENC["), "{own}");
    let talos = lab.talos();
    assert_eq!(talos["etcd-clusters"].as_array().unwrap().len(), 2, "two clusters: {talos:#}");
    assert_eq!(talos["counters"].as_object().unwrap().len(), 2, "two sets of keys: {talos:#}");

    // The end of one is not the end of the other.
    lab.run(&["-e", "prod", "destroy", "--yes"]).ok();
    lab.assert_settled("after the end of prod");
    let talos = lab.talos();
    assert_eq!(talos["etcd-clusters"][0]["members"].as_array().unwrap().len(), 1, "{talos:#}");
}

#[test]
fn b2_an_environment_that_runs_with_the_shared_file_keeps_it() {
    let lab = Lab::new(&Shape::new(1, 0));
    lab.repo.write("environments/prod.yaml", PROD);
    // As older versions did it: the only environment that was ever applied is `prod`, with the file that has no environment in its name.
    lab.repo.write("clusters/lab/talos.prod.sops.yaml", &lab.repo.read(BUNDLE));
    lab.repo.remove(BUNDLE);
    lab.run(&["-e", "prod", "apply", "--yes"]).ok();
    lab.repo.write(BUNDLE, &lab.repo.read("clusters/lab/talos.prod.sops.yaml"));
    lab.repo.remove("clusters/lab/talos.prod.sops.yaml");
    let plan = lab.run(&["-e", "prod", "plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    lab.run(&["-e", "prod", "talos", "health", "lab"]).ok();

    // What would be the other environment's file is taken.
    for verb in [&["plan"][..], &["apply", "--yes"]] {
        let refused = lab.run(verb).code(3);
        assert!(refused.stderr.contains("holds the keys of `lab` in `prod`"), "{}", refused.all());
    }
}

#[test]
fn b2_a_copied_folder_is_refused() {
    let lab = Lab::new(&Shape::new(1, 0));
    sibling(&lab);
    lab.run(&["validate"]).ok();
    lab.repo.write("clusters/lab2/talos.sops.yaml", &lab.repo.read(BUNDLE));
    for verb in [&["validate"][..], &["plan"], &["apply", "--yes"]] {
        let refused = lab.run(verb).code(1);
        assert!(
            refused
                .stderr
                .contains("`clusters/lab2/talos.sops.yaml` is a copy of `clusters/lab/talos.sops.yaml`"),
            "{}",
            refused.all()
        );
        assert!(
            refused.stderr.contains("clusters/lab2/cluster.yaml:"),
            "it is underlined: {}",
            refused.all()
        );
    }
    // One that was encrypted again looks different, and holds the same.
    lab.repo.write("clusters/lab2/talos.sops.yaml", &crate::cluster::lab::keys().plain);
    lab.run(&["secrets", "encrypt", "clusters/lab2/talos.sops.yaml"]).ok();
    let refused = lab.run(&["validate"]).code(1);
    assert!(refused.stderr.contains("hold the same keys"), "{}", refused.all());
    // And where only one of them is looked at, the state of the other one knows.
    lab.run(&["apply", "--yes", "lab"]).ok();
    let refused = lab.run(&["plan", "lab2"]).code(3);
    assert!(refused.stderr.contains("holds the keys of `lab` in `test`"), "{}", refused.all());
    lab.repo.remove("clusters/lab2/talos.sops.yaml");
    lab.run(&["validate"]).ok();
}

/// Keys that were brought along are in use from the first machine that has them, not from the first success.
#[test]
fn b2_a_first_apply_that_failed_holds_its_keys() {
    let lab = Lab::new(&Shape::new(1, 0));
    let control = lab.sim.control();
    control.fault(&json!({"kind": "refuse", "path": "/talos/*/machine.MachineService/Bootstrap", "count": 0, "status": 403}));
    lab.run(&["apply", "--yes"]).code(1);
    control.clear_faults();
    sibling(&lab);
    lab.repo.write("clusters/lab2/talos.sops.yaml", &crate::cluster::lab::keys().plain);
    lab.run(&["secrets", "encrypt", "clusters/lab2/talos.sops.yaml"]).ok();
    for verb in [&["plan", "lab2"][..], &["apply", "lab2", "--yes"]] {
        let refused = lab.run(verb).code(3);
        assert!(refused.stderr.contains("holds the keys of `lab` in `test`"), "{}", refused.all());
    }
}

#[test]
fn b2_a_file_says_whose_it_is() {
    let lab = Lab::new(&Shape::new(1, 0));
    lab.repo.remove(BUNDLE);
    lab.apply();
    // Of another cluster of the repository, of another environment, of another repository.
    let own = lab.repo.read(BUNDLE);
    sibling(&lab);
    lab.repo.write("clusters/lab2/talos.sops.yaml", &own);
    let refused = lab.run(&["validate"]).code(1);
    assert!(refused.stderr.contains("holds the keys of `lab` in `test`"), "{}", refused.all());
    lab.repo.remove("clusters/lab2/talos.sops.yaml");
    lab.repo.remove("clusters/lab2/cluster.yaml");
    lab.repo.write("environments/prod.yaml", PROD);
    lab.repo.write("clusters/lab/talos.prod.sops.yaml", &own);
    let refused = lab.run(&["validate"]).code(1);
    assert!(refused.stderr.contains("holds the keys of `lab` in `test`"), "{}", refused.all());
    lab.repo.remove("clusters/lab/talos.prod.sops.yaml");
    // A file that is named for all environments is one file.
    let plain = lab.repo.read(FILE);
    lab.repo.edit(FILE, "installDisk: /dev/sda", "installDisk: /dev/sda\n    secrets: ./talos.sops.yaml");
    let refused = lab.run(&["validate"]).code(1);
    assert!(refused.stderr.contains("would have the same keys"), "{}", refused.all());
    lab.repo.write(FILE, &plain);
    lab.run(&["validate"]).ok();
    lab.repo.edit("strata.yaml", "repository: test", "repository: other");
    let refused = lab.run(&["validate"]).code(1);
    assert!(refused.stderr.contains("of another repository"), "{}", refused.all());
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &place);
        } else {
            std::fs::copy(&path, &place).unwrap();
        }
    }
}

/// As older versions left it: two environments were applied with one set of keys, and are one etcd.
#[test]
fn b2_the_end_of_an_environment_takes_no_members_of_another() {
    // Both are one Kubernetes, too, which has to answer for the names of both.
    let sans = "cluster: {apiServer: {certSANs: [192.0.2.40, 192.0.2.140, 192.0.2.141]}}".to_owned();
    let lab = Lab::booted(&Shape { patches: vec![sans], ..Shape::new(1, 0) });
    // Somebody who does not have the state of `test`, so that nothing tells that the keys are in use.
    let older = Lab { sim: strata_testkit::TestSim::start(), repo: Repo::on(&lab.sim) };
    for file in ["strata.yaml", FILE, "age.key", ".sops.yaml", "flux.yaml", "network-ca.pem"] {
        older.repo.write(file, &lab.repo.read(file));
    }
    dial(&lab.sim, &older.repo);
    older.repo.write("environments/prod.yaml", PROD);
    older.repo.write("clusters/lab/talos.prod.sops.yaml", &lab.repo.read(BUNDLE));
    older.run(&["-e", "prod", "apply", "--yes"]).ok();
    let members = |lab: &Lab| lab.talos()["etcd-clusters"][0]["members"].as_array().unwrap().len();
    assert_eq!(members(&lab), 2, "they are one etcd: {:#}", lab.talos());
    copy_folder(&older.repo.file(".strata/state/prod"), &lab.repo.file(".strata/state/prod"));
    lab.repo.write("environments/prod.yaml", PROD);

    let before = lab.machines();
    for verb in [&["-e", "prod", "destroy", "--yes"][..], &["destroy", "--yes"]] {
        let refused = lab.run(verb).code(3);
        assert!(refused.stderr.contains("are one etcd"), "{}", refused.all());
        assert!(refused.stderr.contains("talosctl --nodes ADDRESS reset"), "{}", refused.all());
        assert_eq!(lab.machines(), before, "{verb:?}");
    }
    // While the others cannot be asked, nobody knows.
    lab.change(&json!({"cut-off": {"machine": "lab-cp-1", "cut_off": true}}));
    let refused = lab.run(&["-e", "prod", "destroy", "--yes"]).code(3);
    assert!(refused.stderr.contains("no control plane answers to show"), "{}", refused.all());
    lab.change(&json!({"cut-off": {"machine": "lab-cp-1", "cut_off": false}}));
    assert_eq!((lab.machines(), members(&lab)), (before, 2));
}

/// A checkout on another machine: the same source and readers, and no keys of the cluster yet.
fn checkout(lab: &Lab, server: &StateServer) -> Lab {
    let repo = Repo::on(&lab.sim);
    for file in ["strata.yaml", FILE, "age.key", ".sops.yaml", "flux.yaml", "network-ca.pem"] {
        repo.write(file, &lab.repo.read(file));
    }
    let settings = format!("state: {}\n", server.settings());
    repo.write("strata.yaml", &(repo.read("strata.yaml") + &settings));
    repo.write("state-token", TOKEN);
    dial(&lab.sim, &repo);
    Lab { sim: strata_testkit::TestSim::start(), repo }
}

fn start(lab: &Lab, arguments: &[&str]) -> Child {
    lab.strata().command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn f9_the_loser_of_a_first_apply_has_made_no_keys() {
    let server = StateServer::start();
    let lab = Lab::new(&Shape::new(1, 0));
    let [winner, loser] = [checkout(&lab, &server), checkout(&lab, &server)];
    let control = lab.sim.control();
    let fault = control.fault(&json!({"kind": "hold-before", "nth": 1, "method": "POST"}));
    let first = start(&winner, &["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    assert!(winner.repo.file(BUNDLE).exists());

    for verb in [&["apply", "--yes"][..], &["plan", "-o", "saved.plan"]] {
        let late = loser.run(verb);
        assert!(matches!(late.code, 3 | 4), "{}", late.all());
        assert!(!loser.repo.file(BUNDLE).exists(), "{}", late.all());
        assert!(!late.all().contains("commit that file"), "{}", late.all());
    }
    control.release(fault);
    control.clear_faults();
    let first = end(first);
    assert_eq!(first.code, 0, "{}", first.all());

    // After that, too, and whoever only looks is told the same.
    for verb in [&["apply", "--yes"][..], &["plan"], &["plan", "-o", "saved.plan"]] {
        let late = loser.run(verb).code(3);
        assert!(late.stderr.contains("`lab` are missing"), "{}", late.all());
        assert!(late.stderr.contains("fetch the file"), "{}", late.all());
        assert!(!loser.repo.file(BUNDLE).exists());
    }
    loser.repo.write(BUNDLE, &winner.repo.read(BUNDLE));
    let plan = loser.run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    // Other keys in that place are another cluster's.
    loser.repo.remove(BUNDLE);
    loser.repo.write(BUNDLE, &lab.repo.read(BUNDLE));
    let refused = loser.run(&["plan"]).code(3);
    assert!(refused.stderr.contains("holds the keys of another cluster"), "{}", refused.all());
}

#[test]
fn f9_of_two_first_applies_one_makes_the_keys() {
    let server = StateServer::start();
    let lab = Lab::new(&Shape::new(1, 0));
    let both = [checkout(&lab, &server), checkout(&lab, &server)];
    let runs = both.each_ref().map(|one| start(one, &["apply", "--yes", "--lock-timeout", "5m"])).map(end);
    let mut codes = runs.each_ref().map(|run| run.code);
    codes.sort_unstable();
    assert_eq!(codes, [0, 3], "{}\n{}", runs[0].all(), runs[1].all());
    let made = both.iter().filter(|one| one.repo.file(BUNDLE).exists()).count();
    assert_eq!(made, 1, "{}\n{}", runs[0].all(), runs[1].all());
    let talos = lab.talos();
    assert_eq!(talos["etcd-clusters"].as_array().unwrap().len(), 1, "{talos:#}");

    // With the cluster the keys may go.
    let index = runs.iter().position(|run| run.code == 0).unwrap();
    both[index].run(&["destroy", "--yes"]).ok();
    both[1 - index].run(&["apply", "--yes"]).ok();
}

/// An import from OpenTofu brings keys, too: under the lock, and only those of the cluster that the state knows.
#[test]
fn f9_an_import_writes_no_keys_beside_an_apply() {
    let server = StateServer::start();
    let lab = Lab::new(&Shape::new(1, 0));
    lab.run(&["talos", "config", "lab", "--out", "told"]).ok();
    let built = crate::cluster::arrival::state(&lab, &[("lab-cp-1", "192.0.2.41")]);
    let [winner, importer] = [checkout(&lab, &server), checkout(&lab, &server)];
    importer.repo.write("talos.tfstate", &built);
    let control = lab.sim.control();
    let fault = control.fault(&json!({"kind": "hold-before", "nth": 1, "method": "POST"}));
    let first = start(&winner, &["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    let late = importer.run(&["import", "--state", "talos.tfstate"]).code(4);
    assert!(!importer.repo.file(BUNDLE).exists(), "{}", late.all());
    control.release(fault);
    control.clear_faults();
    let first = end(first);
    assert_eq!(first.code, 0, "{}", first.all());

    let late = importer.run(&["import", "--state", "talos.tfstate"]).code(3);
    assert!(late.stderr.contains("the state knows `lab` by the id"), "{}", late.all());
    assert!(!importer.repo.file(BUNDLE).exists(), "{}", late.all());
}
