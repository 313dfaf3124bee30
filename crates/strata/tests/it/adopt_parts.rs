//! `strata adopt` of what is about guests: high availability, its rules, and copies on other hosts, written where the guests are.

use serde_json::{Value, json};

use crate::findings::wait_for_ha;
use crate::high_availability::with_copies;
use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";
const STACK: &str = "\
# Two that belong together.
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: copies}}
vms:
  db: {vmId: 9100, disk: 1, memory: 64}   # the old one
  app:
    vmId: 9101
    disk: 1
    memory: 64
  many: {count: 2, vmId: 9110, disk: 1, memory: 64, started: false}
containers:
  dns:
    vmId: 9200
    image: {url: \"https://images.example/debian-12-standard_12.7-1_amd64.tar.zst\"}
    disk: 1
    memory: 64
";

fn change(world: &World, method: &str, path: &str, params: &Value) {
    let answer = world.sim.control().change(&json!({"method": method, "path": path, "params": params}));
    assert_eq!(answer["status"], 200, "{method} {path}: {answer}");
}

/// Guests of ours, and what somebody clicked together about them.
fn by_hand() -> World {
    let world = with_copies(STACK);
    world.strata().run(&["apply", "--yes"]).ok();
    for (sid, own) in [
        ("vm:9100", json!({"comment": "the shop's", "max_restart": 3})),
        ("vm:9101", json!({"failback": 0})),
        ("ct:9200", json!({})),
        ("vm:9110", json!({"state": "stopped"})),
    ] {
        let mut own = own;
        own["sid"] = sid.into();
        change(&world, "POST", "/cluster/ha/resources", &own);
    }
    let apart = json!({"rule": "apart", "type": "resource-affinity", "affinity": "negative", "resources": "vm:9100,vm:9101"});
    change(&world, "POST", "/cluster/ha/rules", &apart);
    let here = json!({"rule": "here", "type": "node-affinity", "nodes": "pve1:2,pve2", "resources": "vm:9100,ct:9200", "strict": 1, "comment": "fast disks"});
    change(&world, "POST", "/cluster/ha/rules", &here);
    for (id, own) in [
        ("9100-0", json!({"target": "pve2"})),
        ("9100-3", json!({"target": "pve3", "schedule": "22:00", "rate": 10})),
        ("9101-0", json!({"target": "pve2", "disable": 1, "comment": "later"})),
    ] {
        let mut own = own;
        own["id"] = id.into();
        own["type"] = "local".into();
        change(&world, "POST", "/cluster/replication", &own);
    }
    for sid in ["vm:9100", "vm:9101", "ct:9200"] {
        wait_for_ha(&world, sid, "started");
    }
    world
}

#[test]
fn parts_of_guests_are_written_where_the_guests_are() {
    let world = by_hand();
    let adopted = world.strata().run(&["adopt", "--all", "--yes"]);
    assert_eq!(adopted.code, 0, "{}", adopted.all());
    let text = world.repo.read(FILE);
    insta::assert_snapshot!(text);
    assert!(text.starts_with("# Two that belong together.\n") && text.contains("# the old one"), "{text}");
    let all = adopted.all();
    let left_out: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("left out: ")).collect();
    assert_eq!(
        left_out,
        ["HA resource `vm:9110`: its guest is one of several of `vms.many`, which share their entry"],
        "{all}"
    );
    world.assert_settled();
    // They are marked, and an entry that goes takes them along.
    let files = world.export()["cluster"]["files"].to_string();
    for address in ["web/ha/vm-9100", "web/ha/ct-9200", "web/harule/here", "web/replication/9100-3"] {
        assert!(files.contains(address), "{address}: {files}");
    }
    let again = world.strata().run(&["adopt", "--all", "--yes"]).ok();
    assert_eq!(world.repo.read(FILE), text, "{}", again.all());
    let without = text.replace("failback: false", "failback: true");
    assert_ne!(without, text);
    world.repo.write(FILE, &without);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn one_part_is_adopted_by_its_address() {
    let world = by_hand();
    let refused = world.strata().run(&["adopt", "web/harule/here", "--yes"]);
    assert_ne!(refused.code, 0, "{}", refused.all());
    assert_eq!(world.repo.read(FILE), STACK);
    world.strata().run(&["adopt", "web/ha/vm-9101", "web/replication/9100-3", "--yes"]).ok();
    let text = world.repo.read(FILE);
    assert!(text.contains("failback: false") && text.contains("job: 3"), "{text}");
    assert!(!text.contains("maxRestart"), "{text}");
    world.assert_settled();
}

/// Whatever a run was killed at, the same command finishes it.
#[test]
fn killed_at_each_write_the_same_command_finishes_it() {
    let adopt =
        ["adopt", "--yes", "web/ha/vm-9100", "web/ha/ct-9200", "web/harule/here", "web/replication/9100-0"];
    let reference = by_hand();
    reference.strata().run(&adopt).ok();
    let text = reference.repo.read(FILE);
    for kind in ["hold-before", "hold-after"] {
        for write in 1..=4 {
            let world = by_hand();
            let fault = json!({"kind": kind, "nth": write, "writes": true});
            world.strata().kill_at(&world.sim.control(), &fault, &adopt);
            world.strata().run(&adopt).ok();
            assert_eq!(world.repo.read(FILE), text, "{kind} {write}");
            world.assert_settled();
        }
    }
}
