//! Many stacks in one run: what they share, what they wait for, and what a failure of one leaves to the others.

use serde_json::json;
use strata_sim::{Pace, SimOptions};
use strata_testkit::{Repo, Strata, TestSim};

use crate::world::BINARY;

struct Fleet {
    sim: TestSim,
    repo: Repo,
}

impl Fleet {
    fn new() -> Self {
        let sim = TestSim::with(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() });
        let repo = Repo::on(&sim);
        Self { sim, repo }
    }

    /// A stack of so many guests from a VMID on, on all nodes.
    fn stack(&self, name: &str, needs: &str, first: u32, guests: u32) {
        self.stack_on("[pve1, pve2, pve3]", name, needs, first, guests);
    }

    fn stack_on(&self, nodes: &str, name: &str, needs: &str, first: u32, guests: u32) {
        self.repo.write(
            &format!("stacks/{name}/stack.yaml"),
            &format!(
                "metadata: {{name: {name}, environment: test, dependsOn: [{needs}]}}\n\
                 proxmox: {{target: pve, nodes: {nodes}, storage: tank}}\n\
                 vms:\n  {name}-g: {{count: {guests}, vmId: {first}, memory: 64, disk: 1, started: false, network: [vmbr0]}}\n"
            ),
        );
    }

    fn strata(&self) -> Strata {
        Strata::new(BINARY, &self.repo)
    }

    /// The VMIDs that are there, of those that the tests use.
    fn guests(&self) -> Vec<u64> {
        let export = self.sim.export();
        let guests = export["guests"].as_array().unwrap();
        let mut found: Vec<u64> = guests.iter().map(|guest| guest["vmid"].as_u64().unwrap()).collect();
        found.retain(|vmid| *vmid >= 5000);
        found.sort_unstable();
        found
    }
}

#[test]
fn d6_a_plan_of_many_stacks_lists_each_target_once() {
    let fleet = Fleet::new();
    for stack in 0..20 {
        fleet.stack(&format!("s{stack:02}"), "", 5000 + stack * 10, 3);
    }
    fleet.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(fleet.guests().len(), 60);
    fleet.sim.control().reset_requests();
    fleet.strata().run(&["plan", "--detailed-exitcode"]).code(0);
    let requests = fleet.sim.requests();
    assert!(requests <= 60 + 20, "{requests} requests: one read for each guest, and a handful");
}

#[test]
fn plans_are_shown_in_the_same_order_however_fast_each_was_made() {
    let fleet = Fleet::new();
    for stack in (0..6).rev() {
        fleet.stack(&format!("s{stack}"), "", 5000 + stack * 10, 2);
    }
    let first = fleet.strata().run(&["plan"]).ok().stdout;
    let headers: Vec<&str> = first
        .lines()
        .filter(|line| line.starts_with('s'))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(headers, ["s0", "s1", "s2", "s3", "s4", "s5"]);
    assert_eq!(fleet.strata().run(&["plan"]).ok().stdout, first);
}

#[test]
fn d6_a_failure_stops_what_needs_it_and_nothing_else() {
    let fleet = Fleet::new();
    fleet.stack_on("[pve1]", "a-broken", "", 5000, 1);
    fleet.stack_on("[pve2]", "b-needs", "a-broken", 5010, 1);
    fleet.stack_on("[pve2]", "c-needs-that", "b-needs", 5020, 1);
    for (place, name) in ["d-other", "e-other", "f-other"].into_iter().enumerate() {
        fleet.stack_on("[pve2, pve3]", name, "", 5030 + u32::try_from(place).unwrap() * 10, 2);
    }
    let refused = json!({
        "kind": "refuse", "method": "POST", "path": "*/nodes/pve1/qemu", "count": 0, "status": 500, "text": "something broke",
    });
    fleet.sim.control().fault(&refused);
    let output = fleet.strata().run(&["apply", "--yes"]).code(1);
    assert_eq!(fleet.guests(), [5030, 5031, 5040, 5041, 5050, 5051], "{}", output.all());
    let told = output.all();
    assert!(told.contains("b-needs: left as it is, it needs `a-broken`, which failed"), "{told}");
    assert!(told.contains("c-needs-that: left as it is, it needs `a-broken`, which failed"), "{told}");
    assert!(told.contains("6 done, 1 failed, 2 left"), "{told}");
    assert!(told.contains("`strata apply` goes on from here"), "{told}");

    fleet.sim.control().clear_faults();
    fleet.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(fleet.guests().len(), 9);
    fleet.strata().run(&["plan", "--detailed-exitcode"]).code(0);
}

