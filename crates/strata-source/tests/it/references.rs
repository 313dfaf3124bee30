//! References: templates, targets, storages, secrets, files, other stacks.

use insta::assert_snapshot;
use strata_source::world::Memory;

use crate::{SETTINGS, clean, mistakes, web};

#[test]
fn an_unknown_template() {
    let world = web("\
templates: {debian12: {vmId: 9000, image: local:import/a.qcow2}}
vms:
  a: {vmId: 100, template: debain12}
  b: {vmId: 101, template: other/debian12}
  c: {vmId: 102, template: web/alpine}
");
    assert_snapshot!(mistakes(&world), @"
    error[unknown-template]: there is no template `debain12` in this stack
     --> stacks/web/stack.yaml:5:28
      |
    5 |   a: {vmId: 100, template: debain12}
      |                            ^^^^^^^^
      |
      = hint: did you mean `debian12`?
    error[unknown-stack]: there is no stack `other`
     --> stacks/web/stack.yaml:6:28
      |
    6 |   b: {vmId: 101, template: other/debian12}
      |                            ^^^^^^^^^^^^^^
      |
      = hint: known here: web
    error[unknown-template]: the stack `web` has no template `alpine`
     --> stacks/web/stack.yaml:7:28
      |
    7 |   c: {vmId: 102, template: web/alpine}
      |                            ^^^^^^^^^^
      |
      = hint: known here: debian12
    ");
}

#[test]
fn a_broken_template_is_still_known() {
    let world =
        web("templates: {debian12: {vmId: 9000, image: 5}}\nvms: {a: {vmId: 100, template: debian12}}\n");
    assert_snapshot!(mistakes(&world), @r#"
    error[wrong-type]: expected a mapping with a `url`, the name of one of `images`, or a volume such as `local:iso/debian.iso`, found the number `5`
     --> stacks/web/stack.yaml:3:43
      |
    3 | templates: {debian12: {vmId: 9000, image: 5}}
      |                                           ^ `image` takes a mapping with a `url`, the name of one of `images`, or a volume such as `local:iso/debian.iso`
      |
      = hint: put it in quotes: "5"
    "#);
}

#[test]
fn a_template_of_another_stack() {
    let world = web("vms: {a: {vmId: 100, template: base/debian12}}\n").file(
        "stacks/base/stack.yaml",
        "proxmox: {target: pve, node: pve1}\ntemplates: {debian12: {vmId: 9000, image: local:import/a.qcow2}}\n",
    );
    let repository = clean(&world);
    let order: Vec<&str> = repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
    assert_eq!(order, ["base", "web"]);
}

#[test]
fn stacks_in_a_circle() {
    let stack = |needs: &str| format!("metadata: {{dependsOn: [{needs}]}}\n");
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/a/stack.yaml", stack("b"))
        .file("stacks/b/stack.yaml", stack("c"))
        .file("stacks/c/stack.yaml", stack("a, d"))
        .file("stacks/d/stack.yaml", stack("d, nobody"));
    assert_snapshot!(mistakes(&world), @"
    error[cycle]: these stacks depend on each other in a circle: a → b → c → a
     --> stacks/a/stack.yaml:1:24
      |
    1 | metadata: {dependsOn: [b]}
      |                        ^ `a` needs `b`
      |
     ::: stacks/b/stack.yaml:1:24
      |
    1 | metadata: {dependsOn: [c]}
      |                        - `b` needs `c`
      |
     ::: stacks/c/stack.yaml:1:24
      |
    1 | metadata: {dependsOn: [a, d]}
      |                        - `c` needs `a`
      |
      = hint: remove one of these dependencies
    error[cycle]: `d` depends on itself
     --> stacks/d/stack.yaml:1:24
      |
    1 | metadata: {dependsOn: [d, nobody]}
      |                        ^
    error[unknown-stack]: there is no stack `nobody`
     --> stacks/d/stack.yaml:1:27
      |
    1 | metadata: {dependsOn: [d, nobody]}
      |                           ^^^^^^
      |
      = hint: known here: a, b, c, d
    ");
}

#[test]
fn guests_in_a_circle() {
    let world = web("\
vms:
  a: {vmId: 100, dependsOn: [containers.b]}
containers:
  b: {vmId: 101, image: local:vztmpl/a.tar.zst, dependsOn: [vms.a, vms.x]}
");
    assert_snapshot!(mistakes(&world), @"
    error[cycle]: these guests depend on each other in a circle: containers.b → vms.a → containers.b
     --> stacks/web/stack.yaml:6:61
      |
    4 |   a: {vmId: 100, dependsOn: [containers.b]}
      |                              ------------ `vms.a` needs `containers.b`
    5 | containers:
    6 |   b: {vmId: 101, image: local:vztmpl/a.tar.zst, dependsOn: [vms.a, vms.x]}
      |                                                             ^^^^^ `containers.b` needs `vms.a`
      |
      = hint: remove one of these dependencies
    error[unknown-guest]: there is no guest `vms.x` in this stack
     --> stacks/web/stack.yaml:6:68
      |
    6 |   b: {vmId: 101, image: local:vztmpl/a.tar.zst, dependsOn: [vms.a, vms.x]}
      |                                                                    ^^^^^
      |
      = hint: did you mean `vms.a`?
    ");
}

#[test]
fn a_lower_layer_needs_no_higher_one() {
    let world =
        web("").file("hypervisors/pve.yaml", "metadata: {dependsOn: [web]}\nproxmox: {target: pve}\n");
    assert_snapshot!(mistakes(&world), @"
    error[layer-violation]: `pve` is in the layer `hypervisors` and cannot need `web`
     --> hypervisors/pve.yaml:1:24
      |
    1 | metadata: {dependsOn: [web]}
      |                        ^^^ `web` is in the higher layer `workloads`
    ");
}

#[test]
fn unknown_and_wrong_targets() {
    let settings =
        format!("{SETTINGS}  nas: {{truenas: {{endpoint: 'https://192.0.2.20', apiKey: {{env: KEY}}}}}}\n");
    let world = Memory::new()
        .file("strata.yaml", settings)
        .file("stacks/a/stack.yaml", "proxmox: {target: pev, node: pve1}\nvms: {a: {vmId: 100}}\n")
        .file("stacks/b/stack.yaml", "proxmox: {target: nas, node: pve1}\nvms: {b: {vmId: 100}}\n");
    assert_snapshot!(mistakes(&world), @"
    error[unknown-target]: there is no target `pev`
     --> stacks/a/stack.yaml:1:19
      |
    1 | proxmox: {target: pev, node: pve1}
      |                   ^^^
      |
      = hint: did you mean `pve`?
    error[wrong-target]: the target `nas` is not a `proxmox` target
     --> stacks/b/stack.yaml:1:19
      |
    1 | proxmox: {target: nas, node: pve1}
      |                   ^^^
      |
     ::: strata.yaml:4:3
      |
    4 |   nas: {truenas: {endpoint: 'https://192.0.2.20', apiKey: {env: KEY}}}
      |   --- the target
    ");
}

#[test]
fn a_stack_that_names_no_target() {
    let settings = format!("{SETTINGS}  far: {{proxmox: {{endpoint: 'https://198.51.100.9:8006'}}}}\n");
    let world =
        Memory::new().file("strata.yaml", settings).file("stacks/a/stack.yaml", "vms: {a: {vmId: 100}}\n");
    assert_snapshot!(mistakes(&world), @"
    error[missing-key]: the stack `a` names no target
     --> stacks/a/stack.yaml:1:1
      |
    1 | vms: {a: {vmId: 100}}
      | ^
      |
      = hint: write `proxmox: {target: pve}`
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
fn storages_are_checked_where_they_are_known() {
    let body = "vms: {a: {vmId: 100, efi: tnak, disks: {scsi0: {storage: tank, size: 1}, scsi1: {storage: local-lvm, size: 1}}}}\n";
    clean(&web(body));
    let world = web(body).file(
        "hypervisors/pve.yaml",
        "proxmox: {target: pve}\nstorages: {tank: {type: zfspool, pool: tank, content: [images, rootdir]}}\n",
    );
    assert_snapshot!(mistakes(&world), @"
    warning[unknown-storage]: no hypervisor describes a storage `tnak`
     --> stacks/web/stack.yaml:3:27
      |
    3 | vms: {a: {vmId: 100, efi: tnak, disks: {scsi0: {storage: tank, size: 1}, scsi1: {storage: local-lvm, size: 1}}}}
      |                           ^^^^
      |
      = hint: did you mean `tank`?
    ");
}

#[test]
fn r8_a_described_storage_does_not_require_the_others() {
    let body = "vms: {a: {vmId: 100, disks: {scsi0: {storage: ceph-ssd, size: 1}}}}\n";
    clean(&web(body).file(
        "hypervisors/pve.yaml",
        "proxmox: {target: pve}\nstorages: {tank: {type: zfspool, pool: tank, content: [images, rootdir]}}\n",
    ));
}

#[test]
fn secrets_and_files_that_are_not_there() {
    let settings = format!("secrets: [sops: secrets.sops.yaml]\n{SETTINGS}");
    let world = web("\
vms:
  a:
    vmId: 100
    cloudInit:
      password: {secret: web.pasword}
      sshKeys: [{secret: keys.0}, {secret: keys.5}, {file: nope.pub}]
      userData: nope.yaml
")
    .file("strata.yaml", settings)
    .file("secrets.sops.yaml", "web:\n  password: ENC[a]\nkeys:\n  - ENC[b]\nsops:\n  version: 3.9.0\n");
    assert_snapshot!(mistakes(&world), @"
    error[unknown-secret]: there is no secret `web.pasword`
     --> stacks/web/stack.yaml:7:17
      |
    7 |       password: {secret: web.pasword}
      |                 ^^^^^^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `web.password`?
    error[unknown-secret]: there is no secret `keys.5`
     --> stacks/web/stack.yaml:8:35
      |
    8 |       sshKeys: [{secret: keys.0}, {secret: keys.5}, {file: nope.pub}]
      |                                   ^^^^^^^^^^^^^^^^
      |
      = hint: did you mean `keys.0`?
    error[missing-file]: there is no file `stacks/web/nope.pub` and no `nope.pub`
     --> stacks/web/stack.yaml:8:53
      |
    8 |       sshKeys: [{secret: keys.0}, {secret: keys.5}, {file: nope.pub}]
      |                                                     ^^^^^^^^^^^^^^^^
    error[missing-file]: there is no file `stacks/web/nope.yaml` and no `nope.yaml`
     --> stacks/web/stack.yaml:9:17
      |
    9 |       userData: nope.yaml
      |                 ^^^^^^^^^
    ");
}

#[test]
fn a_vault_hides_its_names() {
    let settings = format!("secrets: [vault: secrets.vault.yaml]\n{SETTINGS}");
    let world = web("vms: {a: {vmId: 100, cloudInit: {password: {secret: any.thing}}}}\n")
        .file("strata.yaml", settings)
        .file("secrets.vault.yaml", "$ANSIBLE_VAULT;1.1;AES256\n6162\n");
    clean(&world);
}

#[test]
fn secrets_without_a_file_of_secrets() {
    assert_snapshot!(mistakes(&web("vms: {a: {vmId: 100, cloudInit: {password: {secret: a}}}}\n")), @"
    error[unknown-secret]: there is no secret `a`
     --> stacks/web/stack.yaml:3:44
      |
    3 | vms: {a: {vmId: 100, cloudInit: {password: {secret: a}}}}
      |                                            ^^^^^^^^^^^
      |
      = hint: name a file of secrets under `secrets` in strata.yaml
    ");
}

#[test]
fn outputs_of_machines_that_are_not_there() {
    let world = web("\
vms: {web: {vmId: 100, count: 2}, db: {vmId: 110}}
outputs:
  a: vms.web.address
  b: vms.web[2].name
  c: vms.wbe[*].name
  d: vms.db[1].name
  e: nodes.x.name
  f: vms.db.adress
");
    assert_snapshot!(mistakes(&world), @"
    error[unknown-output]: `web` stands for 2 machines
     --> stacks/web/stack.yaml:5:6
      |
    5 |   a: vms.web.address
      |      ^^^^^^^^^^^^^^^
      |
      = hint: write `[*]` for all of them or `[0]` for the first
    error[unknown-output]: `web` has only 2 machines
     --> stacks/web/stack.yaml:6:6
      |
    6 |   b: vms.web[2].name
      |      ^^^^^^^^^^^^^^^
      |
      = hint: indexes count from 0
    error[unknown-output]: there is no `wbe` in `vms`
     --> stacks/web/stack.yaml:7:6
      |
    7 |   c: vms.wbe[*].name
      |      ^^^^^^^^^^^^^^^
      |
      = hint: did you mean `web`?
    error[unknown-output]: `db` is one machine
     --> stacks/web/stack.yaml:8:6
      |
    8 |   d: vms.db[1].name
      |      ^^^^^^^^^^^^^^
      |
      = hint: remove the index
    error[unknown-output]: a stack has no `nodes`
     --> stacks/web/stack.yaml:9:6
      |
    9 |   e: nodes.x.name
      |      ^^^^^^^^^^^^
    error[invalid-value]: `adress` is not a field of a machine; did you mean `address`?
      --> stacks/web/stack.yaml:10:6
       |
    10 |   f: vms.db.adress
       |      ^^^^^^^^^^^^^ `f` takes a path such as `vms.web.address` or `vms.web[*].address`
    ");
}

#[test]
fn images_and_what_policy_asks_of_them() {
    let settings =
        format!("{SETTINGS}policy: {{requireChecksum: true, imageSources: [https://images.example/]}}\n");
    let world = web("\
images: {debian: {url: https://elsewhere.example/debian.qcow2}}
vms:
  a: {vmId: 100, image: debain}
  b: {vmId: 101, iso: https://images.example/a.iso}
");
    assert_snapshot!(mistakes(&world.clone().file("strata.yaml", settings)), @r#"
    error[no-checksum]: the image has no checksum: the download is not verified
     --> stacks/web/stack.yaml:3:24
      |
    3 | images: {debian: {url: https://elsewhere.example/debian.qcow2}}
      |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = note: `policy.requireChecksum` asks for one
      = hint: add `checksum: "sha256:…"`
    error[forbidden-source]: images may not come from here
     --> stacks/web/stack.yaml:3:24
      |
    3 | images: {debian: {url: https://elsewhere.example/debian.qcow2}}
      |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = note: `policy.imageSources` allows https://images.example/
    error[unknown-image]: there is no image `debain` in this stack
     --> stacks/web/stack.yaml:5:25
      |
    5 |   a: {vmId: 100, image: debain}
      |                         ^^^^^^
      |
      = hint: did you mean `debian`?
    error[invalid-value]: a URL stands in a mapping, with its checksum: `{url: https://images.example/a.iso}`
     --> stacks/web/stack.yaml:6:23
      |
    6 |   b: {vmId: 101, iso: https://images.example/a.iso}
      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ `iso` takes a mapping with a `url`, the name of one of `images`, or a volume such as `local:iso/debian.iso`
    "#);
}

#[test]
fn names_with_points_and_comments_in_lists() {
    let settings = format!("secrets: [sops: secrets.sops.yaml]\n{SETTINGS}");
    let world = web("vms: {a: {vmId: 100, disk: 1, cloudInit: {user: {secret: registry.example.com.user}, password: {secret: keys.0}}}}\n")
        .file("strata.yaml", settings)
        .file(
            "secrets.sops.yaml",
            "registry.example.com:\n  user: ENC[a]\nkeys:\n  - ENC[AES256_GCM,data:x,iv:x,tag:x,type:comment]\n  - ENC[b]\nsops: {}\n",
        );
    clean(&world);
}
