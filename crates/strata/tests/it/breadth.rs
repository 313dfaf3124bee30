//! Every field of a VM and of a container: applied, read back as the same, changed, and read back again.

use serde_json::json;

use crate::world::World;

const FULL: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  full:
    vmId: 9100
    iso: {url: "https://images.example/rescue.iso"}
    cores: 2
    sockets: 2
    cpu: {type: host, flags: ["+aes", "-pcid"], units: 200, limit: 1.5, numa: true}
    memory: 2048
    balloon: 1024
    bios: ovmf
    machine: q35
    efi: {storage: local-lvm, preEnrolledKeys: true}
    tpm: {storage: local-lvm, version: v2.0}
    scsiController: virtio-scsi-single
    disks:
      scsi0: {storage: local-lvm, size: 8, ssd: true, discard: true, iothread: true, cache: writeback, aio: threads}
      virtio1: {storage: tank, size: 2, backup: false, replicate: false, readOnly: true, format: raw, serial: abc123}
    network:
      net0: {model: virtio, mac: "02:00:00:00:00:01", bridge: vmbr0, vlan: 12, mtu: 1400, queues: 2, firewall: true}
      net3: {model: e1000, bridge: vmbr1, rate: 12.5, linkDown: true}
    serial: [socket]
    vga: {type: qxl, memory: 32}
    agent: {enabled: true, trim: true}
    bootOrder: [scsi0, ide2, net0]
    osType: l26
    localTime: true
    tablet: false
    hotplug: [disk, network]
    onboot: true
    startup: {order: 3, upDelay: 10, downDelay: 20}
    started: false
    tags: [b, a]
    notes: "two\nlines"
    pool: production
    firewall:
      enabled: true
      policyIn: REJECT
      policyOut: ACCEPT
      logLevelIn: info
      dhcp: false
      macFilter: false
      ipFilter: true
      rules:
        - {direction: in, action: ACCEPT, protocol: tcp, destinationPort: "80,443", source: 192.0.2.0/24, comment: web, log: info}
        - {direction: in, action: ACCEPT, macro: SSH, enabled: false}
        - {direction: out, action: DROP, protocol: udp, sourcePort: "1000:2000", destination: 198.51.100.1}
    cloudInit:
      user: debian
      password: {env: APP_PASSWORD}
      nameservers: [192.0.2.53, 192.0.2.54]
      searchDomain: example.test
      upgrade: false
    options: {reboot: 0, keyboard: de}
containers:
  box:
    vmId: 9200
    hostname: full-ct
    image: {url: "https://images.example/debian-12-standard_12.7-1_amd64.tar.zst"}
    osType: debian
    disk: {storage: local-lvm, size: 4, mountOptions: [noatime], acl: true}
    mountPoints:
      mp0: {storage: local-lvm, size: 2, path: /data, backup: true, readOnly: true}
      mp3: {storage: tank, size: 1, path: /more, replicate: false}
    network:
      net0: {bridge: vmbr0, vlan: 12, mtu: 1400, firewall: true, ip: 192.0.2.10/24, gateway: 192.0.2.1, ip6: auto}
      net1: {bridge: vmbr1, name: lan1, ip: dhcp, mac: "02:00:00:00:00:02", rate: 5, linkDown: true}
    features: {nesting: true}
    nameservers: [192.0.2.53]
    searchDomain: example.test
    password: {env: APP_PASSWORD}
    cores: 2
    cpuUnits: 200
    cpuLimit: 1.5
    memory: 512
    swap: 256
    console: {tty: 1, mode: console}
    timezone: host
    onboot: true
    startup: {order: 4}
    started: false
    tags: [ct]
    notes: a note
    pool: production
    firewall: {policyIn: ACCEPT, rules: [{direction: in, action: DROP, protocol: icmp}]}
"#;