#[test]
fn d6_a_stack_that_cannot_be_planned_stops_what_needs_it_and_nothing_else() {
    let fleet = Fleet::new();
    fleet.stack("a-broken", "", 5000, 1);
    fleet.stack("b-needs", "a-broken", 5010, 1);
    fleet.stack("c-other", "", 5020, 2);
    fleet.strata().run(&["apply", "--yes"]).ok();
    // Its state cannot be read any more, and a target that only `d-far` is on does not answer.
    let state = fleet.repo.path().join(".strata/state/test/a-broken/state.json");
    let whole = std::fs::read(&state).unwrap();
    std::fs::write(&state, "{").unwrap();
    let settings = fleet.repo.read("strata.yaml");
    let far = "  far: {proxmox: {endpoint: 'https://127.0.0.1:9', token: 'a@pve!b=c'}}\n";
    fleet.repo.write("strata.yaml", &settings.replace("targets:\n", &format!("targets:\n{far}")));
    fleet.repo.write(
        "stacks/d-far/stack.yaml",
        "metadata: {name: d-far, environment: test}\nproxmox: {target: far, node: pve1}\nvms: {x: {vmId: 6000, started: false}}\n",
    );
    fleet.repo.edit("stacks/c-other/stack.yaml", "count: 2", "count: 3");

    let planned = fleet.strata().run(&["plan"]).code(1).all();
    assert!(planned.contains("not planned: the state `test/a-broken` cannot be read"), "{planned}");
    assert!(planned.contains("not planned: it needs `a-broken`, which cannot be planned"), "{planned}");
    assert!(
        planned
            .contains("not planned: target `far`: cannot list the storages: cannot connect to `127.0.0.1:9`"),
        "{planned}"
    );
    assert!(planned.contains("c-other-g-3"), "{planned}");
    assert!(planned.contains("3 stacks are not planned: they are left as they are"), "{planned}");
    let saved = fleet.strata().run(&["plan", "-o", "all.plan"]).code(1).all();
    assert!(saved.contains("nothing was saved in `all.plan`"), "{saved}");
    assert!(!fleet.repo.path().join("all.plan").exists());

    let told = fleet.strata().run(&["apply", "--yes"]).code(1).all();
    assert_eq!(fleet.guests(), [5000, 5010, 5020, 5021, 5022], "{told}");
    assert!(told.contains("a-broken: left as it is, it could not be planned: the state"), "{told}");
    assert!(told.contains("b-needs: left as it is, it needs `a-broken`, which failed"), "{told}");
    assert!(told.contains("1 done, 0 failed, 0 left; 2 stacks are not planned"), "{told}");
    assert!(told.contains("`strata apply` goes on from here"), "{told}");

    // The only stack of a run ends it, and no lock stays behind.
    let alone = fleet.strata().run(&["apply", "--yes", "a-broken"]).code(1).all();
    assert!(alone.contains("error: the state `test/a-broken` cannot be read"), "{alone}");
    std::fs::write(&state, whole).unwrap();
    std::fs::remove_dir_all(fleet.repo.path().join("stacks/d-far")).unwrap();
    fleet.strata().run(&["plan", "--detailed-exitcode"]).code(0);
}

