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
      = note: allowed here: vmId, count, use, ip, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, ha and 39 more
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
      = hint: put `{env}` into the `name`, or write another in environments/prod.yaml, or another target
    error[name-collision]: the name `debug` is used in both environments `dev` and `prod` on target `pve`
     --> stacks/web/stack.yaml:5:3
      |
    5 |   debug: {vmId: 110, iso: local:iso/a.iso}
      |   ^^^^^ `debug` in `prod`
      |
      = hint: put `{env}` into the `name`, or write another in environments/prod.yaml, or another target
    error[vmid-collision]: VMID `110` is used in both environments `dev` and `prod` on target `pve`
     --> stacks/web/stack.yaml:5:17
      |
    5 |   debug: {vmId: 110, iso: local:iso/a.iso}
      |                 ^^^ `debug` in `prod`
      |
      = hint: write `offsets: {vmId: 1000}` or another number in environments/prod.yaml, or another target
    ");
}

const NAMED: &str = "\
metadata: {name: web, environment: dev, description: 'the web of {env}'}
proxmox: {target: pve, node: pve1, pool: '{env}-web', idRange: 9100-9199}
templates:
  base: {vmId: 9100, name: 'base-{env}', image: local:iso/a.iso}
vms:
  web:
    vmId: 9110
    count: 2
    name: web-{env}
    template: base
    tags: [web, '{env}']
    notes: '{env}: {\"a\": 1}, {{env}} as it is'
    network: [{bridge: vmbr0, vlan: 10, ip: 192.0.2.10/24, gateway: 192.0.2.1}]
    firewall: {rules: [{direction: in, action: ACCEPT, source: '192.0.2.0/26,203.0.113.7'}]}
containers:
  dns: {vmId: 9150, name: 'dns-{env}', hostname: 'dns.{env}.example', image: local:vztmpl/a.tar.zst, network: [{bridge: vmbr0, ip: 192.0.2.53/24}]}
";

const STAGING: &str = "\
include: [stacks]
offsets:
  vmId: 1000
  addresses: {192.0.2.0/24: 198.51.100.0/24, 192.0.2.1/32: 198.51.100.254/32}
  vlans: {10: 20}
  bridges: {vmbr0: vmbr1}
tags: [not-dev, 'in-{env}']
";

fn named(overlay: &str) -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/web/stack.yaml", NAMED)
        .file("environments/staging.yaml", overlay)
}

#[test]
fn d8_a_whole_environment_comes_up_from_its_offsets() {
    let repository = clean(&named(STAGING));
    let dev = repository.stack("web", None).unwrap();
    assert_eq!(dev.description(), Some("the web of dev"));
    let staging = repository.stack("web", Some("staging")).unwrap();
    assert_eq!(staging.description(), Some("the web of staging"));
    let machines = staging.machines().unwrap();
    let names: Vec<(String, u32)> =
        machines.vm_instances().into_iter().map(|vm| (vm.name, vm.vm_id)).collect();
    assert_eq!(names, [("web-staging-1".to_owned(), 10110), ("web-staging-2".to_owned(), 10111)]);
    assert_eq!(machines.template_instances()[0].name, "base-staging");
    let proxmox = machines.proxmox.as_ref().unwrap();
    assert_eq!(proxmox.pool.as_ref().unwrap().as_str(), "staging-web");
    assert_eq!(proxmox.id_range.unwrap().to_string(), "10100-10199");
    let web = machines.vms.get("web").unwrap();
    assert_eq!(web.guest.tags, ["web", "staging", "not-dev", "in-staging"]);
    assert_eq!(web.guest.notes.as_deref(), Some("staging: {\"a\": 1}, {env} as it is"));
    let nic = web.hardware.network.get("net0").unwrap();
    assert_eq!(nic.ip.unwrap().address().unwrap().to_string(), "198.51.100.10/24");
    assert_eq!(nic.gateway.unwrap().to_string(), "198.51.100.254", "the smaller network decides");
    assert_eq!((nic.vlan, nic.bridge.as_ref().unwrap().as_str()), (Some(20), "vmbr1"));
    let rule = &web.guest.firewall.as_ref().unwrap().rules[0];
    assert_eq!(rule.source.as_deref(), Some("198.51.100.0/26,203.0.113.7"));
    let dns = machines.containers.get("dns").unwrap();
    assert_eq!(dns.hostname.as_deref(), Some("dns.staging.example"));
    assert_eq!(dns.guest.tags, ["not-dev", "in-staging"]);
    assert_ne!(
        repository.source_digest(dev, &named(STAGING)),
        repository.source_digest(staging, &named(STAGING))
    );
}

