//! Records, choices, references: what is read, and every mistake in one go.

use insta::assert_snapshot;
use strata_yaml::{Map, Raw, Spanned, Value, choice, record};

use crate::read;

choice! {
    /// The firmware.
    pub enum Bios { Seabios = "seabios", Ovmf = "ovmf" }
}

record! {
    /// Processor and memory.
    pub struct Hardware {
        /// how many cores each socket has
        "cores" cores: u32 [range(1, 128)] = 1;
        /// in MiB
        "memory" memory: Option<u32> [range(16, 4_194_304), aliases(&["ram"])];
        "limit" limit: Option<f64> [range(0, 128)];
    }
}

record! {
    /// A disk.
    pub struct Disk [shorthand("size")] {
        /// in GiB
        "size" size: u32;
        "ssd" ssd: bool = false;
    }
}

record! {
    /// A machine.
    pub struct Machine [at_most_one(&["iso", "template"])] {
        /// its number in the cluster
        "vmId" vm_id: Spanned<u32> [range(100, 999_999_999)];
        ..hardware: Hardware;
        "bios" bios: Option<Bios>;
        "disks" disks: Map<Disk>;
        "tags" tags: Vec<String>;
        "password" password: Option<Value<String>> [secret];
        "iso" iso: Option<String>;
        "template" template: Option<String>;
        "options" options: Map<Raw>;
    }
}

record! {
    /// A file of machines.
    pub struct Machines [document] {
        "vms" vms: Map<Machine>;
    }
}

fn mistakes(text: &str) -> String {
    read::<Machines>(text).1
}

fn machine(text: &str) -> Machine {
    let (machine, mistakes) = read::<Machine>(text);
    assert_eq!(mistakes, "");
    machine.expect("a machine")
}

#[test]
fn a_record_is_read_with_its_defaults() {
    let web = machine(
        "vmId: 100\nram: 512\ndisks: {scsi0: 20, scsi1: {size: 5, ssd: true}}\ntags: [a]\nbios: ovmf\n",
    );
    assert_eq!(web.vm_id.value, 100);
    assert_eq!((web.hardware.cores, web.hardware.memory), (1, Some(512)));
    assert_eq!(
        web.disks.values().map(|disk| (disk.size, disk.ssd)).collect::<Vec<_>>(),
        [(20, false), (5, true)]
    );
    assert_eq!(web.bios.map(Bios::as_str), Some("ovmf"));
    assert!(web.places.has("memory") && !web.places.has("cores"));
    assert_eq!(
        web,
        machine(
            "{tags: [a], bios: ovmf, disks: {scsi0: 20, scsi1: {size: 5, ssd: true}}, memory: 512, vmId: 100}"
        )
    );
}

#[test]
fn empty_collections_may_be_left_open() {
    let web = machine("vmId: 100\ntags:\ndisks:\n");
    assert!(web.tags.is_empty() && web.disks.is_empty());
}

#[test]
fn values_come_from_the_environment_and_from_files() {
    let web =
        machine("vmId: 100\ncores: {env: CORES}\niso: {file: motd}\npassword: {secret: web.password}\n");
    assert_eq!(web.hardware.cores, 4);
    assert_eq!(web.iso.as_deref(), Some("hello"));
    let reference = web.password.unwrap().reference().cloned().unwrap();
    assert_eq!(reference.source.to_string(), "{secret: web.password}");
    assert!(reference.sensitive);
}

#[test]
fn raw_options_keep_what_was_written() {
    let web = machine("vmId: 100\noptions: {a: true, b: 5, c: 'x,y', d: 1.50}\n");
    let wire: Vec<String> = web.options.values().map(Raw::to_wire).collect();
    assert_eq!(wire, ["1", "5", "x,y", "1.50"]);
}

