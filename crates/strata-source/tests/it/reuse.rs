//! Profiles and `each`: one place for what several guests have in common.

use insta::assert_snapshot;
use strata_source::world::Memory;

use crate::{SETTINGS, clean, mistakes, web};

const PROFILES: &str = "\
profiles:
  base: {memory: 1024, cores: 1, tags: [base, '{env}'], cloudInit: {user: debian, searchDomain: a.example}, network: [{bridge: vmbr0, vlan: 7}]}
  big: {memory: 8G, cloudInit: {searchDomain: b.example}, tags: [big]}
  from-cd: {iso: local:iso/a.iso}
  gpu: {labels: {gpu: '1'}, cores: 8}
";

fn world(stack: &str) -> Memory {
    Memory::new()
        .file("strata.yaml", format!("{SETTINGS}{PROFILES}"))
        .file(
            "stacks/web/stack.yaml",
            format!(
                "metadata: {{name: web, environment: dev}}\nproxmox: {{target: pve, node: pve1}}\n{stack}"
            ),
        )
        .file("clusters/lab/cluster.yaml", CLUSTER)
}

const CLUSTER: &str = "\
metadata: {name: lab, environment: dev}
cluster:
  talos: {version: v1.13.8}
  kubernetes: {version: v1.36.1}
  network: {cidr: 198.51.100.0/24, gateway: 198.51.100.1, bridge: vmbr0}
  topology:
    controlPlane: {count: 1, addresses: 198.51.100.41}
    workers: {count: 1, addresses: 198.51.100.51, use: [gpu], labels: {tier: '2'}}
  nodes: {lab-cp-1: {use: [big]}}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}, vm: {idBase: 9300}}
";

#[test]
fn later_profiles_win_and_a_guest_wins_over_all() {
    let repository = clean(&world(
        "\
vms:
  a: {vmId: 100, use: [base, big, from-cd], cores: 4, network: {net0: {ip: 192.0.2.5/24}}}
  b: {vmId: 101, use: [big, base], image: local:import/b.qcow2}
  c: {vmId: 102, use: [from-cd], image: local:import/c.qcow2}
containers:
  d: {vmId: 103, use: [base], image: local:vztmpl/a.tar.zst}
",
    ));
    let stack = repository.stack("web", None).unwrap().machines().unwrap();
    let a = stack.vms.get("a").unwrap();
    assert_eq!((a.hardware.cores, a.hardware.memory.unwrap().to_string().as_str()), (Some(4), "8192M"));
    assert_eq!(a.guest.tags, ["big"], "a list replaces the one before");
    let cloud_init = a.cloud_init.as_ref().unwrap();
    assert!(cloud_init.user.is_some(), "maps are laid key by key");
    assert_eq!(cloud_init.search_domain.as_deref(), Some("b.example"));
    let nic = a.hardware.network.get("net0").unwrap();
    assert!(nic.ip.is_some() && nic.vlan == Some(7));
    assert!(a.iso.is_some());
    let b = stack.vms.get("b").unwrap();
    assert_eq!(b.hardware.memory.unwrap().to_string(), "1024M");
    assert_eq!(b.guest.tags, ["base", "dev"]);
    let c = stack.vms.get("c").unwrap();
    assert!(c.iso.is_none() && c.image.is_some(), "what excludes a field of a profile takes its place");
    let d = stack.containers.get("d").unwrap();
    assert_eq!(d.memory.unwrap().to_string(), "1024M", "fields that a container has not are left out");
    let lab = repository.stack("lab", None).unwrap().cluster().unwrap();
    let machines = lab.machines("lab", &mut strata_diagnostics::Diagnostics::new());
    assert_eq!(machines[0].memory.unwrap().to_string(), "8192M");
    assert_eq!(machines[1].cores, Some(8));
    assert_eq!(machines[1].merged(|settings| &settings.labels).len(), 2);
}

