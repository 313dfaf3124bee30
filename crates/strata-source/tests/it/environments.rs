//! Environments: overlays, membership, and mistakes that point into the overlay.

use insta::assert_snapshot;
use strata_source::world::Memory;

use crate::{SETTINGS, clean, mistakes};

const STACK: &str = "\
metadata: {name: web, environment: dev}
proxmox: {target: pve, node: pve1}
vms:
  web: {vmId: 100, count: 1, cores: 1, iso: local:iso/a.iso, network: [{bridge: vmbr0}, {bridge: vmbr1}]}
  debug: {vmId: 110, iso: local:iso/a.iso}
";

fn world(overlay: &str) -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/web/stack.yaml", STACK)
        .file("environments/prod.yaml", overlay)
}

const PROD: &str = "\
targets:
  pve: {proxmox: {endpoint: 'https://198.51.100.10:8006'}}
stacks:
  web:
    vms:
      web: {count: 3, cores: 4, network: {net1: {vlan: 7}}}
      debug: null
";

#[test]
fn an_overlay_changes_some_and_keeps_the_rest() {
    let repository = clean(&world(PROD));
    assert_eq!(repository.stacks()[0].environments, ["dev", "prod"]);
    let dev = repository.stack("web", None).unwrap();
    assert!(dev.is_default_environment);
    assert_eq!(dev.machines().unwrap().vm_instances().len(), 2);
    let prod = repository.stack("web", Some("prod")).unwrap();
    let machines = prod.machines().unwrap();
    assert_eq!(machines.vm_instances().len(), 3);
    let web = machines.vms.get("web").unwrap();
    assert_eq!(web.hardware.cores, Some(4));
    let nic = web.hardware.network.get("net1").unwrap();
    assert_eq!((nic.bridge.as_ref().unwrap().as_str(), nic.vlan), ("vmbr1", Some(7)));
    assert_eq!(repository.sources.path(web.hardware.places.value("cores").file), "environments/prod.yaml");
    let (_, target) = repository.proxmox(prod).unwrap();
    assert_eq!(target.endpoint.as_str(), "https://198.51.100.10:8006");
    assert!(target.token.is_some(), "the token is the base's");
    assert!(repository.stack("web", Some("staging")).is_none());
}

#[test]
fn a_stack_can_be_part_of_an_environment_without_a_change() {
    let overlay = "targets:\n  pve: {proxmox: {endpoint: 'https://198.51.100.10:8006'}}\nstacks:\n  web:\n";
    let repository = clean(&world(overlay));
    assert_eq!(repository.stack("web", Some("prod")).unwrap().machines().unwrap().vms.len(), 2);
}

#[test]
fn mistakes_point_into_the_overlay() {
    assert_snapshot!(mistakes(&world("\
targets:
  pve: {proxmox: {endpoint: 'https://198.51.100.10:8006'}}
stacks:
  web:
    vms: {web: {cors: 4, memory: much, template: nope}}
  wbe: {}
clusters: {homelab: {}}
")), @"
    error[unknown-key]: `web` has no key `cors`
     --> environments/prod.yaml:5:17
      |
    5 |     vms: {web: {cors: 4, memory: much, template: nope}}
      |                 ^^^^
      |
      = note: allowed here: vmId, count, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, onChange, timeouts, dependsOn and 30 more
      = hint: did you mean `cores`?
    error[invalid-value]: `much` is not a size
     --> environments/prod.yaml:5:34
      |
    5 |     vms: {web: {cors: 4, memory: much, template: nope}}
      |                                  ^^^^ `memory` takes a number of MiB, or a size with its unit such as `512M` or `4GiB`
    error[conflicting-keys]: `iso` and `template` cannot stand together
     --> environments/prod.yaml:5:40
      |
    5 |     vms: {web: {cors: 4, memory: much, template: nope}}
      |                                        ^^^^^^^^
      |
     ::: stacks/web/stack.yaml:4:40
      |
    4 |   web: {vmId: 100, count: 1, cores: 1, iso: local:iso/a.iso, network: [{bridge: vmbr0}, {bridge: vmbr1}]}
      |                                        --- the other one
      |
      = hint: keep one of `template`, `image` or `iso`
    error[unknown-stack]: there is no stack `wbe` in `stacks/`
     --> environments/prod.yaml:6:3
      |
    6 |   wbe: {}
      |   ^^^
      |
      = note: known: web
      = hint: did you mean `web`?
    error[unknown-stack]: there is no stack `homelab` in `clusters/`
     --> environments/prod.yaml:7:12
      |
    7 | clusters: {homelab: {}}
      |            ^^^^^^^
    ");
}

#[test]
fn two_environments_on_one_target_must_not_share() {
    assert_snapshot!(mistakes(&world("stacks:\n  web:\n    vms: {web: {vmId: 200}}\n")), @"
    error[name-collision]: the name `web-1` is used in both environments `dev` and `prod` on target `pve`
     --> stacks/web/stack.yaml:4:3
      |
    4 |   web: {vmId: 100, count: 1, cores: 1, iso: local:iso/a.iso, network: [{bridge: vmbr0}, {bridge: vmbr1}]}
      |   ^^^ `web-1` in `prod`
      |
      = hint: give `prod` another in environments/prod.yaml, or another target
    error[name-collision]: the name `debug` is used in both environments `dev` and `prod` on target `pve`
     --> stacks/web/stack.yaml:5:3
      |
    5 |   debug: {vmId: 110, iso: local:iso/a.iso}
      |   ^^^^^ `debug` in `prod`
      |
      = hint: give `prod` another in environments/prod.yaml, or another target
    error[vmid-collision]: VMID `110` is used in both environments `dev` and `prod` on target `pve`
     --> stacks/web/stack.yaml:5:17
      |
    5 |   debug: {vmId: 110, iso: local:iso/a.iso}
      |                 ^^^ `debug` in `prod`
      |
      = hint: give `prod` another in environments/prod.yaml, or another target
    ");
}
