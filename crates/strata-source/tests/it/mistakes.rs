//! Mistakes in files, all of them at once.

use insta::assert_snapshot;
use proptest::prelude::*;
use strata_source::Repository;
use strata_source::world::Memory;

use crate::examples::{CLUSTER, ENVIRONMENT, HYPERVISOR, handbook, stack};
use crate::{SETTINGS, mistakes, web};

#[test]
fn no_repository_at_all() {
    assert_snapshot!(mistakes(&Memory::new()), @"
    error[no-repository]: there is no `strata.yaml` here
     |
     = hint: run `strata init`, or name the repository with `-C DIR`
    ");
    assert_snapshot!(mistakes(&Memory::new().file("strata.yaml", "")), @"
    error[empty-file]: `strata.yaml` is empty
     |
     = hint: it names at least the targets that stacks are applied to
    ");
}

#[test]
fn an_empty_stack_and_one_that_is_no_text() {
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/a/stack.yaml", "# nothing yet\n")
        .file("stacks/b/stack.yaml", b"vms: \xff\xfe".to_vec());
    assert_snapshot!(mistakes(&world), @"
    error[empty-file]: the file is empty; it should hold a stack
     --> stacks/a/stack.yaml:1:1
      |
    1 | # nothing yet
      | ^
    error[unreadable]: the file is not UTF-8 text
     --> stacks/b/stack.yaml:1:6
      |
    1 | vms: ��
      |      ^
    ");
}

#[test]
fn settings_with_mistakes() {
    let world = Memory::new().file(
        "strata.yaml",
        "\
repository: NOT-AN-ID
state: {backend: locall, history: 0}
secrets: [{sops: a, vault: b}, {}]
targets:
  pve: {proxmox: {endpoint: 192.0.2.10, tls: {fingerprint: AB, insecure: true}}}
  nas: {}
mirrors: {factory: https://a.example}
paralellism: 4
",
    );
    assert_snapshot!(mistakes(&world), @"
    error[invalid-value]: `repository` takes an id of 4 to 32 lower-case letters and digits
     --> strata.yaml:1:13
      |
    1 | repository: NOT-AN-ID
      |             ^^^^^^^^^
    error[unknown-value]: expected `local`, `http`, `s3` or `postgres`, found text `locall`
     --> strata.yaml:2:18
      |
    2 | state: {backend: locall, history: 0}
      |                  ^^^^^^
      |
      = hint: did you mean `local`?
    error[out-of-range]: `history` is 0; it takes a whole number from 1 to 10000
     --> strata.yaml:2:35
      |
    2 | state: {backend: locall, history: 0}
      |                                   ^
    error[conflicting-keys]: `sops` and `vault` cannot stand together
     --> strata.yaml:3:21
      |
    3 | secrets: [{sops: a, vault: b}, {}]
      |            ----     ^^^^^
      |            |
      |            the other one
      |
      = hint: keep one of `sops` or `vault`
    error[missing-key]: this needs `sops` or `vault`
     --> strata.yaml:3:32
      |
    3 | secrets: [{sops: a, vault: b}, {}]
      |                                ^^
    error[invalid-value]: `endpoint` takes an http or https URL
     --> strata.yaml:5:29
      |
    5 |   pve: {proxmox: {endpoint: 192.0.2.10, tls: {fingerprint: AB, insecure: true}}}
      |                             ^^^^^^^^^^
    error[invalid-value]: `fingerprint` takes the SHA-256 fingerprint of a certificate: 32 bytes in hex with colons
     --> strata.yaml:5:60
      |
    5 |   pve: {proxmox: {endpoint: 192.0.2.10, tls: {fingerprint: AB, insecure: true}}}
      |                                                            ^^
    error[conflicting-keys]: `fingerprint` and `insecure` cannot stand together
     --> strata.yaml:5:64
      |
    5 |   pve: {proxmox: {endpoint: 192.0.2.10, tls: {fingerprint: AB, insecure: true}}}
      |                                               -----------      ^^^^^^^^
      |                                               |
      |                                               the other one
      |
      = hint: keep one of `fingerprint`, `ca` or `insecure`
    error[missing-key]: `nas` needs `proxmox` or `truenas`
     --> strata.yaml:6:3
      |
    6 |   nas: {}
      |   ^^^
    error[invalid-name]: `factory` is not an http or https URL
     --> strata.yaml:7:11
      |
    7 | mirrors: {factory: https://a.example}
      |           ^^^^^^^
    error[unknown-key]: unknown key `paralellism`
     --> strata.yaml:8:1
      |
    8 | paralellism: 4
      | ^^^^^^^^^^^
      |
      = note: allowed here: repository, state, secrets, targets, defaults, profiles, mirrors, proxy, policy, parallelism, review
      = hint: did you mean `parallelism`?
    ");
}

#[test]
fn a_vm_with_mistakes() {
    assert_snapshot!(mistakes(&web("\
vms:
  Web_1:
    vmId: 99
    cores: two
    memory: 4GB
    template: a
    iso: b
    disks: {scsi31: 5, sata0: {size: '40', cahce: none}}
    network: [{bridge: vmbr0, vlan: 4095, ip: 192.0.2.5, mac: 01:00:00:00:00:00}]
    tags: [Web]
    agent: yes
    startup: {order: first}
    pci: [{}]
    started: {secret: x}
    firewall: {rules: [{direction: inn, action: ACCEPT, destinationPort: 70000}]}
")), @"
    error[invalid-name]: `Web_1` is not a host name: letters, digits and `-`, not at either end
     --> stacks/web/stack.yaml:4:3
      |
    4 |   Web_1:
      |   ^^^^^
    error[out-of-range]: `vmId` is 99; it takes a whole number from 100 to 999999999
     --> stacks/web/stack.yaml:5:11
      |
    5 |     vmId: 99
      |           ^^
    error[wrong-type]: expected a whole number, found text `two`
     --> stacks/web/stack.yaml:6:12
      |
    6 |     cores: two
      |            ^^^ `cores` takes a whole number from 1 to 1024
    error[invalid-value]: `4GB` is ambiguous: write `4GiB` for powers of 1024
     --> stacks/web/stack.yaml:7:13
      |
    7 |     memory: 4GB
      |             ^^^ `memory` takes a number of MiB, or a size with its unit such as `512M` or `4GiB`
    error[conflicting-keys]: `template` and `iso` cannot stand together
     --> stacks/web/stack.yaml:9:5
      |
    8 |     template: a
      |     -------- the other one
    9 |     iso: b
      |     ^^^
      |
      = hint: keep one of `template`, `image` or `iso`
    error[unknown-slot]: there is no slot `scsi31`
      --> stacks/web/stack.yaml:10:13
       |
    10 |     disks: {scsi31: 5, sata0: {size: '40', cahce: none}}
       |             ^^^^^^
       |
       = note: the slots are scsi0 to scsi30, virtio0 to virtio15, sata0 to sata5, ide0 to ide3
       = hint: did you mean `scsi1`?
    error[invalid-value]: `40` has no unit: write the number without quotes, or `40G`
      --> stacks/web/stack.yaml:10:38
       |
    10 |     disks: {scsi31: 5, sata0: {size: '40', cahce: none}}
       |                                      ^^^^ `size` takes a number of GiB, or a size with its unit such as `20G` or `1TiB`
    error[unknown-key]: `sata0` has no key `cahce`
      --> stacks/web/stack.yaml:10:44
       |
    10 |     disks: {scsi31: 5, sata0: {size: '40', cahce: none}}
       |                                            ^^^^^
       |
       = note: allowed here: size, storage, ssd, discard, iothread, cache, backup, replicate, aio, format, readOnly, import, volume, iso, serial, options
       = hint: did you mean `cache`?
    error[out-of-range]: `vlan` is 4095; it takes a whole number from 1 to 4094
      --> stacks/web/stack.yaml:11:37
       |
    11 |     network: [{bridge: vmbr0, vlan: 4095, ip: 192.0.2.5, mac: 01:00:00:00:00:00}]
       |                                     ^^^^
    error[invalid-value]: `192.0.2.5` has no prefix: write `192.0.2.5/24` or the prefix of its network
      --> stacks/web/stack.yaml:11:47
       |
    11 |     network: [{bridge: vmbr0, vlan: 4095, ip: 192.0.2.5, mac: 01:00:00:00:00:00}]
       |                                               ^^^^^^^^^ `ip` takes `dhcp`, or an address with its prefix such as `192.0.2.10/24`
    error[invalid-value]: `01:00:00:00:00:00` is a group address: the first byte must be even
      --> stacks/web/stack.yaml:11:63
       |
    11 |     network: [{bridge: vmbr0, vlan: 4095, ip: 192.0.2.5, mac: 01:00:00:00:00:00}]
       |                                                               ^^^^^^^^^^^^^^^^^ `mac` takes a MAC address such as `BC:24:11:00:00:01`
    error[invalid-value]: `tags` takes a tag: lower-case letters, digits, `_`, `-`, `+` and `.`
      --> stacks/web/stack.yaml:12:12
       |
    12 |     tags: [Web]
       |            ^^^
    error[wrong-type]: expected `true` or `false`, found text `yes`
      --> stacks/web/stack.yaml:13:12
       |
    13 |     agent: yes
       |            ^^^ `agent` takes `true` or `false`
       |
       = hint: write `true`, without quotes
    error[wrong-type]: expected a whole number, found text `first`
      --> stacks/web/stack.yaml:14:22
       |
    14 |     startup: {order: first}
       |                      ^^^^^ `order` takes a whole number
    error[missing-key]: `hostpci0` needs `device` or `mapping`
      --> stacks/web/stack.yaml:15:11
       |
    15 |     pci: [{}]
       |           ^^
    error[secret-not-allowed]: `started` cannot be a secret: plans and the state show it
      --> stacks/web/stack.yaml:16:14
       |
    16 |     started: {secret: x}
       |              ^^^^^^^^^^^
       |
       = hint: write the value, or take it from `{env: NAME}` or `{file: path}`
    error[unknown-value]: expected `in`, `out` or `group`, found text `inn`
      --> stacks/web/stack.yaml:17:36
       |
    17 |     firewall: {rules: [{direction: inn, action: ACCEPT, destinationPort: 70000}]}
       |                                    ^^^
       |
       = hint: did you mean `in`?
    error[out-of-range]: `destinationPort` is 70000; it takes a whole number from 0 to 65535
      --> stacks/web/stack.yaml:17:74
       |
    17 |     firewall: {rules: [{direction: inn, action: ACCEPT, destinationPort: 70000}]}
       |                                                                          ^^^^^
    ");
}

#[test]
fn addresses_that_cannot_be() {
    assert_snapshot!(mistakes(&web("\
vms:
  a: {vmId: 100, network: [{ip: 192.0.2.5/24, gateway: 192.0.3.1}]}
  b: {vmId: 101, network: [{ip: 'fe80::1/64', ip6: 192.0.2.6/24}]}
  c: {vmId: 102, network: [{ip: dhcp, gateway: 192.0.2.1}]}
  d: {vmId: 103, network: [{ip: 192.0.2.255/24}]}
  e: {vmId: 104, count: 3, network: [{ip: 192.0.2.253/24}]}
  f: {vmId: 110, network: [{ip: 192.0.2.9/24, gateway: 192.0.2.9}]}
")), @"
    error[outside-cidr]: the gateway `192.0.3.1` lies outside `192.0.2.5/24`
     --> stacks/web/stack.yaml:4:56
      |
    4 |   a: {vmId: 100, network: [{ip: 192.0.2.5/24, gateway: 192.0.3.1}]}
      |                                 ------------           ^^^^^^^^^
      |                                 |
      |                                 the network of this address
    error[bad-address]: `ip` takes an IPv4 address
     --> stacks/web/stack.yaml:5:33
      |
    5 |   b: {vmId: 101, network: [{ip: 'fe80::1/64', ip6: 192.0.2.6/24}]}
      |                                 ^^^^^^^^^^^^
      |
      = hint: write it under `ip6`
    error[bad-address]: `ip6` takes an IPv6 address
     --> stacks/web/stack.yaml:5:52
      |
    5 |   b: {vmId: 101, network: [{ip: 'fe80::1/64', ip6: 192.0.2.6/24}]}
      |                                                    ^^^^^^^^^^^^
      |
      = hint: write it under `ip`
    error[bad-address]: a gateway needs a fixed address beside it
     --> stacks/web/stack.yaml:6:48
      |
    6 |   c: {vmId: 102, network: [{ip: dhcp, gateway: 192.0.2.1}]}
      |                                                ^^^^^^^^^
    error[bad-address]: `192.0.2.255` is the broadcast address of its network and cannot be `d`'s
     --> stacks/web/stack.yaml:7:33
      |
    7 |   d: {vmId: 103, network: [{ip: 192.0.2.255/24}]}
      |                                 ^^^^^^^^^^^^^^
    error[bad-address]: `192.0.2.255` is the broadcast address of its network and cannot be `e-3`'s
     --> stacks/web/stack.yaml:8:43
      |
    8 |   e: {vmId: 104, count: 3, network: [{ip: 192.0.2.253/24}]}
      |                                           ^^^^^^^^^^^^^^
    error[ip-collision]: the address `192.0.2.255` is used twice on target `pve`
     --> stacks/web/stack.yaml:8:43
      |
    7 |   d: {vmId: 103, network: [{ip: 192.0.2.255/24}]}
      |                                 -------------- `d` of stack `web`
    8 |   e: {vmId: 104, count: 3, network: [{ip: 192.0.2.253/24}]}
      |                                           ^^^^^^^^^^^^^^ `e-3` of stack `web`
    error[bad-address]: the gateway is the machine's own address
     --> stacks/web/stack.yaml:9:56
      |
    9 |   f: {vmId: 110, network: [{ip: 192.0.2.9/24, gateway: 192.0.2.9}]}
      |                                 ------------           ^^^^^^^^^
      |                                 |
      |                                 the address
    ");
}

#[test]
fn a_machine_without_a_node() {
    let world =
        Memory::new().file("strata.yaml", SETTINGS).file("stacks/a/stack.yaml", "vms: {a: {vmId: 100}}\n");
    assert_snapshot!(mistakes(&world), @"
    error[missing-key]: `a` has no Proxmox node to live on
     --> stacks/a/stack.yaml:1:7
      |
    1 | vms: {a: {vmId: 100}}
      |       ^
      |
      = hint: give the stack one: `proxmox: {node: …}`, or the machine a `node`
    ");
}

#[test]
fn names_and_numbers_at_their_ends() {
    let world =
        web("vms: {a: {vmId: 999999998, count: 3}}\n").file("stacks/my stack/stack.yaml", "vms: {}\n");
    assert_snapshot!(mistakes(&world), @"
    error[invalid-name]: `my stack` cannot be the name of a stack
     --> stacks/my stack/stack.yaml:1:1
      |
    1 | vms: {}
      | ^
      |
      = hint: give it another: `metadata: {name: …}`
    error[out-of-range]: `a-3` would get the VMID `1000000000`; they end at 999999999
     --> stacks/web/stack.yaml:3:17
      |
    3 | vms: {a: {vmId: 999999998, count: 3}}
      |                 ^^^^^^^^^
    ");
}

#[test]
fn a_file_of_another_program_is_left_alone() {
    crate::clean(&web("").file("cluster.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"));
}

#[test]
fn a_secret_in_the_clear() {
    let world = Memory::new().file(
        "strata.yaml",
        "targets: {pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: 'root@pam!a=0000'}}}\n",
    );
    assert_snapshot!(mistakes(&world), @"
    warning[plain-secret]: `token` is written in the clear
    --> strata.yaml:1:71
     = hint: keep it in an encrypted file and write `{secret: name}`
    ");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Characters are put into the files at random: whatever comes out, it is reported and nothing panics.
    #[test]
    fn no_slip_of_the_keyboard_makes_a_load_panic(
        slips in proptest::collection::vec((0_usize..4, any::<prop::sample::Index>(), "[-a-z0-9:{}\\[\\],&*'\" \n~<]{0,3}"), 1..6)
    ) {
        let mut texts = [CLUSTER.to_owned(), stack(), HYPERVISOR.to_owned(), ENVIRONMENT.to_owned()];
        for (which, at, insert) in slips {
            let text = &mut texts[which];
            let mut at = at.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let length = text[at..].chars().next().map_or(0, char::len_utf8);
            text.replace_range(at..at + length, &insert);
        }
        let [cluster, stack, hypervisor, environment] = texts;
        let world = handbook()
            .file("clusters/homelab/cluster.yaml", cluster)
            .file("stacks/web/stack.yaml", stack)
            .file("hypervisors/hosts.yaml", hypervisor)
            .file("environments/prod.yaml", environment);
        let (repository, diagnostics) = Repository::load(&world);
        crate::show(&repository, &diagnostics);
    }
}