#[test]
fn every_mistake_is_reported() {
    assert_snapshot!(mistakes("\
vms:
  web:
    vmid: 50
    cors: 2
    memory: 8
    bios: uefi
    disks: {scsi0: {size: big, sdd: true}, scsi1: [1]}
    tags: web
    iso: a
    template: b
  db: {vmId: 5, cores: '4', bios: omvf}
  nothing:
x-anchors: {}
"), @"
    error[unknown-key]: `web` has no key `vmid`
     --> a.yaml:3:5
      |
    3 |     vmid: 50
      |     ^^^^
      |
      = note: allowed here: vmId, cores, memory, limit, bios, disks, tags, password, iso, template, options
      = hint: did you mean `vmId`?
    error[unknown-key]: `web` has no key `cors`
     --> a.yaml:4:5
      |
    4 |     cors: 2
      |     ^^^^
      |
      = note: allowed here: vmId, cores, memory, limit, bios, disks, tags, password, iso, template, options
      = hint: did you mean `cores`?
    error[conflicting-keys]: `iso` and `template` cannot stand together
      --> a.yaml:10:5
       |
     9 |     iso: a
       |     --- the other one
    10 |     template: b
       |     ^^^^^^^^
       |
       = hint: keep one of `iso` or `template`
    error[out-of-range]: `memory` is 8; it takes a whole number from 16 to 4194304
     --> a.yaml:5:13
      |
    5 |     memory: 8
      |             ^
    error[unknown-value]: expected `seabios` or `ovmf`, found text `uefi`
     --> a.yaml:6:11
      |
    6 |     bios: uefi
      |           ^^^^
    error[unknown-key]: `scsi0` has no key `sdd`
     --> a.yaml:7:32
      |
    7 |     disks: {scsi0: {size: big, sdd: true}, scsi1: [1]}
      |                                ^^^
      |
      = note: allowed here: size, ssd
      = hint: did you mean `ssd`?
    error[wrong-type]: expected a whole number, found text `big`
     --> a.yaml:7:27
      |
    7 |     disks: {scsi0: {size: big, sdd: true}, scsi1: [1]}
      |                           ^^^ `size` takes a whole number
    error[wrong-type]: expected a mapping, or a whole number, found a list
     --> a.yaml:7:51
      |
    7 |     disks: {scsi0: {size: big, sdd: true}, scsi1: [1]}
      |                                                   ^^^ `scsi1` takes a mapping, or a whole number
    error[wrong-type]: expected a list, found text `web`
     --> a.yaml:8:11
      |
    8 |     tags: web
      |           ^^^ `tags` takes a list
      |
      = hint: write `[web]`
    error[out-of-range]: `vmId` is 5; it takes a whole number from 100 to 999999999
      --> a.yaml:11:14
       |
    11 |   db: {vmId: 5, cores: '4', bios: omvf}
       |              ^
    error[wrong-type]: expected a whole number, found text `4`
      --> a.yaml:11:24
       |
    11 |   db: {vmId: 5, cores: '4', bios: omvf}
       |                        ^^^ `cores` takes a whole number from 1 to 128
       |
       = hint: remove the quotes
    error[unknown-value]: expected `seabios` or `ovmf`, found text `omvf`
      --> a.yaml:11:35
       |
    11 |   db: {vmId: 5, cores: '4', bios: omvf}
       |                                   ^^^^
       |
       = hint: did you mean `ovmf`?
    error[wrong-type]: expected a mapping, found nothing
      --> a.yaml:12:10
       |
    12 |   nothing:
       |          ^ `nothing` takes a mapping
    ");
}

#[test]
fn yes_and_on_are_text() {
    assert_snapshot!(mistakes("vms: {web: {vmId: 100, disks: {scsi0: {size: 1, ssd: yes}, scsi1: {size: 1, ssd: 'off'}}}}\n"), @"
    error[wrong-type]: expected `true` or `false`, found text `yes`
     --> a.yaml:1:54
      |
    1 | vms: {web: {vmId: 100, disks: {scsi0: {size: 1, ssd: yes}, scsi1: {size: 1, ssd: 'off'}}}}
      |                                                      ^^^ `ssd` takes `true` or `false`
      |
      = hint: write `true`, without quotes
    error[wrong-type]: expected `true` or `false`, found text `off`
     --> a.yaml:1:82
      |
    1 | vms: {web: {vmId: 100, disks: {scsi0: {size: 1, ssd: yes}, scsi1: {size: 1, ssd: 'off'}}}}
      |                                                                                  ^^^^^ `ssd` takes `true` or `false`
      |
      = hint: write `false`, without quotes
    ");
}

#[test]
fn numbers_where_text_is_wanted() {
    assert_snapshot!(mistakes("vms: {web: {vmId: 100, iso: 1.10, tags: [443, ~]}}\n"), @r#"
    error[wrong-type]: expected text, found the number `443`
     --> a.yaml:1:42
      |
    1 | vms: {web: {vmId: 100, iso: 1.10, tags: [443, ~]}}
      |                                          ^^^ `tags` takes text
      |
      = hint: put it in quotes: "443"
    error[wrong-type]: expected text, found nothing
     --> a.yaml:1:47
      |
    1 | vms: {web: {vmId: 100, iso: 1.10, tags: [443, ~]}}
      |                                               ^ `tags` takes text
      |
      = hint: write a value, or remove the line
    error[wrong-type]: expected text, found the number `1.10`
     --> a.yaml:1:29
      |
    1 | vms: {web: {vmId: 100, iso: 1.10, tags: [443, ~]}}
      |                             ^^^^ `iso` takes text
      |
      = hint: put it in quotes: "1.10"
    "#);
}

#[test]
fn numbers_out_of_every_range() {
    assert_snapshot!(mistakes("vms: {web: {vmId: 100, cores: -1, memory: 99999999999999999999, limit: 1000}}\n"), @"
    error[out-of-range]: `cores` is -1; it takes a whole number from 1 to 128
     --> a.yaml:1:31
      |
    1 | vms: {web: {vmId: 100, cores: -1, memory: 99999999999999999999, limit: 1000}}
      |                               ^^
    error[out-of-range]: `memory` is 99999999999999999999; it takes a whole number from 16 to 4194304
     --> a.yaml:1:43
      |
    1 | vms: {web: {vmId: 100, cores: -1, memory: 99999999999999999999, limit: 1000}}
      |                                           ^^^^^^^^^^^^^^^^^^^^
    error[out-of-range]: `limit` is 1000; it takes a number from 0 to 128
     --> a.yaml:1:72
      |
    1 | vms: {web: {vmId: 100, cores: -1, memory: 99999999999999999999, limit: 1000}}
      |                                                                        ^^^^
    ");
}

#[test]
fn references_that_lead_nowhere() {
    assert_snapshot!(mistakes("\
vms:
  web:
    vmId: {secret: a}
    cores: {env: NOPE}
    iso: {file: nope}
    password: {secrt: a}
    tags: [{env: []}]
"), @"
    error[secret-not-allowed]: `vmId` cannot be a secret: plans and the state show it
     --> a.yaml:3:11
      |
    3 |     vmId: {secret: a}
      |           ^^^^^^^^^^^
      |
      = hint: write the value, or take it from `{env: NAME}` or `{file: path}`
    error[unresolved]: the variable `NOPE` is not set
     --> a.yaml:4:12
      |
    4 |     cores: {env: NOPE}
      |            ^^^^^^^^^^^
    error[wrong-type]: `env` takes a name, found a list
     --> a.yaml:7:18
      |
    7 |     tags: [{env: []}]
      |                  ^^
    error[wrong-type]: expected text, found a mapping
    --> a.yaml:6:15
     = hint: `secrt` looks like `secret`
    error[unresolved]: there is no file `nope`
     --> a.yaml:5:10
      |
    5 |     iso: {file: nope}
      |          ^^^^^^^^^^^^
    ");
}

#[test]
fn one_thing_under_two_names() {
    assert_snapshot!(mistakes("vms: {web: {vmId: 100, ram: 512, memory: 512}}\n"), @"
    error[duplicate-key]: `ram` and `memory` are two names of one thing
     --> a.yaml:1:34
      |
    1 | vms: {web: {vmId: 100, ram: 512, memory: 512}}
      |                        ---       ^^^^^^
      |                        |
      |                        first here
      |
      = hint: keep one of them
    ");
}

#[test]
fn the_wrong_kind_of_document() {
    assert_snapshot!(mistakes("- a\n- b\n"), @"
    error[wrong-type]: expected a mapping, found a list
     --> a.yaml:1:1
      |
    1 | - a
      | ^^^
    ");
    assert_snapshot!(mistakes("vms: [web]\n"), @"
    error[wrong-type]: expected a mapping, found a list
     --> a.yaml:1:6
      |
    1 | vms: [web]
      |      ^^^^^ `vms` takes a mapping
    ");
}

#[test]
fn names_with_broken_values_are_known() {
    let (machines, _) = read::<Machines>("vms: {web: {}, db: {vmId: 100}}\n");
    let machines = machines.unwrap();
    assert!(
        machines.vms.names("web") && machines.vms.get("web").is_none() && machines.vms.get("db").is_some()
    );
}

#[test]
fn a_secret_is_not_shown_even_in_a_mistake() {
    let shown = mistakes("vms: {web: {vmId: 100, password: 31337}}\n");
    assert!(!shown.contains("31337"), "{shown}");
    assert_snapshot!(shown, @"
    error[wrong-type]: expected text, found a number
    --> a.yaml:1:34
     = hint: put it in quotes
    ");
    let (machine, shown) = read::<Machine>("{vmId: 100, password: hunter2}");
    assert!(!shown.contains("hunter2") && !format!("{machine:?}").contains("hunter2"), "{shown}");
    assert_snapshot!(shown, @"
    warning[plain-secret]: `password` is written in the clear
    --> a.yaml:1:23
     = hint: keep it in an encrypted file and write `{secret: name}`
    ");
}

#[test]
fn the_reference_lists_every_key() {
    assert_snapshot!(strata_yaml::reference::<Machines>(), @"
    ## Machines

    A file of machines.

    | key | takes | meaning |
    |---|---|---|
    | `vms` | by name: [Machine](#machine) |  |

    ## Machine

    A machine.

    | key | takes | meaning |
    |---|---|---|
    | `vmId` (required) | a whole number from 100 to 999999999 | its number in the cluster |
    | `cores` | a whole number from 1 to 128 | how many cores each socket has; otherwise `1` |
    | `memory`, `ram` | a whole number from 16 to 4194304 | in MiB |
    | `limit` | a number |  |
    | `bios` | `seabios` or `ovmf` |  |
    | `disks` | by name: [Disk](#disk), or a whole number |  |
    | `tags` | a list: text |  |
    | `password` | text, or a reference |  |
    | `iso` | text |  |
    | `template` | text |  |
    | `options` | by name: text, a number, `true` or `false` |  |

    ## Disk

    A disk.

    | key | takes | meaning |
    |---|---|---|
    | `size` (required) | a whole number | in GiB |
    | `ssd` | `true` or `false` | ; otherwise `false` |

    A value that is no mapping stands for `size`.
    ");
}
