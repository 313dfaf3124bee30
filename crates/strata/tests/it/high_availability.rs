//! Guests that high availability manages, rules about where they may be, and their copies on other hosts.

use serde_json::{Value, json};
use strata_sim::Pace;

use crate::findings::wait_for_ha;
use crate::kill::assert_same;
use crate::least_privilege::{become_somebody_with, computed};
use crate::world::World;

pub(crate) const STACK: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, nodes: [pve1, pve2], storage: {iso: local, disk: copies}}
vms:
  web:
    count: 2
    vmId: 9100
    memory: 64
    disks: {scsi0: {storage: copies, size: 1}}
    ha: {maxRestart: 3, comment: the shop}
    replication: [{target: pve3, schedule: "*/30", rate: 10}]
haRules:
  apart: {guests: [vms.web], affinity: negative}
  here: {guests: [vms.web], nodes: ["pve1:2", pve2], comment: near the disks}
"#;

const FILE: &str = "stacks/web/stack.yaml";

fn read(world: &World, path: &str) -> Value {
    let answer = world.sim.control().change(&json!({"method": "GET", "path": path}));
    assert_eq!(answer["status"], 200, "{answer}");
    answer["data"].clone()
}

fn change(world: &World, method: &str, path: &str, params: &Value) {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{answer}");
}

fn world() -> World {
    with_copies(STACK)
}

/// A datacenter with a storage whose volumes can be copied to other hosts.
pub(crate) fn with_copies(stack: &str) -> World {
    let world = World::with(Pace::FAST, stack);
    let pool =
        json!({"storage": "copies", "type": "zfspool", "pool": "rpool/data", "content": "images,rootdir"});
    change(&world, "POST", "/storage", &pool);
    world
}

/// A copy that is not wanted any more is removed by its host, some time later.
pub(crate) fn wait_for_removals(world: &World) {
    for _ in 0..600 {
        if !world.export().to_string().contains("remove_job") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a copy is still there");
}

fn resources(world: &World) -> Vec<Value> {
    let mut resources = read(world, "/cluster/ha/resources").as_array().unwrap().clone();
    // They are made at the same time.
    resources.sort_by_key(|resource| resource["sid"].to_string());
    resources
}

fn power(world: &World, vmid: u32) -> Value {
    let export = world.export();
    let guests = export["guests"].as_array().unwrap();
    guests.iter().find(|guest| guest["vmid"] == vmid).map_or(Value::Null, |guest| guest["power"].clone())
}

#[test]
fn guests_are_managed_kept_so_and_let_off_again() {
    let world = world();
    let before = world.export();
    let plan = world.strata().run(&["plan"]).ok().stdout;
    let from = plan.find("  + web/ha/").unwrap_or_else(|| panic!("{plan}"));
    insta::assert_snapshot!(&plan[from..], @r"
      + web/ha/vm-9100  high availability of vm:9100
          comment      the shop
          max_restart  3
      + web/ha/vm-9101  high availability of vm:9101
          comment      the shop
          max_restart  3
      + web/harule/apart  HA rule apart, resource-affinity
          affinity  negative
          members   vm:9100, vm:9101
      + web/harule/here  HA rule here, node-affinity
          comment  near the disks
          members  vm:9100, vm:9101
          nodes    pve1:2, pve2
      + web/replication/9100-0  replication 9100-0 to pve3
          rate      10
          schedule  */30
      + web/replication/9101-0  replication 9101-0 to pve3
          rate      10
          schedule  */30

    8 to create
    blast radius: workloads: 8 in 1 stack
    ");
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    let comment = resources(&world)[0]["comment"].as_str().unwrap().to_owned();
    assert!(comment.starts_with("the shop [strata ") && comment.ends_with(" web/ha/vm-9100]"), "{comment}");
    // Drift.
    change(&world, "PUT", "/cluster/ha/resources/vm:9100", &json!({"max_restart": 5}));
    change(&world, "PUT", "/cluster/ha/rules/apart", &json!({"type": "resource-affinity", "disable": 1}));
    change(&world, "PUT", "/cluster/replication/9100-0", &json!({"schedule": "*/5"}));
    let drift = world.strata().run(&["drift"]).all();
    for address in ["web/ha/vm-9100", "web/harule/apart", "web/replication/9100-0"] {
        assert!(drift.contains(address), "{address}:\n{drift}");
    }
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    // A guest that is switched off and on again: high availability follows, whoever is first.
    wait_for_ha(&world, "vm:9100", "started");
    world.repo.edit(FILE, "    memory: 64\n", "    memory: 64\n    started: false\n");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(power(&world, 9100), "stopped");
    assert_eq!(resources(&world)[0]["state"], "stopped");
    world.assert_settled();
    world.repo.edit(FILE, "    started: false\n", "");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!((power(&world, 9100), &resources(&world)[0]["state"]), (json!("running"), &json!("started")));
    world.assert_settled();
    // Each field.
    for (from, to) in [
        ("maxRestart: 3, comment: the shop", "maxRelocate: 2, failback: false"),
        ("nodes: [\"pve1:2\", pve2], comment: near the disks", "nodes: [pve2], strict: true"),
        ("affinity: negative", "affinity: positive"),
        ("schedule: \"*/30\", rate: 10", "enabled: false, comment: later"),
        ("  here: {guests: [vms.web], nodes: [pve2], strict: true}\n", ""),
    ] {
        world.repo.edit(FILE, from, to);
        let applied = world.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{to}:\n{}", applied.all());
        let plan = world.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{to}:\n{}", plan.all());
    }
    // Let off, the guests go on.
    let rest = world.repo.read(FILE).split_once("haRules:").unwrap().0.to_owned();
    world.repo.write(FILE, &rest.replace("    ha: {maxRelocate: 2, failback: false}\n", ""));
    let applied = world.strata().run(&["apply", "--yes"]).ok().all();
    assert!(applied.contains("no longer managed; the guest stays as it is"), "{applied}");
    assert!(resources(&world).is_empty());
    assert_eq!(power(&world, 9100), "running");
    world.assert_settled();
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&world.export(), &before, "destroy leaves the datacenter as it was");
}

#[test]
fn a_managed_stack_is_destroyed_in_order_and_a_kill_loses_nothing() {
    let undisturbed = world();
    let before = undisturbed.export();
    undisturbed.strata().run(&["apply", "--yes"]).ok();
    let made = undisturbed.export();
    undisturbed.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&undisturbed.export(), &before, "destroy leaves the datacenter as it was");
    for (kind, path) in [
        ("hold-after", "/cluster/ha/resources"),
        ("hold-before", "/cluster/ha/rules"),
        ("hold-after", "/cluster/replication"),
    ] {
        let world = world();
        let fault = json!({"kind": kind, "method": "POST", "path": path});
        let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
        assert!(killed.struck_or_good(path), "{path}");
        world.strata().run(&["apply", "--yes"]).ok();
        assert_same(&world.export(), &made, path);
        world.assert_settled();
    }
}

