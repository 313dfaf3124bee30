//! What goes wrong with nodes, and how `apply` goes on after it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;
use sha2::{Digest, Sha256};

use super::kill::kill_apply;
use super::lab::{FILE, Lab, Shape, keys};
use crate::kill::assert_same;

#[test]
fn a_lost_control_plane_is_rebuilt_in_its_cluster() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    for name in ["lab-cp-1", "lab-worker-1"] {
        let (node, vmid) = lab.vm(name);
        lab.lose(&node, vmid);
        let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
        assert!(plan.stdout.contains(name) && plan.stdout.contains("2 to create"), "{}", plan.all());
        lab.apply();
        lab.assert_sound(name);
        lab.assert_is(&shape, name);
        lab.assert_settled(name);
        assert_eq!(lab.talos()["etcd-clusters"][0]["cluster"], json!(keys().cluster_id));
    }
}

#[test]
fn a_node_that_cannot_be_reached_is_a_problem_and_then_none() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    for name in ["lab-cp-2", "lab-worker-1"] {
        lab.change(&json!({"cut-off": {"machine": name, "cut_off": true}}));
        let mut changed = shape.clone();
        changed.patches.push(format!("machine: {{nodeLabels: {{seen: {name}}}}}"));
        lab.source(&changed);
        let before = lab.machines();
        let refused = lab.run(&["apply", "--yes"]).code(3);
        assert!(refused.all().contains(&format!("lab/machine/{name}")), "{}", refused.all());
        assert!(refused.all().contains("cannot be reached"), "{}", refused.all());
        assert!(refused.all().contains("bring it back, or remove it from the source"), "{}", refused.all());
        assert_same(&lab.machines(), &before, name);
        lab.change(&json!({"cut-off": {"machine": name, "cut_off": false}}));
        lab.apply();
        lab.assert_settled(name);
        lab.assert_sound(name);
    }
}

#[test]
fn certificates_that_are_not_valid_are_told_and_apply_goes_on_after() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    let wrong = [
        (
            json!({"expired": {"machine": "lab-cp-1", "expired": true}}),
            json!({"expired": {"machine": "lab-cp-1", "expired": false}}),
            "its certificate has expired",
        ),
        (
            json!({"skew": {"machine": "lab-worker-1", "seconds": 864_000_000}}),
            json!({"skew": {"machine": "lab-worker-1", "seconds": 0}}),
            "not valid",
        ),
    ];
    let mut changed = shape.clone();
    for (number, (breaks, heals, said)) in wrong.into_iter().enumerate() {
        changed.patches.push(format!("machine: {{nodeLabels: {{drill: \"{number}\"}}}}"));
        lab.source(&changed);
        lab.change(&breaks);
        let failed = lab.run(&["apply", "--yes"]);
        assert_ne!(failed.code, 0, "{breaks}: {}", failed.all());
        assert!(failed.all().contains(said), "{breaks}: {}", failed.all());
        assert!(failed.all().contains("clock"), "the hint speaks of clocks: {}", failed.all());
        lab.change(&heals);
        lab.apply();
        lab.assert_settled(said);
    }
}

#[test]
fn a_configuration_that_somebody_changed_is_corrected() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    // Half of the nodes have a change, then the process dies; the source goes back.
    let mut changed = shape.clone();
    changed.patches.push("machine: {sysctls: {vm.max_map_count: \"262144\"}}".to_owned());
    lab.source(&changed);
    let control = lab.sim.control();
    let fault = control.fault(&json!({"kind": "hold-after", "path": "/talos/*/ApplyConfiguration"}));
    let mut child = lab.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(fault, 60.0));
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    lab.source(&shape);
    lab.apply();
    lab.assert_settled("back again");
    let fresh = Lab::booted(&shape);
    let digests = |lab: &Lab| -> Vec<String> {
        let talos = lab.talos();
        talos["machines"].as_array().unwrap().iter().map(|machine| machine["config"].to_string()).collect()
    };
    assert_eq!(digests(&lab), digests(&fresh));
}

/// A reboot that 1.14 waits for is not forgotten, wherever a run dies.
#[test]
fn a_due_reboot_survives_a_kill() {
    let shape = Shape::new(1, 1).versions("v1.14.0", "v1.37.0");
    let lab = Lab::booted(&shape);
    let mut changed = shape.clone();
    let path = "/talos/*/ApplyConfiguration";
    for (number, (kind, call)) in
        [("hold-after", path), ("hold-before", "/talos/*/Reboot"), ("hold-after", "/talos/*/Reboot")]
            .iter()
            .enumerate()
    {
        let what = format!("{kind} at {call}");
        changed.patches = vec![format!(
            "machine: {{files: [{{path: /var/etc/a, content: \"{number}\", permissions: 0o600, op: create}}]}}"
        )];
        lab.source(&changed);
        let control = lab.sim.control();
        let fault = control.fault(&json!({"kind": kind, "path": call}));
        let mut child = lab.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(fault, 60.0), "{what}");
        child.kill().unwrap();
        child.wait().unwrap();
        control.release(fault);
        control.clear_faults();
        lab.converges(3);
        lab.assert_is(&changed, &what);
        lab.assert_settled(&what);
    }
}

