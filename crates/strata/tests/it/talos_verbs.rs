//! `strata talos` on a cluster of the repository: how it is, its files, upgrades, resets, and the way back from a lost etcd.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Output, Repo, Strata, TestSim};

use crate::world::BINARY;

const CLUSTER: &str = "clusters/homelab/cluster.yaml";

/// The homelab example, with so many control planes, booted.
struct Lab {
    sim: TestSim,
    repo: Repo,
}

impl Lab {
    fn new(control_planes: u32) -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::empty();
        let lab = Self { sim, repo };
        lab.strata(&["init", "--example", "homelab", "."]).ok();
        lab.repo.edit("strata.yaml", "https://127.0.0.1:18006", &lab.sim.endpoint());
        lab.repo.edit("strata.yaml", "http://127.0.0.1:18008", &format!("http://{}", lab.sim.gateway()));
        let count = format!("controlPlane: {{count: {control_planes},");
        lab.repo.edit(CLUSTER, "controlPlane: {count: 1,", &count);
        lab.strata(&["apply", "homelab", "--yes"]).ok();
        lab
    }

    fn strata(&self, arguments: &[&str]) -> Output {
        Strata::new(BINARY, &self.repo).run(arguments)
    }

    fn settled(&self) {
        self.strata(&["plan", "homelab", "--detailed-exitcode"]).ok();
        self.strata(&["talos", "health", "homelab"]).ok();
    }

    /// The VM of a node is gone, disks and all.
    fn lose(&self, name: &str) {
        let guests = self.sim.export();
        let guest = guests["guests"].as_array().unwrap().iter().find(|guest| guest["config"]["name"] == name);
        let (node, vmid) =
            (guest.unwrap()["node"].as_str().unwrap(), guest.unwrap()["vmid"].as_i64().unwrap());
        let control = self.sim.control();
        control.change(&json!({"power": {"vmid": vmid, "running": false}}));
        let path = format!("/nodes/{node}/qemu/{vmid}");
        let answer =
            control.change(&json!({"method": "DELETE", "path": path, "params": {"purge": 1, "destroy-unreferenced-disks": 1}}));
        assert_eq!(answer["status"], 200, "{answer}");
    }

    fn talos(&self) -> Value {
        self.sim.control().call("GET", "/_sim/talos", None)
    }

    /// The newest etcd snapshot; a change of a control plane makes one.
    fn snapshot(&self) -> String {
        let folder = std::fs::read_dir(self.repo.file(".strata/snapshots")).unwrap();
        let mut copies: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        copies.sort();
        copies.pop().unwrap().display().to_string()
    }

    /// A change that disturbs control planes, so that there is an etcd snapshot.
    fn copy(&self) {
        let patch = "patches: [{machine: {sysctls: {net.core.somaxconn: \"1024\"}}}]";
        self.repo.edit(CLUSTER, "  kubernetes: {", &format!("  {patch}\n  kubernetes: {{"));
        self.strata(&["apply", "homelab", "--yes"]).ok();
    }

    fn mode(&self, path: &str) -> u32 {
        std::fs::metadata(self.repo.file(path)).unwrap().permissions().mode() & 0o777
    }
}

