//! Files of `hypervisors/`: what two of them cannot share, and what Proxmox would refuse.

use insta::assert_snapshot;
use strata_source::world::Memory;

use crate::{SETTINGS, clean, mistakes};

fn file(name: &str, environment: &str, body: &str) -> String {
    format!(
        "metadata: {{name: {name}, environment: {environment}}}\nproxmox: {{target: pve, nodes: [pve1]}}\n{body}"
    )
}

fn two(one: &str, two: &str) -> Memory {
    Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("hypervisors/one.yaml", file("one", "prod", one))
        .file("hypervisors/two.yaml", file("two", "prod", two))
}

fn alone(body: &str) -> Memory {
    Memory::new().file("strata.yaml", SETTINGS).file("hypervisors/one.yaml", file("one", "prod", body))
}

#[test]
fn one_object_in_two_files() {
    assert_snapshot!(mistakes(&two("pools: {web: {}}\n", "pools: {web: {}}\n")), @r"
    error[object-collision]: the pool `web` of target `pve` is described in two files
     --> hypervisors/two.yaml:3:9
      |
    3 | pools: {web: {}}
      |         ^^^ in `two`
      |
     ::: hypervisors/one.yaml:3:9
      |
    3 | pools: {web: {}}
      |         --- in `one`
      |
      = hint: describe it in one of them
    ");
}

/// One of everything that has an identity.
const OBJECTS: [(&str, &str); 16] = [
    ("pools: {a: {}}\n", "the pool `a`"),
    ("roles: {A: [VM.Audit]}\n", "the role `A`"),
    ("groups: {a: {}}\n", "the group `a`"),
    ("users: {a@pve: {}}\n", "the user `a@pve`"),
    ("tokens: {a@pve!ci: {}}\n", "the token `a@pve!ci`"),
    ("acl: [{path: /, role: A, group: a}]\n", "`A` for `a` on `/`"),
    ("storages: {a: {type: dir, path: /a}}\n", "the storage `a`"),
    ("mappings: {pci: {a: {devices: [{node: pve1, path: '0000:01:00.0'}]}}}\n", "the PCI device `a`"),
    ("mappings: {usb: {a: {devices: [{node: pve1, id: '1050:0407'}]}}}\n", "the USB device `a`"),
    ("firewall: {aliases: {a: 192.0.2.1}}\n", "the alias `a`"),
    ("firewall: {ipSets: {admins: [192.0.2.1]}}\n", "the IP set `admins`"),
    ("firewall: {groups: {aa: {}}}\n", "the security group `aa`"),
    ("firewall: {enabled: false}\n", "the firewall"),
    ("dns: {servers: [192.0.2.53]}\n", "the name servers of `pve1`"),
    ("timezone: UTC\n", "the time zone of `pve1`"),
    ("network: {vmbr5: {}}\n", "the interface `vmbr5` of `pve1`"),
];

#[test]
fn every_kind_of_object_belongs_to_one_file() {
    for (body, what) in OBJECTS {
        let shown = mistakes(&two(body, body));
        let expected = format!("error[object-collision]: {what} of target `pve` is described in two files");
        assert!(shown.contains(&expected), "{body}\n{shown}");
        assert_eq!(shown.matches("error[").count(), 1, "{body}\n{shown}");
        clean(&alone(body));
        // Other objects, another host, another environment: nothing meets.
        clean(
            &Memory::new()
                .file("strata.yaml", SETTINGS)
                .file("hypervisors/one.yaml", file("one", "prod", body))
                .file("hypervisors/two.yaml", file("two", "dev", body)),
        );
    }
    clean(&two("network: {vmbr5: {}}\n", "network: {vmbr5: {nodes: [pve2]}, vmbr6: {}}\n"));
    // The value of a token is kept in the repository.
    let shown = mistakes(&two("tokens: {a@pve!ci: {secret: s}}\n", "tokens: {a@pve!cd: {secret: s}}\n"));
    assert!(shown.contains("the secret `s` of target `pve` is described in two files"), "{shown}");
}

#[test]
fn what_proxmox_would_refuse() {
    for (body, says) in [
        ("users: {root@pam: {}}\n", "the user `root@pam` cannot be managed"),
        ("roles: {Administrator: [VM.Audit]}\n", "the role `Administrator` is built into Proxmox"),
        ("roles: {PVEAuditor: [VM.Audit]}\n", "the role `PVEAuditor` is built into Proxmox"),
        ("storages: {a: {type: nfs}}\n", "the storage `a` of type `nfs` lacks `server` and `export`"),
        ("storages: {a: {type: cifs, server: s}}\n", "lacks `share`"),
        ("storages: {a: {type: pbs, server: s, datastore: d}}\n", "lacks `username`"),
        ("storages: {a: {type: dir}}\n", "lacks `path`"),
        ("storages: {a: {type: lvm}}\n", "lacks `volumeGroup`"),
        ("storages: {a: {type: lvmthin, volumeGroup: v}}\n", "lacks `thinPool`"),
        ("storages: {a: {type: zfspool}}\n", "lacks `pool`"),
        ("mappings: {pci: {a: {devices: [{node: pve1, id: '10de:2204'}]}}}\n", "on `pve1` has no `path`"),
        ("mappings: {usb: {a: {devices: [{node: pve1}]}}}\n", "has neither `path` nor `id`"),
        ("firewall: {rules: [{direction: in, action: accept}]}\n", "`accept` is no action of a rule"),
        ("firewall: {groups: {web: {rules: [{direction: in, action: web}]}}}\n", "`web` is no action"),
    ] {
        let shown = mistakes(&alone(body));
        assert!(shown.contains(says), "{body}\n{shown}");
        assert!(shown.contains("--> hypervisors/one.yaml:3"), "{body}\n{shown}");
    }
    clean(&alone("storages: {local: {type: dir, content: [iso], adopt: true}}\n"));
    clean(&alone("firewall: {rules: [{direction: group, action: web}]}\n"));
}
