//! A cluster on machines that nobody made: they wait in maintenance mode, and are given back to it. Its datasets are on a TrueNAS.

use serde_json::json;
use strata_sim::{Pace, SimOptions, TRUENAS_API_KEY, TRUENAS_HOST};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

const CLUSTER: &str = r#"
metadata: {name: metal, environment: dev}
cluster:
  talos: {version: v1.13.9, schematic: {extensions: [siderolabs/iscsi-tools]}, installDisk: /dev/nvme0n1}
  kubernetes: {version: v1.36.3}
  network: {cidr: 198.51.100.0/24, gateway: 198.51.100.1, vip: 198.51.100.10}
  topology:
    controlPlane: {count: 3, addresses: 198.51.100.11-198.51.100.13}
    workers: {count: 1, addresses: 198.51.100.14-198.51.100.19}
storage:
  truenas:
    target: nas
    datasets: [tank/k8s/metal, {name: tank/k8s/db, properties: {compression: LZ4, quota: 10737418240}}]
"#;

struct Metal {
    sim: TestSim,
    repo: Repo,
    strata: Strata,
}

impl Metal {
    fn new() -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::empty();
        let strata =
            Strata::new(BINARY, &repo).env("NAS_KEY", TRUENAS_API_KEY).env("SSL_CERT_FILE", "network-ca.pem");
        strata.run(&["init", "."]).ok();
        repo.write("network-ca.pem", sim.network_ca_pem());
        repo.write("clusters/metal/cluster.yaml", CLUSTER);
        let settings = format!(
            "repository: metal1\nstate: {{backend: local}}\nsecrets: [{{sops: secrets.sops.yaml}}]\nproxy: http://{}\ntargets:\n  nas:\n    truenas: {{endpoint: \"https://{TRUENAS_HOST}\", apiKey: {{env: NAS_KEY}}, tls: {{fingerprint: \"{}\"}}}}\n",
            sim.gateway(),
            sim.fingerprint(),
        );
        repo.write("strata.yaml", &settings);
        for number in 1..=4 {
            let metal = json!({"name": format!("m{number}"), "addresses": [format!("198.51.100.1{number}")], "version": "v1.13.9"});
            assert_eq!(sim.control().change(&json!({"talos": {"metal": metal}}))["status"], 200);
        }
        Self { sim, repo, strata }
    }

    fn datasets(&self) -> Vec<String> {
        let export = self.sim.export();
        let datasets = export["truenas"]["datasets"].as_array().unwrap();
        datasets.iter().map(|dataset| dataset["name"].as_str().unwrap().to_owned()).collect()
    }

    fn members(&self) -> Vec<String> {
        let export = self.sim.export();
        let clusters = export["talos"]["etcd-clusters"].as_array().unwrap();
        assert!(clusters.len() <= 1, "{clusters:?}");
        let members = clusters.iter().flat_map(|cluster| cluster["members"].as_array().unwrap());
        members.map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    }

    fn installed(&self) -> usize {
        let export = self.sim.export();
        export["talos"]["machines"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|machine| !machine["config"].is_null())
            .count()
    }
}