fn events(output: &Output) -> Vec<Value> {
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every etcd that some disk holds data of: the cluster that it belongs to, and its members.
fn etcd_clusters(talos: &Value) -> Vec<(String, usize)> {
    let clusters = talos["etcd-clusters"].as_array().unwrap().iter();
    clusters
        .map(|etcd| (etcd["cluster"].as_str().unwrap().to_owned(), etcd["members"].as_array().unwrap().len()))
        .collect()
}

#[test]
fn health_files_and_reset() {
    let lab = Lab::new(3);
    let health = lab.strata(&["talos", "health", "homelab"]).ok();
    for said in ["homelab-cp-1", "controlplane", "192.0.2.41", "v1.13.9", "3 members", "Kubernetes: v1.36.3"]
    {
        assert!(health.stdout.contains(said), "{said}: {}", health.all());
    }
    assert!(health.stdout.lines().all(|line| line.chars().count() <= 80), "{}", health.stdout);
    let told = events(&lab.strata(&["--json", "talos", "health", "homelab"]).ok());
    let of = |kind: &str| told.iter().filter(|event| event["event"] == kind).count();
    assert_eq!((of("node"), of("etcd-member"), of("health")), (4, 3, 1));
    // One node alone does not go back in time.
    let refused = lab.strata(&["backup", "restore", "homelab/vm/homelab-cp-1", "latest", "--yes"]).code(3);
    assert!(refused.stderr.contains("is a node of a cluster"), "{}", refused.all());

    lab.strata(&["talos", "kubeconfig", "homelab"]).ok();
    assert_eq!(lab.mode("homelab.kubeconfig"), 0o600);
    let text = lab.repo.read("homelab.kubeconfig");
    assert!(text.contains("server: https://192.0.2.40:6443") && text.contains("admin@homelab"), "{text}");
    let settings = lab.repo.read("strata.yaml");
    let proxy =
        settings.lines().find_map(|line| line.strip_prefix("proxy: ")).map(|proxy| proxy.trim_matches('"'));
    assert_eq!(text.lines().find_map(|line| line.trim().strip_prefix("proxy-url: ")), proxy, "{text}");
    let printed = lab.strata(&["talos", "kubeconfig", "homelab", "--out", "-"]).ok();
    assert!(printed.stdout.starts_with("apiVersion: v1") && printed.stdout.contains("client-key-data"));
    lab.strata(&["talos", "config", "homelab", "--out", "files"]).ok();
    for file in ["homelab-cp-1.yaml", "homelab-cp-3.yaml", "homelab-worker-1.yaml", "talosconfig"] {
        assert_eq!(lab.mode(&format!("files/{file}")), 0o600);
    }
    assert!(lab.repo.read("files/homelab-worker-1.yaml").contains("type: worker"));
    assert!(lab.repo.read("files/talosconfig").contains("192.0.2.43"));
    let clash = lab.strata(&["talos", "config", "homelab", "--name", "x"]).code(64);
    assert!(clash.stderr.contains("cannot be used with"), "{}", clash.all());

    lab.strata(&["talos", "reset", "homelab", "homelab-cp-2"]).code(3);
    lab.strata(&["talos", "reset", "homelab", "nobody", "--yes"]).code(1);
    let reset = lab.strata(&["talos", "reset", "homelab", "homelab-cp-2", "--yes"]).ok();
    assert!(reset.stdout.contains("strata apply homelab"), "{}", reset.all());
    let sick = lab.strata(&["talos", "health", "homelab"]).code(1);
    assert!(sick.stdout.contains("maintenance mode") && sick.stdout.contains("2 members"), "{}", sick.all());
    lab.strata(&["apply", "homelab", "--yes"]).ok();
    lab.settled();
    assert_eq!(etcd_clusters(&lab.talos()).len(), 1);
}

#[test]
fn an_upgrade_edits_the_source_and_rolls() {
    let lab = Lab::new(1);
    let shown = lab.strata(&["talos", "upgrade", "homelab"]).ok();
    assert!(shown.stdout.contains("asked for: Talos v1.13.9, Kubernetes v1.36.3"), "{}", shown.all());
    lab.repo.edit(CLUSTER, "version: v1.13.9", "version: \"v1.13.9\" # pinned");
    let before = lab.repo.read(CLUSTER);
    for (arguments, said) in [
        (&["--to", "v1.15.0"][..], "v1.15.0 is not known"),
        (&["--to", "v1.12.0"][..], "cannot go back"),
        (&["--kubernetes", "v1.38.0"][..], "one minor version at a time"),
        (&["--to", "v1.13.10"][..], "nobody to ask"),
    ] {
        let refused = lab.strata(&[&["talos", "upgrade", "homelab"][..], arguments].concat()).code(3);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.all());
        assert_eq!(lab.repo.read(CLUSTER), before);
    }
    lab.strata(&["talos", "upgrade", "homelab", "--to", "v1.14.0", "--yes"]).ok();
    assert_eq!(lab.repo.read(CLUSTER), before.replace("\"v1.13.9\" # pinned", "\"v1.14.0\" # pinned"));
    lab.settled();
    let shown = lab.strata(&["talos", "upgrade", "homelab"]).ok();
    assert_eq!(shown.stdout.matches("Talos v1.14.0").count(), 3, "{}", shown.all());
}

