//! A cluster that OpenTofu configured and began is taken over: its secrets, its machines as they are, and an empty plan.

use serde_json::{Value, json};

use super::lab::{Lab, Shape, keys};

/// What siderolabs/talos keeps of the cluster, in the form of its version 0.8.
pub(crate) fn state(lab: &Lab, nodes: &[(&str, &str)]) -> String {
    let bundle = mapping(&keys().plain);
    let pair =
        |name: &str| json!({"cert": bundle["certs"][name]["crt"], "key": bundle["certs"][name]["key"]});
    let secrets = json!({
        "cluster": bundle["cluster"],
        "secrets": {
            "bootstrap_token": bundle["secrets"]["bootstraptoken"],
            "secretbox_encryption_secret": bundle["secrets"]["secretboxencryptionsecret"],
            "aescbc_encryption_secret": null,
        },
        "trustdinfo": bundle["trustdinfo"],
        "certs": {
            "etcd": pair("etcd"), "k8s": pair("k8s"), "k8s_aggregator": pair("k8saggregator"), "os": pair("os"),
            "k8s_serviceaccount": {"key": bundle["certs"]["k8sserviceaccount"]["key"]},
        },
    });
    let managed = |kind: &str, name: &str, instances: Vec<Value>| {
        json!({"module": "module.talos[0]", "mode": "managed", "type": kind, "name": name,
            "provider": "provider[\"example/siderolabs/talos\"]", "instances": instances})
    };
    let told = nodes.iter().map(|(name, address)| {
        let config = lab.repo.read(&format!("told/{name}.yaml"));
        json!({"index_key": name, "schema_version": 1,
            "attributes": {"id": "machine_configuration_apply", "node": address, "endpoint": address, "machine_configuration": config}})
    });
    let first =
        json!({"attributes": {"id": "machine_bootstrap", "node": nodes[0].1, "endpoint": nodes[0].1}});
    let kubeconfig =
        json!({"attributes": {"id": "x", "node": nodes[0].1, "kubeconfig_raw": "MARKER-kubeconfig"}});
    json!({"version": 4, "terraform_version": "1.12.6", "serial": 3, "lineage": "x", "outputs": {}, "resources": [
        managed("talos_machine_secrets", "this", vec![json!({"schema_version": 1, "attributes": {"id": "machine_secrets", "talos_version": "v1.13.9", "machine_secrets": secrets}})]),
        managed("talos_machine_configuration_apply", "this", told.collect()),
        managed("talos_machine_bootstrap", "this", vec![first]),
        managed("talos_cluster_kubeconfig", "this", vec![kubeconfig]),
    ]})
    .to_string()
}

/// Nested mappings with one value a line, as a bundle is written.
fn mapping(text: &str) -> Value {
    let mut root = json!({});
    let mut path: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        path.retain(|(at, _)| *at < depth);
        let mut place = &mut root;
        for (_, key) in &path {
            place = &mut place[key.as_str()];
        }
        let value = value.trim().trim_matches('"');
        if value.is_empty() {
            place[key] = json!({});
            path.push((depth, key.to_owned()));
        } else {
            place[key] = json!(value);
        }
    }
    root
}

#[test]
fn a_cluster_of_opentofu_keeps_its_machines_as_they_are() {
    let told = Shape {
        patches: vec!["machine: {sysctls: {net.core.somaxconn: \"65535\"}}".to_owned()],
        ..Shape::new(1, 1)
    };
    let lab = Lab::booted(&told);
    lab.run(&["talos", "config", "lab", "--out", "told"]).ok();
    let state = state(&lab, &[("lab-cp-1", "192.0.2.41"), ("lab-worker-1", "192.0.2.51")]);
    // Now as somebody who comes from OpenTofu: no state, no secrets, and a source that knows nothing of the patch.
    std::fs::remove_dir_all(lab.repo.file("told")).unwrap();
    std::fs::remove_dir_all(lab.repo.file(".strata")).unwrap();
    lab.repo.remove("clusters/lab/talos.sops.yaml");
    lab.source(&Shape::new(1, 1));
    lab.repo.write("talos.tfstate", &state);
    let before = lab.talos();
    let imported = lab.run(&["import", "--state", "talos.tfstate"]).ok();
    assert!(
        imported.stdout.contains(
            "clusters/lab/talos.sops.yaml, encrypted  from module.talos[0].talos_machine_secrets.this"
        ),
        "{}",
        imported.all()
    );
    assert!(imported.stdout.contains("the plan of these stacks is empty"), "{}", imported.all());
    assert!(lab.repo.read("clusters/lab/nodes.yaml").contains("net.core.somaxconn"));
    let plan = lab.run(&["plan", "--detailed-exitcode"]).ok();
    assert!(plan.stdout.contains("nothing to do"), "{}", plan.all());
    assert_eq!(lab.talos(), before, "the machines were left alone");
    // Nothing secret is anywhere in the clear.
    lab.repo.remove("talos.tfstate");
    let bundle = mapping(&keys().plain);
    let secret = bundle["secrets"]["bootstraptoken"].as_str().unwrap();
    for (path, bytes) in lab.repo.all_files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(secret) && !text.contains("MARKER-kubeconfig"),
            "{} holds a secret",
            path.display()
        );
    }
    // Once the patch is removed, Strata configures the machine by itself again.
    lab.repo.remove("clusters/lab/nodes.yaml");
    assert!(lab.run(&["plan"]).ok().stdout.contains("2 to change"));
    lab.repo.write("talos.tfstate", &state);
    let again = lab.run(&["import", "--state", "talos.tfstate"]).ok();
    assert!(again.stdout.contains("0 taken over, 3 known before"), "{}", again.all());
    // The secrets of another cluster are never overwritten.
    lab.repo.write("talos.tfstate", &state.replace(secret, "abcdef.0123456789abcdef"));
    let other = lab.run(&["import", "--state", "talos.tfstate"]).code(3);
    assert!(other.stderr.contains("holds other secrets"), "{}", other.all());
}
