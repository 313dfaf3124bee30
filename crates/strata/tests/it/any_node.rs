//! `node: any`: a place is chosen for a new guest, shown and kept to; wherever it goes later is left to others.

use serde_json::{Value, json};

use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";
const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: any, storage: {iso: local, disk: tank}}
vms:
  app:
    count: 3
    vmId: 9100
    memory: 2048
    disk: 4
    started: false
    network: [{bridge: vmbr0}]
  rescue:
    vmId: 9120
    iso: {url: "https://images.example/rescue.iso"}
    memory: 1024
    disk: 4
    started: false
containers:
  dns:
    vmId: 9200
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    disk: 4
    memory: 256
    started: false
outputs:
  where: "vms.app[*].node"
"#;

fn node(world: &World, vmid: u32) -> String {
    let export = world.export();
    let guests = export["guests"].as_array().cloned().unwrap_or_default();
    let mut found = guests.iter().filter(|guest| guest["vmid"] == vmid);
    let node = found.next().map(|guest| guest["node"].as_str().unwrap_or_default().to_owned());
    assert!(found.next().is_none(), "{vmid} is there once");
    node.unwrap_or_default()
}

fn change(world: &World, change: &Value) {
    let answer = world.sim.control().change(change);
    assert_eq!(answer["status"], 200, "{answer}");
}

/// Somebody else takes most of a node's memory.
fn fill(world: &World, node: &str, vmid: u32) {
    let params = json!({"vmid": vmid, "name": "large", "memory": 60000});
    change(world, &json!({"method": "POST", "path": format!("/nodes/{node}/qemu"), "params": params}));
}

fn migrate(world: &World, vmid: u32) -> String {
    let from = node(world, vmid);
    let to = if from == "pve2" { "pve3" } else { "pve2" };
    let path = format!("/nodes/{from}/qemu/{vmid}/migrate");
    change(world, &json!({"method": "POST", "path": path, "params": {"target": to}}));
    assert_eq!(node(world, vmid), to);
    to.to_owned()
}

#[test]
fn guests_are_spread_by_free_memory_and_stay_wherever_they_are_moved() {
    let world = World::instant(WEB);
    let before = world.export();
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("home"), "the choice is shown\n{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    let mut nodes: Vec<String> = (9100..9103).map(|vmid| node(&world, vmid)).collect();
    nodes.sort();
    assert_eq!(nodes, ["pve1", "pve2", "pve3"], "those of one count are kept apart");
    world.assert_settled();
    // HA or a person moves one: nothing is planned, and nothing that it was made from follows.
    let now = migrate(&world, 9100);
    world.assert_settled();
    let drift = world.strata().run(&["drift"]).code(0);
    assert!(drift.stdout.contains("`node: any` leaves it"), "{}", drift.all());
    world.repo.edit(FILE, "memory: 2048", "memory: 1536");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(node(&world, 9100), now);
    world.assert_settled();
    let state = world.repo.read(".strata/state/test/web/state.json");
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(
        state["resources"]["test:web/vm/app-1"]["spec"]["node"]
            .as_str()
            .or(state["resources"]["web/vm/app-1"]["spec"]["node"].as_str()),
        Some(now.as_str()),
        "{state}"
    );
    world.strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(world.export(), before, "destroy leaves the datacenter as it was");
}

#[test]
fn a_place_has_the_memory_the_storages_and_the_bridges() {
    let world = World::instant(WEB);
    fill(&world, "pve1", 300);
    fill(&world, "pve3", 301);
    world.repo.edit(FILE, "    count: 3\n", "");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(node(&world, 9100), "pve2", "most memory is free there");
    world.assert_settled();
    let only = json!({"storage": "only3", "type": "dir", "path": "/srv/only3", "content": "images", "nodes": "pve3"});
    change(&world, &json!({"method": "POST", "path": "/storage", "params": only}));
    let more = "  third:\n    vmId: 9130\n    disk: {storage: only3, size: 4}\n    started: false\n";
    world.repo.edit(FILE, "containers:\n", &format!("{more}containers:\n"));
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(node(&world, 9130), "pve3", "the storage is nowhere else");
    world.assert_settled();
    let only = json!({"storage": "only1", "type": "dir", "path": "/srv/only1", "content": "images", "nodes": "pve1"});
    change(&world, &json!({"method": "POST", "path": "/storage", "params": only}));
    let more = "  torn:\n    vmId: 9131\n    disks: {scsi0: {storage: only3, size: 4}, scsi1: {storage: only1, size: 4}}\n    started: false\n";
    world.repo.edit(FILE, "containers:\n", &format!("{more}containers:\n"));
    let refused = world.strata().run(&["plan"]);
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no node has all that `web/vm/torn` needs"), "{}", refused.all());
    assert!(refused.stderr.contains("`pve2` has no storage `only1`"), "{}", refused.all());
}

#[test]
fn a_saved_plan_keeps_to_its_choice() {
    let world = World::instant(WEB);
    world.repo.edit(FILE, "    count: 3\n", "");
    let shown = world.strata().run(&["plan", "-o", "plan.json"]).ok();
    assert!(shown.stdout.contains("VM 9100 on pve3"), "{}", shown.all());
    fill(&world, "pve3", 300);
    world.strata().run(&["apply", "plan.json", "--yes"]).ok();
    assert_eq!(node(&world, 9100), "pve3");
    world.assert_settled();
}

#[test]
fn a_killed_create_finds_its_guest_where_it_was_begun() {
    for kind in ["hold-before", "hold-after"] {
        for path in ["*/qemu", "*/lxc", "*/download-url"] {
            let world = World::instant(WEB);
            let fault = json!({"kind": kind, "method": "POST", "path": path});
            let killed = world.strata().kill_at(&world.sim.control(), &fault, &["apply", "--yes"]);
            assert!(killed.struck, "{kind} {path}");
            let begun: Vec<(u32, String)> =
                [9100, 9101, 9102, 9120, 9200].map(|vmid| (vmid, node(&world, vmid))).into();
            // What was free then is taken now.
            for (place, node) in ["pve1", "pve2", "pve3"].iter().enumerate().take(2) {
                fill(&world, node, 300 + u32::try_from(place).unwrap());
            }
            world.strata().run(&["apply", "--yes"]).ok();
            for (vmid, was) in begun.iter().filter(|(_, was)| !was.is_empty()) {
                assert_eq!(node(&world, *vmid), *was, "{kind} {path}: {vmid} stays");
            }
            world.assert_settled();
        }
    }
}
