//! Guests and machines of clusters over the nodes of a list: apart and evenly, and whatever is there stays where it is.

use crate::cluster::lab::{self, Lab, Shape};
use crate::world::World;

const FILE: &str = "stacks/web/stack.yaml";
const WEB: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, nodes: [pve1, pve2], storage: {iso: tank, disk: tank}}
vms:
  app: {count: 1, vmId: 9100, disk: 4, memory: 64, started: false}
  db: {count: 1, vmId: 9110, disk: 4, memory: 64, started: false}
  single: {vmId: 9120, disk: 4, memory: 64, started: false}
"#;

/// The nodes of these VMIDs, in this order.
fn nodes(export: &serde_json::Value, vmids: &[u32]) -> String {
    let node = |vmid: &u32| {
        let guests = export["guests"].as_array().unwrap();
        let guest = guests.iter().find(|guest| guest["vmid"] == *vmid);
        guest.map_or("-", |guest| guest["node"].as_str().unwrap()).to_owned()
    };
    vmids.iter().map(node).collect::<Vec<_>>().join(" ")
}

#[test]
fn counts_are_spread_over_all_guests_and_what_is_there_stays() {
    let world = World::instant(WEB);
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("VM 9100 on pve2") && plan.contains("VM 9110 on pve1"), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(nodes(&world.export(), &[9100, 9110, 9120]), "pve2 pve1 pve1");
    world.assert_settled();
    // Another order, another node and more guests move none that is there.
    world.repo.edit(FILE, "nodes: [pve1, pve2]", "nodes: [pve3, pve1, pve2]");
    world.repo.edit(FILE, "single: {vmId", "single: {node: pve1, vmId");
    world.assert_settled();
    world.repo.edit(FILE, "app: {count: 1", "app: {count: 4");
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("VM 9101 on pve3") && plan.contains("3 to create"), "{plan}");
    world.strata().run(&["apply", "--yes"]).ok();
    assert_eq!(nodes(&world.export(), &[9100, 9101, 9102, 9103]), "pve2 pve3 pve1 pve3");
    world.assert_settled();
    // Nobody knows any more in which order they were made.
    std::fs::remove_dir_all(world.repo.file(".strata")).unwrap();
    world.strata().run(&["recover", "--yes"]).ok();
    world.assert_settled();
    // One whose node leaves the list goes to another.
    world.repo.edit(FILE, "nodes: [pve3, pve1, pve2]", "nodes: [pve1, pve3]");
    let plan = world.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("pve2 → pve1") && plan.contains("1 to change"), "{plan}");
}

#[test]
fn the_first_worker_is_not_where_the_first_control_plane_is() {
    let lab = Lab::new(&Shape::new(1, 1));
    let plan = lab.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("VM 800 on pve1") && plan.contains("VM 810 on pve2"), "{plan}");
    // As it was spread before: both on the first. A third one counts them.
    lab.repo.edit(lab::FILE, "nodes: [pve1, pve2, pve3]", "node: pve1");
    lab.strata().run(&["apply", "--yes"]).ok();
    lab.repo.edit(lab::FILE, "node: pve1", "nodes: [pve1, pve2]");
    let plan = lab.strata().run(&["plan", "--detailed-exitcode"]);
    assert_eq!(plan.code, 0, "{}", plan.all());
    lab.repo.edit(lab::FILE, "workers: {count: 1", "workers: {count: 2");
    let plan = lab.strata().run(&["plan"]).ok().stdout;
    assert!(plan.contains("VM 811 on pve2"), "{plan}");
    assert!(!plan.contains("node  "), "{plan}");
}