/// What is written instead, and the field that the plan must name.
const CHANGES: [(&str, &str, &str); 35] = [
    ("cores: 2\n    sockets: 2", "cores: 4\n    sockets: 2", "cpu.cores"),
    ("sockets: 2", "sockets: 1", "cpu.sockets"),
    ("type: host, flags: [\"+aes\", \"-pcid\"]", "type: x86-64-v2-AES, flags: [\"+aes\"]", "cpu.flags"),
    ("units: 200, limit: 1.5", "units: 300, limit: 2", "cpu.limit"),
    ("memory: 2048", "memory: 3072", "memory.size"),
    ("balloon: 1024", "balloon: 0", "memory.balloon"),
    ("size: 8, ssd: true, discard: true", "size: 9, ssd: false, discard: false", "disks.scsi0.size"),
    ("cache: writeback, aio: threads", "cache: none", "disks.scsi0.cache"),
    (
        "size: 2, backup: false, replicate: false, readOnly: true, format: raw, serial: abc123",
        "size: 3, serial: def",
        "disks.virtio1.size",
    ),
    ("vlan: 12, mtu: 1400, queues: 2, firewall: true}", "vlan: 13, queues: 4}", "networks.net0.vlan"),
    ("      net3: {model: e1000, bridge: vmbr1, rate: 12.5, linkDown: true}\n", "", "networks.net3"),
    ("    serial: [socket]\n", "", "serial"),
    ("vga: {type: qxl, memory: 32}", "vga: {type: std}", "vga"),
    ("agent: {enabled: true, trim: true}", "agent: {enabled: false}", "agent"),
    ("bootOrder: [scsi0, ide2, net0]", "bootOrder: [ide2, scsi0]", "boot"),
    ("    localTime: true\n", "", "local_time"),
    ("    tablet: false\n", "", "tablet"),
    ("hotplug: [disk, network]", "hotplug: [disk]", "hotplug"),
    ("startup: {order: 3, upDelay: 10, downDelay: 20}", "startup: {order: 5}", "startup"),
    ("tags: [b, a]", "tags: [c]", "tags"),
    ("notes: \"two\\nlines\"", "notes: one", "notes"),
    ("policyIn: REJECT", "policyIn: DROP", "firewall.options.policy_in"),
    ("        - {direction: in, action: ACCEPT, macro: SSH, enabled: false}\n", "", "firewall.rules"),
    (
        "protocol: udp, sourcePort: \"1000:2000\"",
        "protocol: tcp, sourcePort: \"1000:2000\"",
        "firewall.rules",
    ),
    ("user: debian", "user: other", "cloudinit.user"),
    ("nameservers: [192.0.2.53, 192.0.2.54]", "nameservers: [192.0.2.55]", "cloudinit.nameservers"),
    ("options: {reboot: 0, keyboard: de}", "options: {keyboard: fr}", "options"),
    ("size: 4, mountOptions: [noatime], acl: true", "size: 5", "rootfs.size"),
    ("path: /data, backup: true, readOnly: true", "path: /data2", "mounts.mp0"),
    ("ip: 192.0.2.10/24", "ip: 192.0.2.11/24", "networks.net0.ip"),
    ("memory: 512\n    swap: 256", "memory: 640\n    swap: 0", "memory.swap"),
    ("cpuUnits: 200", "cpuUnits: 100", "cpu.units"),
    ("console: {tty: 1, mode: console}", "console: {tty: 2}", "console"),
    ("policyIn: ACCEPT", "policyIn: DROP", "firewall.options.policy_in"),
    ("    pool: production\n    firewall:\n", "    firewall:\n", "pool"),
];

#[test]
fn every_field_is_applied_and_read_back() {
    let world = World::instant(FULL);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    for (from, to, field) in CHANGES {
        world.repo.edit("stacks/web/stack.yaml", from, to);
        let plan = world.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 2, "{field}: {}", plan.all());
        assert!(plan.stdout.contains(field), "{field}: {}", plan.all());
        let applied = world.strata().run(&["apply", "--yes"]);
        assert_eq!(applied.code, 0, "{field}: {}", applied.all());
        let again = world.strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(again.code, 0, "{field} again: {}", again.all());
    }
    world.strata().run(&["destroy", "--yes"]).ok();
}