#[test]
fn machines_are_taken_and_given_back_and_datasets_with_anything_in_them_stay() {
    let metal = Metal::new();
    let run = |arguments: &[&str]| metal.strata.run(arguments);
    run(&["apply", "--yes"]).ok();
    run(&["plan", "--detailed-exitcode"]).ok();
    assert_eq!(metal.members(), ["metal-cp-1", "metal-cp-2", "metal-cp-3"]);
    let plan = run(&["plan", "--destroy"]).stdout;
    for words in [
        "Talos v1.13.9 on 198.51.100.11, reset: its configuration and its data are wiped",
        "etcd, bootstrapped once, goes with its machines",
        "removed from state: the image factory keeps it",
        "dataset tank/k8s/db, deleted, as it is empty",
    ] {
        assert!(plan.contains(words), "no `{words}` in:\n{plan}");
    }
    assert_eq!(metal.datasets(), ["tank", "tank/k8s", "tank/k8s/db", "tank/k8s/metal"]);

    metal.repo.edit("clusters/metal/cluster.yaml", "controlPlane: {count: 3", "controlPlane: {count: 1");
    metal.repo.edit("clusters/metal/cluster.yaml", "compression: LZ4, ", "");
    run(&["apply", "--yes"]).ok();
    run(&["plan", "--detailed-exitcode"]).ok();
    assert_eq!((metal.members(), metal.installed()), (vec!["metal-cp-1".to_owned()], 2));

    let file =
        json!({"truenas": {"file": {"dataset": "tank/k8s/db", "name": "precious", "bytes": 5_000_000}}});
    metal.sim.control().change(&file);
    let refused = run(&["destroy", "--yes"]).code(3);
    assert!(
        refused.all().contains("dataset `tank/k8s/db` would be deleted, and it is not empty"),
        "{}",
        refused.all()
    );
    assert_eq!(metal.installed(), 2, "nothing was begun");

    run(&["state", "rm", "metal/dataset/tank-k8s-db"]).ok();
    run(&["destroy", "--yes"]).ok();
    assert_eq!((metal.members().len(), metal.installed()), (0, 0));
    assert_eq!(metal.datasets(), ["tank", "tank/k8s", "tank/k8s/db"], "what was forgotten stays");
}

#[test]
fn a_pinned_machine_must_show_its_key() {
    const FILE: &str = "clusters/metal/cluster.yaml";
    let metal = Metal::new();
    let report = metal.sim.control().call("GET", "/_sim/talos", None);
    let machines = report["machines"].as_array().unwrap();
    let key_of = |name: &str| {
        let machine = machines.iter().find(|machine| machine["machine"] == format!("metal/{name}")).unwrap();
        machine["fingerprint"].as_str().unwrap().to_owned()
    };
    let (right, wrong) = (key_of("m1"), key_of("m2"));
    assert_ne!(right, wrong);
    let pinned =
        |key: &str| format!("  nodes: {{metal-cp-1: {{maintenanceFingerprint: \"{key}\"}}}}\nstorage:");
    metal.repo.edit(FILE, "\nstorage:", &format!("\n{}", pinned(&wrong)));
    let before = metal.sim.export();
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        let refused = metal.strata.run(arguments).code(3);
        for words in ["the machine at 198.51.100.11 is not the pinned one", &right, &wrong, "console"] {
            assert!(refused.all().contains(words), "no `{words}` in:\n{}", refused.all());
        }
    }
    assert_eq!(metal.sim.export(), before, "a machine that is not the pinned one is told nothing");
    metal.repo.edit(FILE, &wrong, &right);
    metal.strata.run(&["apply", "--yes"]).ok();
    metal.strata.run(&["plan", "--detailed-exitcode"]).ok();
    metal.repo.edit(FILE, &right, "AB:CD");
    let invalid = metal.strata.run(&["validate"]).code(1);
    assert!(invalid.all().contains("SHA-256 of a public key in base64"), "{}", invalid.all());
}

#[test]
fn a_machine_of_metal_goes_to_another_address() {
    const FILE: &str = "clusters/metal/cluster.yaml";
    let metal = Metal::new();
    let run = |arguments: &[&str]| metal.strata.run(arguments);
    run(&["apply", "--yes"]).ok();
    metal.repo.edit(
        FILE,
        "\nstorage:",
        "\n  nodes:\n    metal-cp-2: {address: 198.51.100.22}\n    metal-worker-1: {address: 198.51.100.24}\nstorage:",
    );
    run(&["apply", "--yes"]).ok();
    run(&["plan", "--detailed-exitcode"]).ok();
    run(&["talos", "health", "metal"]).ok();
    let report = metal.sim.control().call("GET", "/_sim/talos", None);
    let members = report["etcd-clusters"][0]["members"].as_array().unwrap();
    assert_eq!(members[1]["address"], "198.51.100.22", "{report:#}");
}