/// A request that never arrives, or whose answer is lost, keeps nobody waiting for a reboot that does not come.
#[test]
fn a_reboot_that_was_not_asked_for_is_not_waited_for() {
    for (talos, kubernetes, next) in [
        ("v1.12.6", "v1.35.0", "v1.13.9"),
        ("v1.13.9", "v1.36.3", "v1.14.0"),
        ("v1.14.0", "v1.37.0", "v1.14.1"),
    ] {
        let shape = Shape::new(1, 1).versions(talos, kubernetes);
        let lab = Lab::booted(&shape);
        let mut changed = shape.clone();
        let mut number = 0;
        for kind in ["cut", "lost"] {
            for call in ["/talos/*/ApplyConfiguration", "/talos/*/Reboot", "/talos/*/Upgrade"] {
                let what = format!("{kind} at {call} on {talos}");
                number += 1;
                changed.patches = vec![format!(
                    "machine: {{files: [{{path: /var/etc/a, content: \"{number}\", permissions: 0o600, op: create}}]}}"
                )];
                if call.ends_with("Upgrade") {
                    if kind == "lost" {
                        continue;
                    }
                    changed.talos = next.to_owned();
                }
                lab.source(&changed);
                lab.sim.control().fault(&json!({"kind": kind, "path": call}));
                lab.converges(2);
                lab.sim.control().clear_faults();
                lab.assert_is(&changed, &what);
                lab.assert_settled(&what);
            }
        }
        lab.assert_sound(talos);
    }
}

#[test]
fn a_member_that_joined_before_a_kill_stays() {
    let lab = Lab::booted(&Shape::new(3, 0));
    let larger = Shape::new(5, 0);
    lab.source(&larger);
    // Somewhere in the middle of the joins; then the new node reboots by itself and answers to nobody for a while.
    let control = lab.sim.control();
    let fault =
        control.fault(&json!({"kind": "hold-before", "method": "PUT", "path": "/nodes/*/qemu/803/config"}));
    let mut child = lab.strata().spawn(&["apply", "--yes"]);
    let struck = control.wait_fault(fault, 60.0);
    child.kill().unwrap();
    child.wait().unwrap();
    control.release(fault);
    control.clear_faults();
    assert!(struck, "the ISO of the fourth control plane is ejected");
    lab.change(&json!({"reboot": {"machine": "lab-cp-4"}}));
    lab.converges(3);
    lab.assert_is(&larger, "after the joins");
    lab.assert_settled("after the joins");
    lab.assert_sound("after the joins");
}

#[test]
fn an_age_key_that_opens_nothing_is_refused() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    let other = strata_testkit::Repo::empty();
    strata_testkit::Strata::new(crate::world::BINARY, &other).run(&["init", "."]).ok();
    lab.repo.write("other.key", &other.read("age.key"));
    lab.repo.edit(FILE, "ageKey: {file: age.key}", "ageKey: {file: other.key}");
    let before = lab.export();
    let refused = lab.run(&["apply", "--yes"]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert!(refused.all().contains("opens none of the"), "{}", refused.all());
    assert_eq!(lab.export(), before, "nothing is begun with a key that does not fit");
    lab.repo.edit(FILE, "ageKey: {file: other.key}", "ageKey: {file: age.key}");
    lab.apply();
    lab.assert_settled("with the right key");
}

#[test]
fn manifests_of_flux_that_are_not_what_they_should_be_are_not_applied() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    let pinned = format!("manifests: {{file: flux.yaml, checksum: \"sha256:{}\"}}", "0".repeat(64));
    lab.repo.edit(FILE, "manifests: {file: flux.yaml}", &pinned);
    let failed = lab.run(&["apply", "--yes"]);
    assert_ne!(failed.code, 0, "{}", failed.all());
    assert!(failed.all().contains("checksum") || failed.all().contains("sha256"), "{}", failed.all());
    assert!(!lab.export()["kubernetes"].to_string().contains("source-controller"), "{}", failed.all());
    lab.repo.edit(FILE, &pinned, "manifests: {file: flux.yaml}");
    lab.apply();
    lab.assert_settled("with the right sum");
    lab.assert_sound("with the right sum");
}

/// Serves one text to whoever asks, at any path. Gives the port.
fn serve(text: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
    });
    port
}

