//! The keys of a cluster and the secrets that Flux starts with are nowhere but where they must be.

use std::path::Path;

use serde_json::json;

use super::lab::{GIT_TOKEN, Lab, STORAGE_KEY, Shape, keys};

/// Every private key and token of the bundle: long values of lines that name one.
fn secrets() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in keys().plain.lines() {
        let Some((name, value)) = line.trim().split_once(": ") else { continue };
        let value = value.trim_matches('"');
        // Certificates are no secret.
        if name.trim_start_matches("- ") != "crt" && name != "id" && value.len() >= 16 {
            found.push(value.to_owned());
        }
    }
    assert!(found.len() >= 9, "the bundle has keys of four authorities, one of accounts, and tokens");
    found.extend([GIT_TOKEN.to_owned(), STORAGE_KEY.to_owned()]);
    let key = age_key();
    found.push(key);
    found
}

fn age_key() -> String {
    keys().age_key.lines().last().unwrap().to_owned()
}

fn search(lab: &Lab, outputs: &[(String, String)]) {
    let secrets = secrets();
    for (arguments, output) in outputs {
        for secret in &secrets {
            assert!(!output.contains(secret.as_str()), "`strata {arguments}` prints a secret:\n{output}");
        }
        assert!(!output.contains("PRIVATE KEY"), "`strata {arguments}` prints a key:\n{output}");
    }
    for (path, bytes) in lab.repo.all_files() {
        if path.ends_with(Path::new("age.key")) {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "`{}` holds a secret", path.display());
        }
        assert!(!text.contains("PRIVATE KEY"), "`{}` holds a key", path.display());
    }
    let requests = lab.sim.control().requests().to_string();
    assert!(secrets.iter().all(|secret| !requests.contains(secret.as_str())), "{requests}");
}

#[test]
fn a_clusters_keys_are_in_no_output_and_no_file() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    let mut outputs = Vec::new();
    let mut run = |arguments: &[&str]| {
        let output = lab.run(arguments);
        outputs.push((arguments.join(" "), output.all()));
        output
    };
    run(&["plan"]).ok();
    run(&["--json", "plan"]).ok();
    run(&["-v", "plan", "-o", "saved.plan"]).ok();
    run(&["graph"]).ok();
    let control = lab.sim.control();
    // What a server says may quote what it was sent.
    let quoted = secrets().join("' and '");
    for (path, status) in [("/talos/*/ApplyConfiguration", 400), ("/kubernetes/*/secrets/*", 422)] {
        control.fault(&json!({"kind": "refuse", "path": path, "writes": true, "status": status, "text": format!("no '{quoted}'")}));
        assert_ne!(run(&["-v", "apply", "--yes"]).code, 0);
        control.clear_faults();
    }
    // An answer that is lost leaves a journal; the process dies with it.
    super::kill::kill_apply(&lab, "hold-after", 40);
    search(&lab, &[]);
    run(&["--json", "apply", "--yes"]).ok();
    run(&["-v", "plan", "--detailed-exitcode"]).ok();
    // A change with a secret in it, and one that makes an etcd snapshot.
    let mut changed = shape.clone();
    changed.patches.push("machine: {sysctls: {net.ipv4.ip_forward: \"1\"}}".to_owned());
    lab.source(&changed);
    run(&["plan"]).ok();
    run(&["--json", "plan"]).ok();
    run(&["-v", "apply", "--yes"]).ok();
    run(&["state", "pull", "lab"]).ok();
    for address in
        ["lab/machine/lab-cp-1", "lab/secret/storage-storage-api", "lab/secret/flux-system-sops-age"]
    {
        run(&["state", "show", address]).ok();
    }
    run(&["drift"]).ok();
    let copies = std::fs::read_dir(lab.repo.file(".strata/snapshots")).unwrap().count();
    assert!(copies > 0, "an etcd snapshot was made before the control plane was changed");
    run(&["-v", "destroy", "--yes"]).ok();
    search(&lab, &outputs);
}
