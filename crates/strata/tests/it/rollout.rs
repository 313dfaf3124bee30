//! Equal guests restart one after the other, and a check that fails stops the rest of them.

use std::net::TcpListener;

use serde_json::json;
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

fn stack(extra: &str, memory: u32) -> String {
    let image = "image: {url: 'https://images.example/debian-12-genericcloud-amd64.qcow2'}";
    format!(
        "metadata: {{name: web, environment: test}}\nproxmox: {{target: pve, node: pve1, storage: {{iso: local, disk: local-lvm}}}}\nvms:\n  \
         w: {{count: 3, vmId: 5000, {image}, memory: {memory}, disk: 10, network: [{{bridge: vmbr0, ip: 127.0.0.1/8}}], cloudInit: {{user: u}}{extra}}}\n  \
         other: {{vmId: 5010, {image}, memory: {memory}, disk: 10, network: [vmbr0]}}\n"
    )
}

fn applied(memory: u32, extra: &str) -> (TestSim, Repo) {
    let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
    let repo = Repo::on(&sim);
    repo.write("stacks/web/stack.yaml", &stack(extra, memory));
    Strata::new(BINARY, &repo).run(&["apply", "--yes"]).ok();
    (sim, repo)
}

/// The memory that each guest has.
fn memory(sim: &TestSim) -> Vec<(u64, String)> {
    let export = sim.export();
    let guests =
        export["guests"].as_array().unwrap().iter().filter(|guest| guest["vmid"].as_u64() >= Some(5000));
    let mut found: Vec<(u64, String)> = guests
        .map(|guest| {
            (
                guest["vmid"].as_u64().unwrap(),
                guest["config"]["memory"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn guests_of_a_count_restart_one_after_the_other() {
    let (sim, repo) = applied(256, "");
    repo.write("stacks/web/stack.yaml", &stack("", 512));
    let strata = Strata::new(BINARY, &repo);
    let planned = strata.run(&["plan"]).ok().stdout;
    assert!(planned.contains("goes down after w-1 works again"), "{planned}");
    assert!(planned.contains("goes down after w-2 works again"), "{planned}");
    // The first restart is held: the second does not begin, and who is no equal of them does.
    let control = sim.control();
    let held =
        control.fault(&json!({"kind": "hold-before", "method": "POST", "path": "*/qemu/5000/status/reboot"}));
    let mut child = strata.spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 60.0));
    while !memory(&sim).contains(&(5010, "512".to_owned())) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let others: Vec<(u64, String)> =
        memory(&sim).into_iter().filter(|(vmid, _)| [5001, 5002].contains(vmid)).collect();
    assert!(others.iter().all(|(_, memory)| memory == "256"), "{others:?}");
    control.release(held);
    assert!(child.wait().unwrap().success());
    assert!(memory(&sim).iter().all(|(_, memory)| memory == "512"));
    strata.run(&["plan", "--detailed-exitcode"]).code(0);
    // Two at a time.
    repo.write("stacks/web/stack.yaml", &stack(", rollout: {maxUnavailable: 2}", 256));
    let planned = strata.run(&["plan"]).ok().stdout;
    assert!(planned.contains("goes down after w-1 works again, at most 2 at once"), "{planned}");
    assert!(!planned.contains("goes down after w-2"), "{planned}");
}

#[test]
fn a_check_that_fails_stops_the_rest_of_its_group_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    // Addresses of a count follow each other: only the first guest is at the loopback's first address, where nobody listens.
    let check = format!(", timeouts: {{start: 1}}, rollout: {{check: {{tcp: {port}}}}}");
    let (sim, repo) = applied(256, &check);
    repo.write("stacks/web/stack.yaml", &stack(&check, 512));
    let strata = Strata::new(BINARY, &repo);
    let told = strata.run(&["apply", "--yes"]).code(1).all();
    assert!(told.contains(&format!("`127.0.0.1:{port}` did not answer within 1 s")), "{told}");
    assert!(told.contains("the others of its group were not restarted"), "{told}");
    let memory: Vec<(u64, String)> = memory(&sim);
    let expected = [(5000, "512"), (5001, "256"), (5002, "256"), (5010, "512")];
    assert_eq!(memory, expected.map(|(vmid, memory)| (vmid, memory.to_owned())), "{told}");
    // The next apply goes on with the rest, whose ports answer now.
    let _listeners: Vec<TcpListener> = (1..=3)
        .map(|last| TcpListener::bind(("127.0.0.".to_owned() + &last.to_string(), port)).unwrap())
        .collect();
    strata.run(&["apply", "--yes"]).ok();
    strata.run(&["plan", "--detailed-exitcode"]).code(0);
}

/// One that is down already, as a run died or somebody stopped or deleted it, works again before another one goes down.
#[test]
fn who_is_down_already_comes_up_before_the_next_goes_down() {
    let check = ", timeouts: {start: 30}";
    for (act, begins) in [
        (json!({"power": {"vmid": 5000, "running": false}}), "*/qemu/5000/status/start"),
        (json!({"method": "DELETE", "path": "/nodes/pve1/qemu/5000", "params": {}}), "*/nodes/pve1/qemu"),
    ] {
        let (sim, repo) = applied(256, check);
        let (control, strata) = (sim.control(), Strata::new(BINARY, &repo));
        control.change(&json!({"power": {"vmid": 5000, "running": false}}));
        control.change(&act);
        repo.write("stacks/web/stack.yaml", &stack(check, 768));
        let planned = strata.run(&["plan"]).ok().stdout;
        assert!(planned.contains("goes down after w-1 works again"), "{planned}");
        assert!(planned.contains("goes down after w-2 works again"), "{planned}");
        let held = control.fault(&json!({"kind": "hold-before", "method": "POST", "path": begins}));
        let mut child = strata.spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(held, 60.0), "{begins}");
        while !memory(&sim).contains(&(5010, "768".to_owned())) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let others: Vec<(u64, String)> =
            memory(&sim).into_iter().filter(|(vmid, _)| [5001, 5002].contains(vmid)).collect();
        assert!(others.iter().all(|(_, memory)| memory == "256"), "{begins}: {others:?}");
        control.release(held);
        assert!(child.wait().unwrap().success());
        assert!(memory(&sim).iter().all(|(_, memory)| memory == "768"), "{begins}: {:?}", memory(&sim));
        strata.run(&["plan", "--detailed-exitcode"]).code(0);
    }
}