#[test]
fn what_an_environment_writes_itself_is_not_moved() {
    let staging = STAGING.replace(", 192.0.2.1/32: 198.51.100.254/32", "");
    let overlay = format!(
        "{staging}stacks: {{web: {{vms: {{web: {{vmId: 9190, network: {{net0: {{ip: 192.0.2.99/24, gateway: 192.0.2.1}}}}}}}}, proxmox: {{idRange: 9190-10199}}}}}}\n"
    );
    let repository = clean(&named(&overlay));
    let machines = repository.stack("web", Some("staging")).unwrap().machines().unwrap();
    let web = machines.vms.get("web").unwrap();
    assert_eq!(web.guest.vm_id.value, 9190);
    let nic = web.hardware.network.get("net0").unwrap();
    assert_eq!(nic.ip.unwrap().address().unwrap().to_string(), "192.0.2.99/24");
    assert_eq!(machines.templates.get("base").unwrap().vm_id.value, 10100);
}

#[test]
fn offsets_that_cannot_be() {
    assert_snapshot!(mistakes(&named("\
include: [stack]
offsets:
  vmid: 1
  vmId: -9050
  addresses: {192.0.2.0/24: 198.51.100.0/25, 192.0.2.7/25: 198.51.100.0/25, 10.0.0.0/8: 11.0.0.0/8, 192.0.2.8/33: x}
  vlans: {4095: 3}
stacks: {web: }
")), @"
    error[out-of-range]: `9100` moved by -9050 is 50; VMIDs go from 100 to 999999999
     --> stacks/web/stack.yaml:2:64
      |
    2 | proxmox: {target: pve, node: pve1, pool: '{env}-web', idRange: 9100-9199}
      |                                                                ^^^^^^^^^
      |
     ::: environments/staging.yaml:4:9
      |
    4 |   vmId: -9050
      |         ----- moved by this
    error[out-of-range]: `9100` moved by -9050 is 50; VMIDs go from 100 to 999999999
     --> stacks/web/stack.yaml:4:16
      |
    4 |   base: {vmId: 9100, name: 'base-{env}', image: local:iso/a.iso}
      |                ^^^^
      |
     ::: environments/staging.yaml:4:9
      |
    4 |   vmId: -9050
      |         ----- moved by this
    error[vmid-collision]: VMID `9100` is used in both environments `dev` and `staging` on target `pve`
     --> stacks/web/stack.yaml:4:16
      |
    4 |   base: {vmId: 9100, name: 'base-{env}', image: local:iso/a.iso}
      |                ^^^^ `base-staging` in `staging`
      |
      = hint: write `offsets: {vmId: 1000}` or another number in environments/staging.yaml, or another target
    error[out-of-range]: `9110` moved by -9050 is 60; VMIDs go from 100 to 999999999
     --> stacks/web/stack.yaml:7:11
      |
    7 |     vmId: 9110
      |           ^^^^
      |
     ::: environments/staging.yaml:4:9
      |
    4 |   vmId: -9050
      |         ----- moved by this
    error[vmid-collision]: VMID `9110` is used in both environments `dev` and `staging` on target `pve`
     --> stacks/web/stack.yaml:7:11
      |
    7 |     vmId: 9110
      |           ^^^^ `web-staging-1` in `staging`
      |
      = hint: write `offsets: {vmId: 1000}` or another number in environments/staging.yaml, or another target
    error[ip-collision]: the address `192.0.2.10` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:13:45
       |
    13 |     network: [{bridge: vmbr0, vlan: 10, ip: 192.0.2.10/24, gateway: 192.0.2.1}]
       |                                             ^^^^^^^^^^^^^ `web-staging-1` in `staging`
       |
       = hint: write `offsets: {addresses: …}` or another address in environments/staging.yaml, or another target
    error[outside-id-range]: the VMID `100` of `dns-staging` is outside the stack's range `9100-9199`
      --> stacks/web/stack.yaml:16:15
       |
     2 | proxmox: {target: pve, node: pve1, pool: '{env}-web', idRange: 9100-9199}
       |                                                                --------- the range
    ...
    16 |   dns: {vmId: 9150, name: 'dns-{env}', hostname: 'dns.{env}.example', image: local:vztmpl/a.tar.zst, network: [{bridge: vmbr0, ip: 1...
       |               ^^^^
    error[ip-collision]: the address `192.0.2.53` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:16:132
       |
    16 | ...pl/a.tar.zst, network: [{bridge: vmbr0, ip: 192.0.2.53/24}]}
       |                                                ^^^^^^^^^^^^^ `dns-staging` in `staging`
       |
       = hint: write `offsets: {addresses: …}` or another address in environments/staging.yaml, or another target
    error[unknown-value]: expected `stacks`, `clusters` or `hypervisors`, found text `stack`
     --> environments/staging.yaml:1:11
      |
    1 | include: [stack]
      |           ^^^^^
      |
      = hint: did you mean `stacks`?
    error[unknown-key]: `offsets` has no key `vmid`
     --> environments/staging.yaml:3:3
      |
    3 |   vmid: 1
      |   ^^^^
      |
      = note: allowed here: vmId, addresses, vlans, bridges
      = hint: did you mean `vmId`?
    error[wrong-network]: `192.0.2.0/24` and `198.51.100.0/25` are not of one size
     --> environments/staging.yaml:5:29
      |
    5 |   addresses: {192.0.2.0/24: 198.51.100.0/25, 192.0.2.7/25: 198.51.100.0/25, 10.0.0.0/8: 11.0.0.0/8, 192.0.2.8/33: x}
      |               ------------  ^^^^^^^^^^^^^^^
      |               |
      |               this network
      |
      = hint: write both with the same prefix
    error[wrong-network]: `192.0.2.7/25` is an address in a network, not a network
     --> environments/staging.yaml:5:46
      |
    5 |   addresses: {192.0.2.0/24: 198.51.100.0/25, 192.0.2.7/25: 198.51.100.0/25, 10.0.0.0/8: 11.0.0.0/8, 192.0.2.8/33: x}
      |                                              ^^^^^^^^^^^^
      |
      = hint: write `192.0.2.0/25`
    error[invalid-name]: `192.0.2.8/33` is not a network such as `192.0.2.0/24`
     --> environments/staging.yaml:5:101
      |
    5 |   addresses: {192.0.2.0/24: 198.51.100.0/25, 192.0.2.7/25: 198.51.100.0/25, 10.0.0.0/8: 11.0.0.0/8, 192.0.2.8/33: x}
      |                                                                                                     ^^^^^^^^^^^^
    error[invalid-value]: `x` is not an address with a prefix
     --> environments/staging.yaml:5:115
      |
    5 |   addresses: {192.0.2.0/24: 198.51.100.0/25, 192.0.2.7/25: 198.51.100.0/25, 10.0.0.0/8: 11.0.0.0/8, 192.0.2.8/33: x}
      |                                                                                                                   ^ `192.0.2.8/33` takes an address with its prefix such as `192.0.2.10/24`
    error[invalid-name]: `4095` is not a VLAN tag from 1 to 4094
     --> environments/staging.yaml:6:11
      |
    6 |   vlans: {4095: 3}
      |           ^^^^
    ");
}

#[test]
fn a_collision_through_an_offset_shows_what_moved() {
    assert_snapshot!(mistakes(&named("\
offsets: {vmId: 50, addresses: {192.0.2.0/27: 192.0.2.32/27}}
stacks:
  web: {proxmox: {idRange: 9100-9299}}
")), @"
    error[vmid-collision]: VMID `9150` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:4:16
       |
     4 |   base: {vmId: 9100, name: 'base-{env}', image: local:iso/a.iso}
       |                ^^^^ `base-staging` in `staging`
    ...
    16 |   dns: {vmId: 9150, name: 'dns-{env}', hostname: 'dns.{env}.example', image: local:vztmpl/a.tar.zst, network: [{bridge: vmbr0, ip: 1...
       |               ---- `dns-dev` in `dev`
       |
      ::: environments/staging.yaml:1:17
       |
     1 | offsets: {vmId: 50, addresses: {192.0.2.0/27: 192.0.2.32/27}}
       |                 -- moves `base-staging` in `staging`
       |
       = hint: write `offsets: {vmId: 1000}` or another number in environments/staging.yaml, or another target
    error[ip-collision]: the address `192.0.2.53` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:16:132
       |
    16 | ...pl/a.tar.zst, network: [{bridge: vmbr0, ip: 192.0.2.53/24}]}
       |                                                ^^^^^^^^^^^^^ `dns-staging` in `staging`
       |
       = hint: write `offsets: {addresses: …}` or another address in environments/staging.yaml, or another target
    ");
    assert_snapshot!(mistakes(&named("\
offsets: {vmId: 40, addresses: {192.0.2.10/32: 192.0.2.53/32}}
stacks:
  web: {proxmox: {idRange: 9100-9299}, vms: {web: {count: 1}}, containers: {dns: {network: {net0: {ip: 192.0.2.54/24}}}}}
")), @"
    error[vmid-collision]: VMID `9150` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:7:11
       |
     7 |     vmId: 9110
       |           ^^^^ `web-staging-1` in `staging`
    ...
    16 |   dns: {vmId: 9150, name: 'dns-{env}', hostname: 'dns.{env}.example', image: local:vztmpl/a.tar.zst, network: [{bridge: vmbr0, ip: 1...
       |               ---- `dns-dev` in `dev`
       |
      ::: environments/staging.yaml:1:17
       |
     1 | offsets: {vmId: 40, addresses: {192.0.2.10/32: 192.0.2.53/32}}
       |                 -- moves `web-staging-1` in `staging`
       |
       = hint: write `offsets: {vmId: 1000}` or another number in environments/staging.yaml, or another target
    warning[ip-collision]: the address `192.0.2.53` is used in both environments `dev` and `staging` on target `pve`
      --> stacks/web/stack.yaml:13:45
       |
    13 | ... ip: 192.0.2.10/24, gateway: 192.0.2.1}]
       |         ^^^^^^^^^^^^^ `web-staging-1` in `staging`
    ...
    16 | ...hostname: 'dns.{env}.example', image: local:vztmpl/a.tar.zst, network: [{bridge: vmbr0, ip: 192.0.2.53/24}]}
       |                                                                                                ------------- `dns-dev` in `dev`
       |
      ::: environments/staging.yaml:1:32
       |
     1 | offsets: {vmId: 40, addresses: {192.0.2.10/32: 192.0.2.53/32}}
       |                                ------------------------------ moves `web-staging-1` in `staging`
       |
       = hint: write `offsets: {addresses: …}` or another address in environments/staging.yaml, or another target
    ");
}

#[test]
fn names_without_a_value_and_words_that_stand_for_nothing() {
    let stack = "\
proxmox: {target: pve, node: pve1}
vms:
  a: {vmId: 100, name: 'a-{env}'}
  b: {vmId: 101, notes: 'in {enw} and {region}', name: {env}}
";
    let world = Memory::new().file("strata.yaml", SETTINGS).file("stacks/web/stack.yaml", stack);
    assert_snapshot!(mistakes(&world), @r#"
    error[no-environment]: `{env}` has no value: the stack names no environment
     --> stacks/web/stack.yaml:3:24
      |
    3 |   a: {vmId: 100, name: 'a-{env}'}
      |                        ^^^^^^^^^
      |
      = hint: name the one it is in without `-e`: `metadata: {environment: dev}`
    error[unknown-placeholder]: nothing stands for `{enw}` here
     --> stacks/web/stack.yaml:4:25
      |
    4 |   b: {vmId: 101, notes: 'in {enw} and {region}', name: {env}}
      |                         ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `{env}`? Braces that are text are written twice: `{{enw}}`
    error[wrong-type]: `{env}` without quotes is a mapping
     --> stacks/web/stack.yaml:4:56
      |
    4 |   b: {vmId: 101, notes: 'in {enw} and {region}', name: {env}}
      |                                                        ^^^^^
      |
      = hint: write `"{env}"`
    "#);
}

#[test]
fn an_environment_name_that_does_not_fit_is_told_where_it_is_used() {
    let world = Memory::new()
        .file("strata.yaml", format!("{SETTINGS}defaults: {{vm: {{tags: ['{{env}}']}}}}\n"))
        .file(
            "stacks/web/stack.yaml",
            "metadata: {name: web, environment: Dev_1}\nproxmox: {target: pve, node: pve1}\nvms: {a: {vmId: 100, name: 'a-{env}'}}\n",
        );
    assert_snapshot!(mistakes(&world), @"
    error[invalid-value]: `Dev_1` is not a tag: lower-case letters, digits, `_`, `-`, `+` and `.`
     --> strata.yaml:4:24
      |
    4 | defaults: {vm: {tags: ['{env}']}}
      |                        ^^^^^^^
      |
      = note: `{env}` is `Dev_1` here
    error[invalid-value]: `a-Dev_1` is not a host name: letters, digits and `-`, not at either end
     --> stacks/web/stack.yaml:3:28
      |
    3 | vms: {a: {vmId: 100, name: 'a-{env}'}}
      |                            ^^^^^^^^^
      |
      = note: `{env}` is `Dev_1` here
    ");
}

#[test]
fn null_leaves_out_and_what_still_needs_it_is_underlined() {
    let stack = "\
metadata: {name: web, environment: dev}
proxmox: {target: pve, node: pve1, pool: red}
images: {i: {url: 'https://x.example/i.qcow2', checksum: 'sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f'}}
templates: {t: {vmId: 100, name: 't-{env}', image: i}}
vms:
  a: {vmId: 101, name: 'a-{env}', template: t, dependsOn: [vms.b]}
  b: {vmId: 102, name: 'b-{env}'}
outputs: {b: vms.b.address}
";
    let world = |overlay: &str| {
        Memory::new()
            .file("strata.yaml", SETTINGS)
            .file("hypervisors/dc.yaml", "metadata: {environment: dev}\nproxmox: {target: pve, nodes: [pve1]}\npools: {red: {}}\n")
            .file("stacks/web/stack.yaml", stack)
            .file("stacks/app/stack.yaml", "metadata: {name: app, environment: dev, dependsOn: [web]}\nproxmox: {target: pve, node: pve1}\nvms: {c: {vmId: 110, name: 'c-{env}', template: web/t}}\n")
            .file("environments/prod.yaml", format!("offsets: {{vmId: 1000}}\ninclude: [stacks, hypervisors]\n{overlay}"))
    };
    let repository = clean(&world(
        "stacks: {web: {vms: {a: null}, templates: {t: null}, images: {i: null}}, app: null}\nhypervisors: {dc: null}\n",
    ));
    let prod = repository.stack("web", Some("prod")).unwrap().machines().unwrap();
    assert_eq!((prod.vms.len(), prod.templates.len()), (1, 0));
    assert!(repository.stack("app", Some("prod")).is_none() && repository.stack("app", None).is_some());
    assert_snapshot!(mistakes(&world(
        "stacks: {web: {vms: {b: null}, templates: {t: null}}}\nhypervisors: {dc: {pools: {red: null}}}\n"
    )), @"
    error[left-out]: the template `t` is left out of `prod`, and this needs it
     --> stacks/app/stack.yaml:3:49
      |
    3 | vms: {c: {vmId: 110, name: 'c-{env}', template: web/t}}
      |                                                 ^^^^^
      |
     ::: environments/prod.yaml:3:47
      |
    3 | stacks: {web: {vms: {b: null}, templates: {t: null}}}
      |                                               ---- left out here
      |
      = hint: leave this out too, or keep the template
    error[left-out]: the pool `red` is left out of `prod`, and this needs it
     --> stacks/web/stack.yaml:2:42
      |
    2 | proxmox: {target: pve, node: pve1, pool: red}
      |                                          ^^^
      |
     ::: environments/prod.yaml:4:33
      |
    4 | hypervisors: {dc: {pools: {red: null}}}
      |                                 ---- left out here
      |
      = hint: leave this out too, or keep the pool
    error[left-out]: the template `t` is left out of `prod`, and this needs it
     --> stacks/web/stack.yaml:6:45
      |
    6 |   a: {vmId: 101, name: 'a-{env}', template: t, dependsOn: [vms.b]}
      |                                             ^
      |
     ::: environments/prod.yaml:3:47
      |
    3 | stacks: {web: {vms: {b: null}, templates: {t: null}}}
      |                                               ---- left out here
      |
      = hint: leave this out too, or keep the template
    error[left-out]: the guest `b` is left out of `prod`, and this needs it
     --> stacks/web/stack.yaml:6:60
      |
    6 |   a: {vmId: 101, name: 'a-{env}', template: t, dependsOn: [vms.b]}
      |                                                            ^^^^^
      |
     ::: environments/prod.yaml:3:25
      |
    3 | stacks: {web: {vms: {b: null}, templates: {t: null}}}
      |                         ---- left out here
      |
      = hint: leave this out too, or keep the guest
    error[left-out]: the guest `b` is left out of `prod`, and this needs it
     --> stacks/web/stack.yaml:8:14
      |
    8 | outputs: {b: vms.b.address}
      |              ^^^^^^^^^^^^^
      |
     ::: environments/prod.yaml:3:25
      |
    3 | stacks: {web: {vms: {b: null}, templates: {t: null}}}
      |                         ---- left out here
      |
      = hint: leave this out too, or keep the guest
    ");
    assert_snapshot!(mistakes(&world("stacks:\n  web: null\n")), @"
    error[left-out]: the stack `web` is left out of `prod`, and `app` needs it
     --> stacks/app/stack.yaml:1:53
      |
    1 | metadata: {name: app, environment: dev, dependsOn: [web]}
      |                                                     ^^^
      |
     ::: environments/prod.yaml:4:8
      |
    4 |   web: null
      |        ---- left out here
      |
      = hint: leave `app` out too, or keep `web`
    error[left-out]: the stack `web` is left out of `prod`, and `app` needs it
     --> stacks/app/stack.yaml:3:49
      |
    3 | vms: {c: {vmId: 110, name: 'c-{env}', template: web/t}}
      |                                                 ^^^^^
      |
     ::: environments/prod.yaml:4:8
      |
    4 |   web: null
      |        ---- left out here
      |
      = hint: leave `app` out too, or keep `web`
    ");
    let overlay = "stacks:\n  web: null\n";
    let own =
        world("").file("environments/dev.yaml", overlay).file("environments/qa.yaml", "stacks:\n  web: ~\n");
    assert_snapshot!(mistakes(&own), @"
    error[own-environment]: `web` is in `dev` unless `-e` says otherwise, and cannot be left out of it
     --> environments/dev.yaml:2:8
      |
    2 |   web: null
      |        ^^^^
      |
      = hint: give it another `metadata.environment`, or remove the line
    warning[unused]: `web` is left out of `qa`, which it would not be part of
     --> environments/qa.yaml:2:8
      |
    2 |   web: ~
      |        ^
      |
      = hint: to make it part of `qa`, write `web: {}`
    ");
}

#[test]
fn a_cluster_moves_with_its_environment() {
    let cluster = "\
metadata: {name: lab, environment: dev}
cluster:
  talos: {version: v1.13.8, clusterName: 'lab-{env}'}
  kubernetes: {version: v1.36.1}
  naming: '{env}-{role}-{n}'
  endpoint: https://192.0.2.40:6443
  network: {cidr: 192.0.2.0/24, gateway: 192.0.2.1, vip: 192.0.2.40, apiNames: ['api.{env}.example', 192.0.2.39], bridge: vmbr0, vlan: 10}
  topology:
    controlPlane: {count: 1, addresses: 192.0.2.41-192.0.2.43}
    workers: {count: 1, addresses: [192.0.2.51], idBase: 9350, labels: {stage: '{env}'}}
  nodes: {'{env}-cp-1': {cores: 3}}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}, vm: {idBase: 9300}}
outputs: {first: 'nodes.{env}-cp-1.address'}
";
    let staging = "\
include: [clusters]
offsets: {vmId: 1000, addresses: {192.0.2.0/24: 198.51.100.0/24}, vlans: {10: 20}}
tags: [blue]
";
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("clusters/lab/cluster.yaml", cluster)
        .file("environments/staging.yaml", staging);
    let repository = clean(&world);
    let lab = repository.stack("lab", Some("staging")).unwrap().cluster().unwrap();
    let machines = lab.machines("lab", &mut strata_diagnostics::Diagnostics::new());
    let told: Vec<String> = machines
        .iter()
        .map(|one| format!("{} {} {}", one.name, one.vm_id.unwrap().value, one.address.unwrap().value))
        .collect();
    assert_eq!(told, ["staging-cp-1 10300 198.51.100.41", "staging-worker-1 10350 198.51.100.51"]);
    assert_eq!(machines[0].cores, Some(3));
    assert_eq!(machines[1].merged(|settings| &settings.labels)["stage"], "staging");
    let network = lab.cluster.network.as_ref().unwrap();
    assert_eq!(network.vip.unwrap().to_string(), "198.51.100.40");
    assert_eq!(network.api_names, ["api.staging.example", "198.51.100.39"]);
    assert_eq!((network.vlan, network.cidr.to_string().as_str()), (Some(20), "198.51.100.0/24"));
    assert_eq!(lab.cluster.endpoint.as_ref().unwrap().as_str(), "https://198.51.100.40:6443");
    let vm = lab.proxmox.as_ref().unwrap().vm.as_ref().unwrap();
    assert_eq!(vm.tags.as_ref().unwrap(), &["kubernetes", "talos", "blue"]);
}