#[test]
fn what_others_manage_stays_theirs() {
    let stack = STACK
        .split_once("haRules:")
        .unwrap()
        .0
        .replace("    replication: [{target: pve3, schedule: \"*/30\", rate: 10}]\n", "");
    let world = World::with(Pace::FAST, &stack.replace("    ha: {maxRestart: 3, comment: the shop}\n", ""));
    let pool =
        json!({"storage": "copies", "type": "zfspool", "pool": "rpool/data", "content": "images,rootdir"});
    change(&world, "POST", "/storage", &pool);
    world.strata().run(&["apply", "--yes"]).ok();
    change(&world, "POST", "/cluster/ha/resources", &json!({"sid": "vm:9100", "comment": "by hand"}));
    world.repo.write(FILE, &stack);
    let before = resources(&world);
    let refused = world.strata().run(&["apply", "--yes"]).code(3).all();
    assert!(refused.contains("HA resource `vm:9100`"), "{refused}");
    assert_eq!(resources(&world), before);
}

#[test]
fn the_computed_role_is_enough() {
    let world = world();
    become_somebody_with(&world, &computed(&world));
    let before = world.export();
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_same(&world.export(), &before, "destroy leaves the datacenter as it was");
}

#[test]
fn a_copy_that_goes_elsewhere_is_made_when_the_former_one_is_gone() {
    let world = world();
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit(FILE, "count: 2", "count: 1");
    world.repo.edit(FILE, "haRules:\n  apart: {guests: [vms.web], affinity: negative}\n", "haRules:\n");
    world.repo.edit(FILE, "target: pve3", "target: pve2");
    let applied = world.strata().run(&["apply", "--yes"]).ok().all();
    assert!(applied.contains("the copy on `pve3` is deleted"), "{applied}");
    let jobs = read(&world, "/cluster/replication");
    assert_eq!((jobs.as_array().unwrap().len(), &jobs[0]["target"]), (1, &json!("pve2")), "{jobs}");
    world.assert_settled();
}

/// Proxmox removes a deleted job some time later, and refuses another one of its id until then.
#[test]
fn a_copy_that_is_wanted_again_is_made_when_the_former_one_is_gone() {
    let world = world();
    world.strata().run(&["apply", "--yes"]).ok();
    let made = world.export();
    for _ in 0..2 {
        world.strata().run(&["destroy", "--yes"]).ok();
        world.strata().run(&["apply", "--yes"]).ok();
        assert_same(&world.export(), &made, "made again");
        world.assert_settled();
    }
    let copies = "    replication: [{target: pve3, schedule: \"*/30\", rate: 10}]\n";
    world.repo.edit(FILE, copies, "");
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.write(FILE, STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    assert_same(&world.export(), &made, "wanted again");
}

#[test]
fn wrong_high_availability_is_named_before_anything_is_done() {
    for (from, to, told) in [
        (
            "ha: {maxRestart: 3",
            "started: false\n    ha: {state: started, maxRestart: 3",
            "would keep it started",
        ),
        ("    ha: {maxRestart: 3, comment: the shop}\n", "", "high availability does not manage it"),
        ("count: 2", "count: 1", "2 are needed"),
        ("guests: [vms.web], affinity: negative", "guests: [vms.web]", "says nothing"),
        ("guests: [vms.web], affinity", "guests: [vms.shop], affinity", "there is no `vms.shop`"),
        ("nodes: [\"pve1:2\", pve2]", "nodes: [\"pve1:0\"]", "priority"),
        ("target: pve3", "target: pve2", "the guest itself is there"),
    ] {
        let world = World::instant(&STACK.replacen(from, to, 1));
        let refused = world.strata().run(&["validate"]);
        assert!(refused.code != 0 && refused.all().contains(told), "{to}:\n{}", refused.all());
    }
}