#[test]
fn an_environment_changes_a_profile_and_so_all_who_use_it() {
    let world = world("vms:\n  a: {vmId: 100, name: 'a-{env}', use: [base, big, from-cd]}\n").file(
        "environments/prod.yaml",
        "offsets: {vmId: 1000}\nprofiles: {big: {memory: 16G}, huge: {cores: 32}}\nstacks: {web: {vms: {a: {use: [big, huge, from-cd]}}}}\n",
    );
    let repository = clean(&world);
    let prod = repository.stack("web", Some("prod")).unwrap().machines().unwrap();
    let a = prod.vms.get("a").unwrap();
    assert_eq!((a.hardware.memory.unwrap().to_string().as_str(), a.hardware.cores), ("16384M", Some(32)));
}

#[test]
fn a_stack_has_profiles_of_its_own() {
    let stack = "profiles: {base: {memory: 512}}\nvms:\n  a: {vmId: 100, use: [base, big, from-cd]}\n  b: {vmId: 101, use: [base], iso: local:iso/a.iso}\n";
    let shown = mistakes(&world(stack));
    assert_snapshot!(shown, @"
    warning[unused]: nothing uses the profile `base`
     --> strata.yaml:5:3
      |
    5 |   base: {memory: 1024, cores: 1, tags: [base, '{env}'], cloudInit: {user: debian, searchDomain: a.example}, network: [{bridge: vmbr0,...
      |   ^^^^
    ");
    let (repository, _) = crate::load(&world(stack));
    let b = repository.stack("web", None).unwrap().machines().unwrap().vms.get("b").unwrap();
    assert_eq!(b.hardware.memory.unwrap().to_string(), "512M");
}

#[test]
fn mistakes_of_profiles_are_told_once_where_they_are() {
    let settings = "\
profiles:
  base: {memroy: 1024, cores: many, use: [big]}
  big: [1]
  idle: {cores: 1}
defaults: {vm: {use: [base]}}
";
    let world = Memory::new().file("strata.yaml", format!("{SETTINGS}{settings}")).file(
        "stacks/web/stack.yaml",
        "proxmox: {target: pve, node: pve1}\nvms:\n  a: {vmId: 100, use: [base, bse]}\n  b: {vmId: 101, use: [base]}\n  c: {vmId: 102, use: base}\n",
    );
    assert_snapshot!(mistakes(&world), @"
    error[unknown-key]: `base` has no key `memroy`
     --> strata.yaml:5:10
      |
    5 |   base: {memroy: 1024, cores: many, use: [big]}
      |          ^^^^^^
      |
      = note: allowed here: vmId, count, use, ip, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, ha and 39 more
      = hint: did you mean `memory`?
    error[wrong-type]: expected a whole number, found text `many`
     --> strata.yaml:5:31
      |
    5 |   base: {memroy: 1024, cores: many, use: [big]}
      |                               ^^^^ `cores` takes a whole number from 1 to 1024
    error[not-in-a-profile]: a profile has no `use`
     --> strata.yaml:5:37
      |
    5 |   base: {memroy: 1024, cores: many, use: [big]}
      |                                     ^^^
      |
      = hint: write it on the guests that use the profile
    error[wrong-type]: expected a mapping, found a list
     --> strata.yaml:6:8
      |
    6 |   big: [1]
      |        ^^^ `big` takes a mapping
    error[not-a-default]: defaults have no `use`
     --> strata.yaml:8:17
      |
    8 | defaults: {vm: {use: [base]}}
      |                 ^^^
      |
      = hint: write the fields themselves under `defaults`
    error[unknown-profile]: there is no profile `bse`
     --> stacks/web/stack.yaml:3:30
      |
    3 |   a: {vmId: 100, use: [base, bse]}
      |                              ^^^
      |
      = hint: did you mean `base`?
    error[wrong-type]: expected a list, found text `base`
     --> stacks/web/stack.yaml:5:23
      |
    5 |   c: {vmId: 102, use: base}
      |                       ^^^^ `use` takes a list
      |
      = hint: write `[base]`
    ");
    let idle = Memory::new()
        .file("strata.yaml", format!("{SETTINGS}profiles: {{idle: {{cores: 1}}}}\n"))
        .file("stacks/web/stack.yaml", "proxmox: {target: pve, node: pve1}\nvms: {a: {vmId: 100}}\n");
    assert_snapshot!(mistakes(&idle), @"
    warning[unused]: nothing uses the profile `idle`
     --> strata.yaml:4:12
      |
    4 | profiles: {idle: {cores: 1}}
      |            ^^^^
    ");
}

const DESKS: &str = "\
vms:
  desk:
    cores: 2
    network: [{bridge: vmbr0, gateway: 192.0.2.1}]
    each:
      alice: {vmId: 9301, ip: 192.0.2.31/24}
      bob: {vmId: 9302, ip: 192.0.2.32/24, cores: 8, name: robert}
  files: {vmId: 9310, dependsOn: [vms.desk]}
  mail: {vmId: 9311, dependsOn: [vms.desk.alice, vms.desk-bob]}
outputs: {all: 'vms.desk[*].address', one: vms.desk.alice.address, same: vms.desk-alice.name}
";

#[test]
fn each_entry_is_a_guest_with_a_name_that_stays() {
    let repository = clean(&web(DESKS));
    let stack = repository.stack("web", None).unwrap().machines().unwrap();
    let names: Vec<(String, u32)> = stack.vm_instances().into_iter().map(|vm| (vm.name, vm.vm_id)).collect();
    assert_eq!(names[..2], [("desk-alice".to_owned(), 9301), ("robert".to_owned(), 9302)]);
    let alice = stack.vms.get("desk-alice").unwrap();
    let nic = alice.hardware.network.get("net0").unwrap();
    assert!(nic.gateway.is_some() && nic.bridge.is_some());
    assert_eq!(nic.ip.unwrap().address().unwrap().to_string(), "192.0.2.31/24");
    assert_eq!(stack.vms.get("desk-bob").unwrap().hardware.cores, Some(8));
    assert_eq!(stack.vms_named("desk").unwrap().keys, ["desk-alice", "desk-bob"]);
    assert_eq!(stack.vms_named("desk.bob").unwrap().keys, ["desk-bob"]);
    assert!(stack.vms_named("des").is_none() && stack.vms_named("desk.carol").is_none());
}

#[test]
fn an_environment_adds_and_leaves_out_entries() {
    let stack = DESKS
        .replace("  files:", "    name: 'desk-{env}'\n  files:")
        .replace(", name: robert", "")
        .replace("9310", "9310, name: 'files-{env}'")
        .replace("9311", "9311, name: 'mail-{env}'");
    let world = Memory::new().file("strata.yaml", SETTINGS).file(
        "stacks/web/stack.yaml",
        format!("metadata: {{name: web, environment: dev}}\nproxmox: {{target: pve, node: pve1}}\n{stack}"),
    );
    let overlay = "offsets: {vmId: 1000, addresses: {192.0.2.0/24: 198.51.100.0/24}}\nstacks: {web: {vms: {desk: {each: {bob: null, carol: {vmId: 9500, use: [], ip: 198.51.100.33/24}}}, mail: {dependsOn: [vms.desk.carol]}}}}\n";
    let repository = clean(&world.clone().file("environments/prod.yaml", overlay));
    let prod = repository.stack("web", Some("prod")).unwrap().machines().unwrap();
    let names: Vec<(String, u32)> = prod.vm_instances().into_iter().map(|vm| (vm.name, vm.vm_id)).collect();
    assert_eq!(names[..2], [("desk-prod-alice".to_owned(), 10301), ("desk-prod-carol".to_owned(), 9500)]);
    let broken = overlay.replace(", mail: {dependsOn: [vms.desk.carol]}", "");
    assert_snapshot!(mistakes(&world.file("environments/prod.yaml", broken)), @"
    error[left-out]: the guest `desk-bob` is left out of `prod`, and this needs it
      --> stacks/web/stack.yaml:12:70
       |
    12 |   mail: {vmId: 9311, name: 'mail-{env}', dependsOn: [vms.desk.alice, vms.desk-bob]}
       |                                                                      ^^^^^^^^^^^^
       |
      ::: environments/prod.yaml:2:41
       |
     2 | stacks: {web: {vms: {desk: {each: {bob: null, carol: {vmId: 9500, use: [], ip: 198.51.100.33/24}}}}}}
       |                                         ---- left out here
       |
       = hint: leave this out too, or keep the guest
    ");
}

#[test]
fn what_each_cannot_be() {
    assert_snapshot!(mistakes(&web("\
vms:
  desk:
    vmId: 9300
    count: 2
    coers: 2
    each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
  pc:
    each: {a: {vmId: 9310}, b: {}}
  pc-a: {vmId: 9320}
  none: {vmId: 9330, each: [a]}
outputs: {one: vms.pc.address}
")), @"
    error[conflicting-keys]: `vmId` beside `each` would be the same for every `desk`
     --> stacks/web/stack.yaml:5:5
      |
    5 |     vmId: 9300
      |     ^^^^
      |
      = hint: write it in each entry: a number by order moves when an entry goes
    error[unknown-key]: `desk-alice` has no key `coers`
     --> stacks/web/stack.yaml:7:5
      |
    7 |     coers: 2
      |     ^^^^^
      |
      = note: allowed here: vmId, count, use, ip, name, node, pool, tags, notes, protect, protection, onboot, startup, started, firewall, ha and 39 more
      = hint: did you mean `cores`?
    error[conflicting-keys]: `count` and `each` cannot stand together
     --> stacks/web/stack.yaml:8:5
      |
    6 |     count: 2
      |     ----- the other one
    7 |     coers: 2
    8 |     each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
      |     ^^^^
      |
      = hint: keep one of `each` or `count`
    error[missing-key]: `desk-bob` has no `vmId`
     --> stacks/web/stack.yaml:8:33
      |
    8 |     each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
      |                                 ^^^
      |
      = hint: `vmId`: the number in the Proxmox cluster; with `count`, of the first
    error[invalid-value]: `nowhere` is not an address with a prefix
     --> stacks/web/stack.yaml:8:43
      |
    8 |     each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
      |                                           ^^^^^^^ `ip` takes `dhcp`, or an address with its prefix such as `192.0.2.10/24`
    error[conflicting-keys]: an entry of `each` is one guest: it has no `each`
     --> stacks/web/stack.yaml:8:52
      |
    8 |     each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
      |                                                    ^^^^
    error[invalid-name]: `-carol` is not a host name: letters, digits and `-`, not at either end
     --> stacks/web/stack.yaml:8:63
      |
    8 |     each: {alice: {vmId: 9301}, bob: {ip: nowhere, each: {}}, -carol: {vmId: 9303}}
      |                                                               ^^^^^^
    error[missing-key]: `pc-b` has no `vmId`
      --> stacks/web/stack.yaml:10:29
       |
    10 |     each: {a: {vmId: 9310}, b: {}}
       |                             ^
       |
       = hint: `vmId`: the number in the Proxmox cluster; with `count`, of the first
    error[name-collision]: two guests are called `pc-a`
      --> stacks/web/stack.yaml:11:3
       |
    10 |     each: {a: {vmId: 9310}, b: {}}
       |            - the other one
    11 |   pc-a: {vmId: 9320}
       |   ^^^^
    error[wrong-type]: expected a mapping, found a list
      --> stacks/web/stack.yaml:12:28
       |
    12 |   none: {vmId: 9330, each: [a]}
       |                            ^^^ `each` takes a mapping
    error[unknown-output]: `pc` stands for 1 machine
      --> stacks/web/stack.yaml:13:16
       |
    13 | outputs: {one: vms.pc.address}
       |                ^^^^^^^^^^^^^^
       |
       = hint: write `[*]` for all of them or `[0]` for the first
    ");
}