#[test]
fn a_disk_never_shrinks() {
    let world = World::instant(FULL);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "size: 8, ssd", "size: 4, ssd");
    let refused = world.strata().run(&["apply", "--yes"]).code(3);
    assert!(refused.stdout.contains("it would shrink from 8 GiB to 4 GiB"), "{}", refused.all());
    world.strata().run(&["plan"]).code(3);
}

const RUNNING: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: tank}
templates:
  base: {vmId: 9000, image: {url: "https://images.example/debian-12-genericcloud-amd64.qcow2", storage: tank}, disk: 4}
vms:
  app:
    vmId: 9100
    template: base
    cores: 1
    memory: 1024
    disks: {scsi0: {storage: tank, size: 6}}
    network: [vmbr0]
"#;

#[test]
fn a_restart_is_announced_done_and_can_be_left_to_the_user() {
    let world = World::instant(RUNNING);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "memory: 1024", "memory: 2048");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("restarts") && plan.stdout.contains("1 restart"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert!(!world.export().to_string().contains("\"set\""), "nothing waits for a restart");
    // The user restarts it: the value waits, and a second plan has nothing to do.
    world.repo.edit("stacks/web/stack.yaml", "memory: 2048", "memory: 4096\n    onChange: ignore");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("takes effect at its next restart"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn another_hypervisor_is_a_migration_and_never_a_new_guest() {
    let world = World::instant(RUNNING);
    world.strata().run(&["apply", "--yes"]).ok();
    world.repo.edit("stacks/web/stack.yaml", "    template: base\n", "    template: base\n    node: pve2\n");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(plan.stdout.contains("migrates"), "{}", plan.all());
    assert!(!plan.stdout.contains("replace"), "{}", plan.all());
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    // Somebody migrates it back by hand: drift, not a recreation.
    let moved = json!({"method": "POST", "path": "/nodes/pve2/qemu/9100/migrate", "params": {"target": "pve1", "online": 1}});
    assert_eq!(world.sim.control().change(&moved)["status"], 200);
    world.strata().run(&["drift"]).code(2);
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
}

#[test]
fn cloud_init_documents_are_swapped_and_the_old_iso_goes() {
    let world = World::instant(
        &RUNNING.replace("    network: [vmbr0]", "    network: [vmbr0]\n    cloudInit: {userData: own.yaml}"),
    );
    world.strata().run(&["apply", "--yes"]).ok();
    let isos = |world: &World| world.export().to_string().matches(":iso/strata-").count();
    let before = isos(&world);
    world.repo.write("stacks/web/own.yaml", "#cloud-config\npackages: [nginx]\n");
    let plan = world.strata().run(&["plan"]).ok();
    assert!(
        plan.stdout.contains("the cloud-init data changed") && plan.stdout.contains("restarts"),
        "{}",
        plan.all()
    );
    world.strata().run(&["apply", "--yes"]).ok();
    world.assert_settled();
    assert_eq!(isos(&world), before, "the old ISO is gone");
    // A secret in them is refused unless the user says so.
    world.repo.edit("stacks/web/stack.yaml", "userData: own.yaml", "userData: {secret: nope}");
    let refused = world.strata().run(&["plan"]);
    assert_ne!(refused.code, 0);
}

const DEVICES: &str = r#"
metadata: {name: web, environment: test}
proxmox: {target: pve, node: pve1, storage: {iso: local, disk: local-lvm}}
vms:
  gpu:
    vmId: 9100
    machine: q35
    memory: 2048
    disk: {storage: local-lvm, size: 4}
    started: false
    pci:
      hostpci0: {device: "0000:01:00.0", pcie: true, rombar: false}
      hostpci2: {mapping: card, xvga: true}
    usb:
      usb0: {device: "046d:c52b"}
      usb1: {device: "1-2", usb3: true}
      usb2: {mapping: stick}
      usb3: {device: spice}
"#;

/// What is written instead, the field that the plan must name, and what the VM then has of it.
const DEVICE_CHANGES: [(&str, &str, &str, &str); 9] = [
    ("01:00.0\", pcie: true, rombar: false", "02:00.0\", pcie: true", "pci.hostpci0", "0000:02:00.0,pcie=1"),
    ("mapping: card, xvga: true", "mapping: card2, pcie: true", "pci.hostpci2", "mapping=card2,pcie=1"),
    ("device: \"0000:02:00.0\"", "mapping: card", "pci.hostpci0", "pcie=1,mapping=card"),
    ("      hostpci2: {mapping: card2, pcie: true}\n", "", "pci.hostpci2", ""),
    ("device: \"046d:c52b\"", "device: \"046d:c534\", usb3: true", "usb.usb0", "046d:c534,usb3=1"),
    ("device: \"1-2\", usb3: true", "device: \"1-3\"", "usb.usb1", "1-3"),
    ("mapping: stick", "mapping: stick, usb3: true", "usb.usb2", "mapping=stick,usb3=1"),
    ("      usb3: {device: spice}\n", "", "usb.usb3", ""),
    ("pci:\n      hostpci0: {mapping: card, pcie: true}\n    ", "", "pci.hostpci0", ""),
];

#[test]
fn devices_of_the_host_come_change_and_go() {
    let world = World::instant(DEVICES);
    for (kind, id, map) in [
        ("pci", "card", "node=pve1,path=0000:03:00.0,id=10de:1eb8"),
        ("pci", "card2", "node=pve1,path=0000:04:00.0,id=10de:1eb8"),
        ("usb", "stick", "node=pve1,id=0951:1666"),
    ] {
        let change = json!({"method": "POST", "path": format!("/cluster/mapping/{kind}"), "params": {"id": id, "map": [map]}});
        let answer = world.sim.control().change(&change);
        assert_eq!(answer["status"], 200, "{answer}");
    }
    let before = world.export();
    // Only root may hand out a device by its address; that is said before anything is done.
    let refused = world.strata().run(&["apply", "--yes"]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stdout.contains("only root@pam may set `pci.hostpci0`")
            && refused.stdout.contains("login: {user: root@pam"),
        "{}",
        refused.all()
    );
    assert_eq!(world.export(), before);
    world.repo.edit(
        "strata.yaml",
        "      tls:",
        "      login: {user: root@pam, password: {env: ROOT_PASSWORD}}\n      tls:",
    );
    let strata = || world.strata().env("ROOT_PASSWORD", strata_sim::ROOT_PASSWORD);
    let settled = |what: &str| {
        let plan = strata().run(&["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, 0, "{what}: {}", plan.all());
    };
    strata().run(&["apply", "--yes"]).ok();
    settled("first");
    for (from, to, field, live) in DEVICE_CHANGES {
        world.repo.edit("stacks/web/stack.yaml", from, to);
        let plan = strata().run(&["plan", "--detailed-exitcode"]).code(2);
        assert!(plan.stdout.contains(field), "{field}: {}", plan.all());
        assert!(!plan.stdout.contains("replace"), "{field}: {}", plan.all());
        strata().run(&["apply", "--yes"]).ok();
        settled(field);
        let export = world.export();
        let guests = export["guests"].as_array().unwrap();
        let vm = guests.iter().find(|guest| guest["vmid"] == 9100).unwrap();
        let key = field.split('.').next_back().unwrap();
        assert_eq!(vm["config"][key].as_str().unwrap_or_default(), live, "{field}");
    }
    // Somebody takes a device away: drift, and it comes back.
    let taken =
        json!({"method": "PUT", "path": "/nodes/pve1/qemu/9100/config", "params": {"delete": "usb0"}});
    assert_eq!(world.sim.control().change(&taken)["status"], 200);
    strata().run(&["drift"]).code(2);
    strata().run(&["apply", "--yes"]).ok();
    settled("drift");
    strata().run(&["destroy", "--yes"]).ok();
    assert_eq!(world.export(), before);
}