#[test]
fn a_release_of_flux_is_fetched_through_a_mirror_and_must_be_the_pinned_one() {
    let shape = Shape::new(1, 1).with_gitops();
    let lab = Lab::new(&shape);
    let manifests = lab.repo.read("flux.yaml");
    lab.repo.remove("flux.yaml");
    let right = hex::encode(Sha256::digest(manifests.as_bytes()));
    let mirror = format!("mirrors:\n  https://github.com: http://127.0.0.1:{}\n", serve(manifests));
    lab.repo.write("strata.yaml", &format!("{}{mirror}", lab.repo.read("strata.yaml")));
    let pinned = |sum: &str| format!("manifests: {{checksum: \"sha256:{sum}\"}}");
    let wrong = "0".repeat(64);
    lab.repo.edit(FILE, "manifests: {file: flux.yaml}", &pinned(&wrong));
    let failed = lab.run(&["apply", "--yes"]).code(1);
    for words in [
        "/fluxcd/flux2/releases/download/v2.9.4/install.yaml",
        &format!("has the checksum sha256:{right}, and sha256:{wrong} is pinned"),
        "somebody has changed the file",
        "`strata apply` goes on from here",
    ] {
        assert!(failed.all().contains(words), "no `{words}` in:\n{}", failed.all());
    }
    assert!(!lab.export()["kubernetes"].to_string().contains("source-controller"), "{}", failed.all());
    lab.repo.edit(FILE, &wrong, &right);
    lab.apply();
    lab.assert_is(&shape, "with the right sum");
    lab.assert_settled("with the right sum");
}

#[test]
fn a_configuration_that_only_some_nodes_took_is_told_and_given_to_the_others() {
    let shape = Shape::new(1, 2);
    let lab = Lab::booted(&shape);
    let mut changed = shape.clone();
    changed.patches = vec!["machine: {nodeLabels: {half: \"yes\"}}".to_owned()];
    lab.source(&changed);
    let refusal = json!({
        "kind": "refuse", "path": "/talos/192.0.2.51/*/ApplyConfiguration", "status": 400, "text": "no room for it", "count": 0,
    });
    lab.sim.control().fault(&refusal);
    let failed = lab.run(&["apply", "--yes"]).code(1);
    for words in
        ["lab/machine/lab-worker-1", "the node refuses what it was given: no room for it", "1 failed"]
    {
        assert!(failed.all().contains(words), "no `{words}` in:\n{}", failed.all());
    }
    lab.sim.control().clear_faults();
    let plan = lab.run(&["plan", "--detailed-exitcode"]).code(2);
    assert!(
        !plan.stdout.contains("lab-cp-1") && plan.stdout.contains("lab-worker-1"),
        "half of it is done: {}",
        plan.all()
    );
    lab.apply();
    lab.assert_is(&changed, "the other half");
    lab.assert_settled("the other half");
}

#[test]
fn keys_of_a_cluster_that_nobody_here_can_read_are_told() {
    let shape = Shape::new(1, 0);
    let lab = Lab::booted(&shape);
    let own = lab.repo.read("age.key");
    let other = strata_testkit::Repo::empty();
    strata_testkit::Strata::new(crate::world::BINARY, &other).run(&["init", "."]).ok();
    lab.repo.write("age.key", &other.read("age.key"));
    let before = lab.export();
    for arguments in [&["plan"][..], &["apply", "--yes"], &["talos", "health", "lab"]] {
        let failed = lab.run(arguments).code(1);
        let said = "the secrets of the cluster, `clusters/lab/talos.sops.yaml`, cannot be used";
        assert!(failed.all().contains(said), "{}", failed.all());
    }
    assert_eq!(lab.export(), before);
    lab.repo.write("age.key", &own);
    lab.assert_settled("with the right key");
}

/// The kill of a scale-out, of a scale-in and of an upgrade, at some requests each.
#[test]
fn a_kill_in_the_middle_of_a_change_loses_nothing() {
    let shape = Shape::new(1, 1);
    let lab = Lab::booted(&shape);
    let steps = [
        Shape::new(3, 1),
        Shape { talos: "v1.14.0".to_owned(), ..Shape::new(3, 1) },
        Shape::new(3, 1).versions("v1.14.0", "v1.37.0"),
        Shape::new(1, 0).versions("v1.14.0", "v1.37.0"),
    ];
    for (number, step) in steps.iter().enumerate() {
        lab.source(step);
        for k in [40, 90, 140] {
            if !kill_apply(&lab, "hold-after", k) {
                break;
            }
            lab.assert_sound(&format!("step {number}, killed at {k}"));
        }
        lab.converges(3);
        let what = format!("step {number}");
        lab.assert_is(step, &what);
        lab.assert_settled(&what);
        lab.assert_sound(&what);
    }
}

/// The power was away: everything is off. Who comes back first cannot wait for a majority.
#[test]
fn a_cluster_that_is_off_is_switched_on() {
    let shape = Shape::new(3, 1);
    let lab = Lab::booted(&shape);
    for vmid in [800, 801, 802, 810] {
        lab.sim.control().change(&json!({"power": {"vmid": vmid, "running": false}}));
    }
    lab.converges(3);
    lab.assert_is(&shape, "switched on");
    lab.assert_settled("switched on");
    assert_eq!(lab.talos()["counters"][&keys().cluster_id]["bootstraps"], 1);
}