#[test]
fn the_only_control_plane_is_never_reset_and_comes_back_from_a_copy() {
    let lab = Lab::new(1);
    let refused = lab.strata(&["talos", "reset", "homelab", "homelab-cp-1", "--yes"]).code(3);
    assert!(refused.stderr.contains("last member of etcd"), "{}", refused.all());
    lab.copy();
    let copy = lab.snapshot();
    let needless = lab.strata(&["talos", "restore", "homelab", "--snapshot", &copy, "--yes"]).code(3);
    assert!(needless.stderr.contains("nothing has to be restored"), "{}", needless.all());
    lab.lose("homelab-cp-1");
    lost(&lab);
    lab.repo.write("damaged", "-----BEGIN AGE ENCRYPTED FILE-----\nnonsense");
    lab.strata(&["talos", "restore", "homelab", "--snapshot", "damaged", "--yes"]).code(1);
    lab.repo.write("short", "not an etcd snapshot at all, and without its checksum");
    let short = lab.strata(&["talos", "restore", "homelab", "--snapshot", "short", "--yes"]).code(1);
    assert!(short.stderr.contains("not a complete etcd snapshot"), "{}", short.all());
    lab.strata(&["talos", "restore", "homelab", "--snapshot", &copy, "--yes"]).ok();
    lab.settled();
}

/// Plan and apply refuse, and say what helps.
fn lost(lab: &Lab) {
    for arguments in [&["plan", "homelab"][..], &["apply", "homelab", "--yes"]] {
        let refused = lab.strata(arguments).code(3);
        assert!(refused.all().contains("strata talos restore homelab --snapshot"), "{}", refused.all());
    }
    lab.strata(&["talos", "health", "homelab"]).code(1);
}

fn lose_and_restore(names: &[&str]) {
    let lab = Lab::new(3);
    lab.copy();
    let before = etcd_clusters(&lab.talos());
    let copy = lab.snapshot();
    names.iter().for_each(|name| lab.lose(name));
    lost(&lab);
    lab.strata(&["talos", "restore", "homelab", "--snapshot", &copy, "--yes"]).ok();
    lab.settled();
    assert_eq!(etcd_clusters(&lab.talos()), before, "one etcd with all three, of the same cluster");
}

#[test]
fn all_control_planes_lost() {
    lose_and_restore(&["homelab-cp-1", "homelab-cp-2", "homelab-cp-3"]);
}

#[test]
fn the_majority_lost() {
    lose_and_restore(&["homelab-cp-2", "homelab-cp-3"]);
}

/// Etcd comes back as it was when it was copied. What was made since then is made again, also the Node of a worker that the copy
/// does not know.
#[test]
fn a_copy_that_is_older_than_a_node() {
    let lab = Lab::new(1);
    let maps = "/api/v1/namespaces/default/configmaps";
    let kubernetes = |method: &str, path: &str, body: Value| {
        let call = json!({"method": method, "path": path, "body": body});
        lab.sim.control().change(&json!({"kubernetes": {"call": call}}))
    };
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    kubernetes("POST", maps, map("old"));
    lab.copy();
    let copy = lab.snapshot();
    kubernetes("POST", maps, map("new"));
    kubernetes("DELETE", "/api/v1/namespaces/flux-system/secrets/sops-age", Value::Null);
    lab.repo.edit(CLUSTER, "workers: {count: 1,", "workers: {count: 2,");
    lab.strata(&["apply", "homelab", "--yes"]).ok();
    lab.lose("homelab-cp-1");
    lost(&lab);
    lab.strata(&["talos", "restore", "homelab", "--snapshot", &copy, "--yes"]).ok();
    lab.settled();
    let names = kubernetes("GET", maps, Value::Null).to_string();
    assert!(names.contains("\"old\"") && !names.contains("\"new\""), "{names}");
}