#[test]
fn d3_a_plan_says_what_an_apply_could_not_do() {
    let fleet = Fleet::new();
    fleet.stack("a-good", "", 5000, 1);
    fleet.stack_on("[pve9]", "b-nowhere", "", 5010, 1);
    fleet.repo.write(
        "stacks/c-wrong/stack.yaml",
        "metadata: {name: c-wrong, environment: test}\nproxmox: {target: pve, node: pve1, storage: tank}\nvms:\n  \
         x: {vmId: 5020, memory: 64, disk: {size: 1, storage: local}, started: false, network: [vmbr77]}\n",
    );
    let planned = fleet.strata().run(&["plan"]).code(3);
    let told = planned.all();
    for expected in [
        "there is no node `pve9`",
        "--> stacks/b-nowhere/stack.yaml:4",
        "the storage `local` on `pve1` does not take disks of VMs (`images`)",
        "there is no bridge `vmbr77` on `pve1`, or the token may not see it",
        "--> stacks/c-wrong/stack.yaml:4",
        "refused: nothing is done until the above is resolved",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let saved = fleet.strata().run(&["plan", "-o", "all.plan"]).code(3);
    assert!(!fleet.repo.path().join("all.plan").exists(), "{}", saved.all());
    let applied = fleet.strata().run(&["apply", "--yes"]).code(3);
    assert_eq!(applied.stdout, planned.stdout, "an apply shows the same");
    assert_eq!(fleet.guests(), [] as [u64; 0]);
    let lines = fleet.strata().run(&["--json", "plan"]).code(3).stdout;
    assert!(lines.contains(r#""kind":"preflight""#), "{lines}");
}

#[test]
fn d6_stacks_that_do_not_need_each_other_run_at_the_same_time() {
    let fleet = Fleet::new();
    fleet.stack_on("[pve1]", "a", "", 5000, 1);
    fleet.stack_on("[pve2]", "b", "", 5010, 1);
    fleet.stack_on("[pve3]", "c", "a", 5020, 1);
    // The first create is held: the other stack goes on meanwhile, and what needs the first one waits.
    let control = fleet.sim.control();
    let held = control.fault(&json!({"kind": "hold-before", "method": "POST", "path": "*/nodes/pve1/qemu"}));
    let mut child = fleet.strata().spawn(&["apply", "--yes"]);
    assert!(control.wait_fault(held, 60.0));
    while !fleet.guests().contains(&5010) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(fleet.guests(), [5010]);
    control.release(held);
    assert!(child.wait().unwrap().success());
    assert_eq!(fleet.guests(), [5000, 5010, 5020]);
}

#[test]
fn a_destroy_takes_down_what_stands_on_something_first() {
    let fleet = Fleet::new();
    fleet.stack("base", "", 5000, 1);
    fleet.stack("web", "base", 5010, 1);
    fleet.strata().run(&["apply", "--yes"]).ok();
    let control = fleet.sim.control();
    control.fault(&json!({
        "kind": "refuse", "method": "DELETE", "path": "*/qemu/5010", "count": 0, "status": 500, "text": "something broke",
    }));
    let output = fleet.strata().run(&["destroy", "--yes"]).code(1);
    assert!(output.all().contains("base: left as it is, it needs `web`, which failed"), "{}", output.all());
    assert_eq!(fleet.guests(), [5000, 5010]);
    control.clear_faults();
    fleet.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(fleet.guests(), [] as [u64; 0]);
}

#[test]
fn killed_in_the_middle_of_several_stacks_all_of_them_are_finished() {
    let fleet = Fleet::new();
    for stack in 0..4 {
        fleet.stack(&format!("s{stack}"), "", 5000 + stack * 10, 2);
    }
    let control = fleet.sim.control();
    for nth in [2, 4, 7] {
        let held =
            control.fault(&json!({"kind": "hold-after", "method": "POST", "path": "*/qemu", "nth": nth}));
        let mut child = fleet.strata().spawn(&["apply", "--yes"]);
        assert!(control.wait_fault(held, 60.0));
        child.kill().unwrap();
        child.wait().unwrap();
        control.clear_faults();
        fleet.strata().run(&["apply", "--yes"]).ok();
        assert_eq!(fleet.guests().len(), 8);
        fleet.strata().run(&["plan", "--detailed-exitcode"]).code(0);
        fleet.strata().run(&["destroy", "--yes"]).ok();
    }
}

#[test]
fn d4_doctor_asks_targets_that_no_stack_is_on() {
    let fleet = Fleet::new();
    fleet.strata().run(&["doctor"]).ok();
    let told = fleet.strata().run(&["doctor", "--role"]).code(1).all();
    assert!(told.contains("no stack asks anything of a Proxmox"), "{told}");
    fleet.repo.edit("strata.yaml", &fleet.sim.endpoint(), "https://127.0.0.1:9");
    let told = fleet.strata().run(&["doctor"]).code(1).all();
    assert!(told.contains("cannot connect to `127.0.0.1:9`"), "{told}");
}
#[test]
fn d10_a_repository_is_valid_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("infra");
    Strata::at(BINARY, folder.path()).run(&["init", "--example", "homelab", path.to_str().unwrap()]).ok();
    std::fs::remove_file(path.join("age.key")).unwrap();
    let strata = Strata::at(BINARY, &path);
    strata.run(&["validate"]).ok();
    // Names are still looked for.
    let stack = "metadata: {name: extra}\nproxmox: {node: pve1}\nvms: {x: {vmId: 5000, cloudInit: {user: u, password: {secret: no.such.name}}}}\n";
    std::fs::create_dir_all(path.join("stacks/extra")).unwrap();
    std::fs::write(path.join("stacks/extra/stack.yaml"), stack).unwrap();
    let told = strata.run(&["validate"]).code(1).all();
    assert!(told.contains("no.such.name"), "{told}");
}
