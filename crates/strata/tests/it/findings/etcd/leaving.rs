//! Control planes that leave, in an order that etcd can bear, and what is left where a run dies in between.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::{NAMES, etcd, kubernetes, power, says};
use crate::cluster::lab::{FILE, Lab, Shape};

/// Three become one while the last of them is dead: it goes first, whichever of the two it is.
#[test]
fn f13_dead_members_go_first() {
    for dead in ["lab-cp-3", "lab-cp-2"] {
        let lab = Lab::booted(&Shape::new(3, 0));
        power(&lab, dead, false);
        let (node, vmid) = lab.vm(dead);
        lab.lose(&node, vmid);
        let smaller = Shape::new(1, 0);
        lab.becomes(&smaller);
        lab.assert_is(&smaller, dead);
        lab.assert_settled(dead);
        assert_eq!(etcd(&lab), (1, vec!["lab-cp-1".to_owned()]), "{dead}");
    }
}

/// What cannot be done is told by the plan: the one that stays is the one that is dead.
#[test]
fn f13_the_plan_tells_what_it_cannot_do() {
    let lab = Lab::booted(&Shape::new(3, 0));
    lab.change(&json!({"cut-off": {"machine": "lab-cp-1", "cut_off": true}}));
    lab.source(&Shape::new(1, 0));
    let before = etcd(&lab);
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        says(&lab.run(arguments).code(3), &["lab-cp-1"]);
    }
    assert_eq!(etcd(&lab), before);
}

/// A reset dies after the member has left etcd and before the disk is wiped: the next apply brings the node back.
#[test]
fn f14_a_kill_between_leaving_etcd_and_the_reset_converges() {
    let shape = Shape::new(3, 0);
    for (kind, path) in
        [("hold-after", "/talos/192.0.2.42/*/EtcdLeaveCluster"), ("hold-before", "/talos/192.0.2.42/*/Reset")]
    {
        let lab = Lab::booted(&shape);
        let fault = json!({"kind": kind, "path": path});
        let reset = ["talos", "reset", "lab", "lab-cp-2", "--yes"];
        assert!(lab.strata().kill_at(&lab.sim.control(), &fault, &reset).struck, "{path}");
        let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
        says(&plan, &["lab-cp-2", "left_etcd"]);
        lab.converges(2);
        lab.assert_is(&shape, path);
        lab.assert_sound(path);
        lab.assert_settled(path);
    }
}

/// A lost state is no reason to wipe the only control plane, nor to take a member away without asking the others.
#[test]
fn f14_a_reset_without_the_state_asks_etcd() {
    for (count, name) in [(1, NAMES[0]), (3, NAMES[1])] {
        let shape = Shape::new(count, 0);
        let lab = Lab::booted(&shape);
        super::remember(&lab, "precious");
        super::lose_state(&lab);
        let before = etcd(&lab);
        let reset = lab.run(&["talos", "reset", "lab", name, "--yes"]);
        if count == 1 {
            assert_eq!(reset.code, 3, "{}", reset.all());
            says(&reset, &["is the last member of etcd"]);
            assert_eq!(etcd(&lab), before);
            continue;
        }
        assert_eq!(reset.code, 0, "{}", reset.all());
        let members = lab.talos()["etcd-clusters"][0]["members"].as_array().unwrap().len();
        assert_eq!(members, 2, "it left etcd before it was wiped: {:#}", lab.talos());
        // Two of three are left; one more would be one too many.
        super::reset(&lab, &NAMES[..1]);
        super::lose_state(&lab);
        let refused = lab.run(&["talos", "reset", "lab", NAMES[2], "--yes"]);
        assert_eq!(refused.code, 3, "{}", refused.all());
        assert_eq!(etcd(&lab).1, [NAMES[2]], "{}", refused.all());
    }
}

/// Another `idBase` would replace every VM: refused, and etcd is not said to be lost.
#[test]
fn f18_another_id_base_does_not_say_that_etcd_is_lost() {
    let lab = Lab::booted(&Shape::new(3, 0));
    lab.repo.edit(FILE, "idBase: 800", "idBase: 900");
    let before = lab.machines();
    for arguments in [&["plan"][..], &["apply", "--yes"]] {
        let refused = lab.run(arguments).code(3);
        says(&refused, &["would be replaced in one plan", "etcd is healthy now", "idBase"]);
        for wrong in ["is lost", "has no majority"] {
            assert!(!refused.all().contains(wrong), "`{wrong}` is not true:\n{}", refused.all());
        }
    }
    assert_eq!(lab.machines(), before);
}

/// A wiped disk is no dead end: the next apply replaces the VM, and the node joins again.
#[test]
fn f18_a_node_whose_disk_was_wiped_is_made_again() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    for name in ["lab-worker-1", NAMES[1]] {
        let reset = lab.run(&["talos", "reset", "lab", name, "--wipe", "disk", "--yes"]).ok();
        says(&reset, &["nothing left to boot from", "`strata apply lab` replaces its VM"]);
        let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
        says(&plan, &["its disk was wiped", name]);
        lab.converges(2);
        lab.assert_is(&shape, name);
        lab.assert_settled(name);
        lab.assert_sound(name);
    }
}

