//! What no two guests may share, over all stacks.

use insta::assert_snapshot;
use strata_source::world::Memory;

use crate::{SETTINGS, clean, mistakes, web};

fn two(one: &str, two: &str) -> Memory {
    let stack = |body: &str| format!("proxmox: {{target: pve, node: pve1}}\n{body}");
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/one/stack.yaml", stack(one))
        .file("stacks/two/stack.yaml", stack(two))
}

#[test]
fn vmids_names_macs_and_addresses() {
    let nic = "{bridge: vmbr0, mac: \"BC:24:11:00:00:01\", ip: 192.0.2.5/24}";
    let world = two(
        &format!(
            "vms:\n  web: {{vmId: 100, count: 3, network: [{{bridge: vmbr0}}]}}\n  db: {{vmId: 110, network: [{nic}]}}\n"
        ),
        &format!(
            "containers:\n  a: {{vmId: 102, image: local:vztmpl/a.tar.zst, name: web-2, network: [{nic}]}}\n"
        ),
    );
    assert_snapshot!(mistakes(&world), @r#"
    error[vmid-collision]: VMID `102` is used twice on target `pve`
     --> stacks/two/stack.yaml:3:13
      |
    3 |   a: {vmId: 102, image: local:vztmpl/a.tar.zst, name: web-2, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |             ^^^ `web-2` of stack `two`
      |
     ::: stacks/one/stack.yaml:3:15
      |
    3 |   web: {vmId: 100, count: 3, network: [{bridge: vmbr0}]}
      |               --- `web-3` of stack `one`
    warning[name-collision]: the name `web-2` is used twice on target `pve`
     --> stacks/two/stack.yaml:3:55
      |
    3 |   a: {vmId: 102, image: local:vztmpl/a.tar.zst, name: web-2, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |                                                       ^^^^^ `web-2` of stack `two`
      |
     ::: stacks/one/stack.yaml:3:3
      |
    3 |   web: {vmId: 100, count: 3, network: [{bridge: vmbr0}]}
      |   --- `web-2` of stack `one`
      |
      = note: Proxmox allows it: guests are known by their VMIDs
      = hint: give one of them another `name` if people should not mix them up
    error[mac-collision]: the MAC `BC:24:11:00:00:01` is used twice on target `pve`
     --> stacks/two/stack.yaml:3:93
      |
    3 |   a: {vmId: 102, image: local:vztmpl/a.tar.zst, name: web-2, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |                                                                                             ^^^^^^^^^^^^^^^^^^^ `web-2` of stack `two`
      |
     ::: stacks/one/stack.yaml:4:50
      |
    4 |   db: {vmId: 110, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |                                                  ------------------- `db` of stack `one`
    error[ip-collision]: the address `192.0.2.5` is used twice on target `pve`
     --> stacks/two/stack.yaml:3:118
      |
    3 |   a: {vmId: 102, image: local:vztmpl/a.tar.zst, name: web-2, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |                                                                                                                      ^^^^^^^^^^^^ `web-2` of stack `two`
      |
     ::: stacks/one/stack.yaml:4:75
      |
    4 |   db: {vmId: 110, network: [{bridge: vmbr0, mac: "BC:24:11:00:00:01", ip: 192.0.2.5/24}]}
      |                                                                           ------------ `db` of stack `one`
    "#);
}

#[test]
fn other_targets_and_vlans_are_other_places() {
    let settings = format!("{SETTINGS}  far: {{proxmox: {{endpoint: 'https://198.51.100.9:8006'}}}}\n");
    let world = Memory::new()
        .file("strata.yaml", settings)
        .file("stacks/one/stack.yaml", "proxmox: {target: pve, node: pve1}\nvms: {a: {vmId: 100}}\n")
        .file("stacks/two/stack.yaml", "proxmox: {target: far, node: pve1}\nvms: {a: {vmId: 100}}\n");
    clean(&world);
    let world = web("\
vms:
  a: {vmId: 100, network: [{bridge: vmbr0, vlan: 1, ip: 192.0.2.5/24}]}
  b: {vmId: 101, network: [{bridge: vmbr0, vlan: 2, ip: 192.0.2.5/24}]}
");
    assert_snapshot!(mistakes(&world), @"
    warning[ip-collision]: the address `192.0.2.5` is used twice on target `pve`
     --> stacks/web/stack.yaml:5:57
      |
    4 |   a: {vmId: 100, network: [{bridge: vmbr0, vlan: 1, ip: 192.0.2.5/24}]}
      |                                                         ------------ `a` of stack `web`
    5 |   b: {vmId: 101, network: [{bridge: vmbr0, vlan: 2, ip: 192.0.2.5/24}]}
      |                                                         ^^^^^^^^^^^^ `b` of stack `web`
      |
      = note: they are in different VLANs, which may be meant
    ");
}

#[test]
fn two_targets_with_one_endpoint_are_one_place() {
    let settings = format!("{SETTINGS}  again: {{proxmox: {{endpoint: 'https://192.0.2.10:8006/'}}}}\n");
    let world = Memory::new()
        .file("strata.yaml", settings)
        .file("stacks/one/stack.yaml", "proxmox: {target: pve, node: pve1}\nvms: {a: {vmId: 100}}\n")
        .file("stacks/two/stack.yaml", "proxmox: {target: again, node: pve1}\nvms: {b: {vmId: 100}}\n");
    assert_snapshot!(mistakes(&world), @"
    error[vmid-collision]: VMID `100` is used twice on target `again`
     --> stacks/two/stack.yaml:2:17
      |
    2 | vms: {b: {vmId: 100}}
      |                 ^^^ `b` of stack `two`
      |
     ::: stacks/one/stack.yaml:2:17
      |
    2 | vms: {a: {vmId: 100}}
      |                 --- `a` of stack `one`
    ");
}

#[test]
fn ranges() {
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file(
            "stacks/a/stack.yaml",
            "proxmox: {target: pve, node: pve1, idRange: 100-199}\nvms: {a: {vmId: 250}}\n",
        )
        .file(
            "stacks/b/stack.yaml",
            "proxmox: {target: pve, node: pve1, idRange: 110-120}\nvms: {b: {vmId: 115}}\n",
        )
        .file(
            "stacks/c/stack.yaml",
            "proxmox: {target: pve, node: pve1, idRange: 150-299}\nvms: {c: {vmId: 151}}\n",
        );
    assert_snapshot!(mistakes(&world), @"
    error[outside-id-range]: the VMID `250` of `a` is outside the stack's range `100-199`
     --> stacks/a/stack.yaml:2:17
      |
    1 | proxmox: {target: pve, node: pve1, idRange: 100-199}
      |                                             ------- the range
    2 | vms: {a: {vmId: 250}}
      |                 ^^^
    error[id-range-overlap]: the ranges `100-199` and `110-120` overlap
     --> stacks/b/stack.yaml:1:45
      |
    1 | proxmox: {target: pve, node: pve1, idRange: 110-120}
      |                                             ^^^^^^^ of stack `b`
      |
     ::: stacks/a/stack.yaml:1:45
      |
    1 | proxmox: {target: pve, node: pve1, idRange: 100-199}
      |                                             ------- of stack `a`
    error[id-range-overlap]: the ranges `100-199` and `150-299` overlap
     --> stacks/c/stack.yaml:1:45
      |
    1 | proxmox: {target: pve, node: pve1, idRange: 150-299}
      |                                             ^^^^^^^ of stack `c`
      |
     ::: stacks/a/stack.yaml:1:45
      |
    1 | proxmox: {target: pve, node: pve1, idRange: 100-199}
      |                                             ------- of stack `a`
    ");
}

#[test]
fn two_stacks_of_one_name() {
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/a/web/stack.yaml", "vms: {}\n")
        .file("stacks/b/web/stack.yaml", "vms: {}\n");
    assert_snapshot!(mistakes(&world), @"
    error[name-collision]: two stacks are called `web`
     --> stacks/b/web/stack.yaml:1:1
      |
    1 | vms: {}
      | ^ this one
      |
     ::: stacks/a/web/stack.yaml:1:1
      |
    1 | vms: {}
      | - and this one
      |
      = hint: give one of them another `metadata.name`
    ");
}

#[test]
fn one_mac_for_many() {
    assert_snapshot!(mistakes(&web("vms: {a: {vmId: 100, count: 2, network: [{mac: \"BC:24:11:00:00:01\"}]}}\n")), @r#"
    error[mac-collision]: the 2 machines of `a` would share this MAC
     --> stacks/web/stack.yaml:3:48
      |
    3 | vms: {a: {vmId: 100, count: 2, network: [{mac: "BC:24:11:00:00:01"}]}}
      |                                                ^^^^^^^^^^^^^^^^^^^
      |
      = hint: leave it out: each machine then gets one of its own
    "#);
}