/// A run that dies after the wipe has told nobody; and one that dies before it has wiped nothing.
#[test]
fn f18_a_kill_around_the_wipe_of_a_disk_is_no_dead_end() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    for kind in ["hold-after", "hold-before"] {
        let fault = json!({"kind": kind, "path": "/talos/192.0.2.51/*/Reset"});
        let reset = ["talos", "reset", "lab", "lab-worker-1", "--wipe", "disk", "--yes"];
        assert!(lab.strata().kill_at(&lab.sim.control(), &fault, &reset).struck, "{kind}");
        if kind == "hold-after" {
            super::until(&lab, "lab-worker-1", "no-system");
            says(&lab.run(&["plan", "--detailed-exitcode"]).code(2), &["its disk was wiped", "lab-worker-1"]);
        }
        lab.converges(2);
        lab.assert_is(&shape, kind);
        lab.assert_settled(kind);
    }
    // What was noted before a wipe that never came does not count later.
    lab.change(&json!({"cut-off": {"machine": "lab-worker-1", "cut_off": true}}));
    let refused = lab.run(&["plan"]).code(3);
    assert!(!refused.all().contains("wiped"), "{}", refused.all());
}

/// A kubelet registers when it starts: a Node that was deleted, by a reset that died or by a person, comes back by an apply.
#[test]
fn f14_a_node_that_kubernetes_lost_is_registered_again() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    let names =
        |lab: &Lab| super::kubernetes(lab, "GET", "/api/v1/nodes", serde_json::Value::Null).to_string();
    for name in ["lab-worker-1", "lab-cp-1"] {
        let reboots = lab.talos()["reboots"].clone();
        super::kubernetes(&lab, "DELETE", &format!("/api/v1/nodes/{name}"), serde_json::Value::Null);
        assert!(!names(&lab).contains(&format!("\"{name}\"")), "{name}");
        let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
        says(&plan, &[name, "unregistered"]);
        lab.apply();
        assert!(names(&lab).contains(&format!("\"{name}\"")), "{name}");
        assert_eq!(lab.talos()["reboots"], reboots, "{name} is not rebooted for that");
        lab.assert_settled(name);
    }
}

/// Somebody who begins another cluster is told what that costs.
#[test]
fn b4_a_new_cluster_says_that_all_data_are_lost() {
    let lab = Lab::booted(&Shape::new(1, 0));
    super::remember(&lab, "precious");
    super::reset(&lab, &NAMES[..1]);
    let asked = lab.run(&["apply", "--new-cluster"]).code(3);
    says(&asked, &["all data of the cluster `lab` is lost", "nobody to ask"]);
    assert!(!asked.all().contains("somebody else deleted"), "{}", asked.all());
    lab.run(&["apply", "--new-cluster", "--yes"]).ok();
    assert_eq!(super::etcd(&lab).1.len(), 1, "the new etcd runs on the one control plane");
    lab.assert_settled("as a new cluster");
}

/// Rotated keys are rotated everywhere: the secrets of clusters are files of the repository too.
#[test]
fn b4_rotate_includes_the_secrets_of_clusters() {
    let lab = Lab::booted(&Shape::new(1, 0));
    let file = "clusters/lab/talos.sops.yaml";
    let before = lab.repo.read(file);
    says(&lab.run(&["secrets", "rotate"]).ok(), &[file]);
    assert_ne!(lab.repo.read(file), before);
    lab.assert_settled("with new keys of the file");
}

/// A budget holds the only pod of a node: whoever reads a log is told so, and by what, while the run waits.
#[test]
fn f18_a_blocked_drain_is_told_without_a_terminal() {
    let lab = Lab::booted(&Shape::new(1, 1));
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]},
        }},
    });
    kubernetes(&lab, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    });
    kubernetes(&lab, "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget);
    let own = "  nodes: {lab-worker-1: {schematic: {extensions: [siderolabs/util-linux-tools]}}}\nproxmox:\n  target";
    lab.repo.edit(FILE, "proxmox:\n  target", own);
    let mut child = lab
        .strata()
        .command(&["apply", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.by_ref().any(|line| {
        said.push_str(&line);
        said.push('\n');
        line.contains("lab/machine/lab-worker-1") && line.contains("disruption budget")
    });
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web";
    kubernetes(&lab, "DELETE", path, serde_json::Value::Null);
    lines.for_each(|line| said.push_str(&line));
    assert!(told, "{said}");
    assert!(child.wait().unwrap().success(), "{said}");
    lab.assert_settled("the budget is gone");
}

/// The request of a reset is lost on its way, after the member has left: it is sent again, and nobody waits for what was never asked.
#[test]
fn f14_a_reset_whose_request_got_lost_is_sent_again() {
    let shape = Shape::new(3, 0);
    for kind in ["cut", "lost"] {
        let lab = Lab::booted(&shape);
        lab.repo.edit(FILE, "  kubernetes: {", "  timeouts: {reboot: 30s}\n  kubernetes: {");
        lab.sim.control().fault(&json!({"kind": kind, "path": "/talos/192.0.2.42/*/Reset"}));
        lab.run(&["talos", "reset", "lab", "lab-cp-2", "--yes"]).ok();
        assert_eq!(etcd(&lab).1.len(), 2, "{kind}: it was wiped");
        lab.converges(2);
        lab.assert_is(&shape, kind);
        lab.assert_sound(kind);
    }
}
