//! Stacks of machines: what is read from them.

use strata_source::machine::image::ImageRef;
use strata_source::value::address::Addressing;
use strata_source::world::Memory;

use crate::examples::handbook;
use crate::{SETTINGS, clean, web};

#[test]
fn the_stack_of_the_handbook() {
    let repository = clean(&handbook());
    let effective = repository.stack("web", None).unwrap();
    assert_eq!((effective.environment.as_str(), effective.target_name().unwrap().as_str()), ("prod", "pve"));
    let stack = effective.machines().unwrap();
    let vms: Vec<(String, u32)> = stack.vm_instances().into_iter().map(|vm| (vm.name, vm.vm_id)).collect();
    assert_eq!(vms, [("web-1".into(), 9100), ("web-2".into(), 9101), ("web-3".into(), 9102)]);
    let web = stack.vms.get("web").unwrap();
    assert_eq!(web.hardware.disks.get("scsi0").unwrap().size.unwrap().whole_gib(), Some(40));
    let container = stack.containers.get("monitor").unwrap();
    assert!(container.unprivileged);
    assert!(matches!(&container.image, ImageRef::Inline(image) if image.checksum.is_some()));
    assert_eq!(stack.outputs.get("web_addresses").unwrap().to_string(), "vms.web[*].address");
}

#[test]
fn a_vm_that_boots_from_an_iso() {
    let world = web("\
vms:
  hello:
    vmId: 100
    iso: local:iso/test.iso
    cores: 1
    memory: 512
    disks: {scsi0: {storage: local, size: 1}}
    network: [vmbr0]
");
    let repository = clean(&world);
    let stack = repository.stack("web", None).unwrap().machines().unwrap();
    let vm = stack.vms.get("hello").unwrap();
    assert!(matches!(&vm.iso, Some(ImageRef::Volume(volume)) if volume.value == "local:iso/test.iso"));
    assert_eq!(vm.hardware.network.get("net0").unwrap().bridge.as_ref().unwrap().as_str(), "vmbr0");
    assert_eq!(vm.places.value("cores"), vm.hardware.places.value("cores"));
}

#[test]
fn a_vm_with_everything() {
    let world = web(r#"
images:
  debian: {url: https://images.example/debian.img, checksum: "sha256:SUM", storage: tank, contentType: import}
vms:
  full:
    vmId: 120
    name: full-machine
    node: pve2
    image: debian
    cores: 4
    sockets: 2
    cpu: {type: host, flags: [+aes, -pcid], units: 2048, limit: 3.5, numa: true, affinity: "0-3"}
    memory: 4GiB
    balloon: 1024
    bios: ovmf
    machine: q35
    efi: {storage: tank, preEnrolledKeys: true, type: 4m}
    tpm: {storage: tank, version: v2.0}
    scsiController: virtio-scsi-single
    disks:
      scsi0: {size: 40, storage: tank, ssd: true, discard: true, iothread: true, cache: writeback, backup: false,
              replicate: false, aio: io_uring, format: qcow2, readOnly: false}
      scsi1: 1T
      ide2: {iso: local:iso/tools.iso}
    network:
      net0: {model: virtio, mac: "bc:24:11:00:00:01", bridge: vmbr0, vlan: 30, mtu: 9000, queues: 4, firewall: true,
             rate: 12.5, linkDown: false, ip: 192.0.2.5/24, gateway: 192.0.2.1, ip6: auto}
      net3: {bridge: vmbr1, ip: dhcp, ip6: "2001:db8::5/64", gateway6: "fe80::1"}
    pci: [gpu0, {device: "0000:01:00.0", pcie: true, rombar: false, xvga: true, mdev: nvidia-222}]
    usb: {usb1: {device: "1234:5678", usb3: true}}
    serial: [socket]
    vga: {type: virtio, memory: 32}
    agent: {enabled: true, trim: true, type: virtio}
    bootOrder: [scsi0, net0]
    startup: {order: 3, upDelay: 30, downDelay: 2m}
    onboot: true
    started: false
    tags: [web, prod]
    notes: |
      for people
    protect: true
    protection: true
    pool: web
    osType: l26
    tablet: false
    hotplug: [disk, network]
    onChange: reboot
    timeouts: {create: 10m, clone: 1h}
    cloudInit:
      user: debian
      password: {env: PASSWORD}
      sshKeys: ["ssh-ed25519 AAAA me"]
      nameservers: [192.0.2.1]
      searchDomain: example
      userData: {packages: [htop]}
      vendorData: |
        #cloud-config
        package_update: true
      onChange: recreate
      upgrade: false
      storage: tank
    firewall:
      enabled: true
      policyIn: DROP
      policyOut: ACCEPT
      logLevelIn: info
      dhcp: true
      macFilter: true
      ipFilter: false
      ndp: true
      radv: false
      rules:
        - {type: in, action: ACCEPT, comment: web, source: 192.0.2.0/24, dest: +web, proto: tcp, dport: 80, sport: "1024:65535",
           iface: net0, log: nolog, enabled: false}
        - {direction: in, action: ACCEPT, macro: SSH}
        - {direction: group, action: webservers}
    options: {hotplug: "disk,network", keyboard: de}
    proxmox: {options: {keyboard: fr, acpi: true}}
"#
    .replace("SUM", &"0f".repeat(32))
    .as_str());
    let repository = clean(&world);
    let stack = repository.stack("web", None).unwrap().machines().unwrap();
    let instance = &stack.vm_instances()[0];
    assert_eq!((instance.name.as_str(), instance.node.as_ref().unwrap().as_str()), ("full-machine", "pve2"));
    let vm = instance.spec;
    assert_eq!(vm.hardware.disks.get("scsi1").unwrap().size.unwrap().whole_gib(), Some(1024));
    assert_eq!(vm.hardware.memory.unwrap().mib(), 4096);
    assert_eq!(vm.hardware.pci.get("hostpci0").unwrap().mapping.as_ref().unwrap().as_str(), "gpu0");
    assert_eq!(vm.guest.startup.as_ref().unwrap().down_delay.unwrap().0, 120);
    let raw: Vec<(String, String)> =
        vm.guest.raw_options().map(|(key, value)| (key.to_string(), value.to_wire())).collect();
    assert_eq!(
        raw,
        [("hotplug", "disk,network"), ("keyboard", "fr"), ("acpi", "1")].map(|(k, v)| (k.into(), v.into()))
    );
    let custom: Vec<&str> = vm.cloud_init.as_ref().unwrap().custom().map(|(name, _)| name).collect();
    assert_eq!(custom, ["userData", "vendorData"]);
}

#[test]
fn a_container_with_everything() {
    let world = web("\
containers:
  dns:
    vmId: 200
    count: 2
    image: local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst
    osType: debian
    rootfs: {storage: local-lvm, size: 8, acl: true, quota: false, replicate: false, mountOptions: [noatime]}
    mountPoints:
      mp0: {path: /srv, storage: tank, size: 100, readOnly: false, backup: true, quota: false, acl: true, replicate: true}
      mp1: {path: /host, volume: /mnt/host, mountOptions: [noexec]}
    network: [{bridge: vmbr0, name: eth0, ip: 192.0.2.20/24, gateway: 192.0.2.1}]
    features: {nesting: true, keyctl: false, fuse: false, mount: [nfs], mknod: false}
    unprivileged: false
    nameservers: [192.0.2.1]
    searchDomain: example
    sshKeys: [{file: keys/me.pub}]
    password: {env: ROOT_PASSWORD}
    startup: 5
    onboot: true
    cores: 1
    cpuUnits: 1024
    cpuLimit: 0.5
    memory: 512
    swap: 0
    started: true
    tags: [dns]
    hostname: dns
    console: {enabled: true, tty: 2, mode: shell}
    timezone: host
    firewall: true
    options: {cmode: tty}
")
    .file("stacks/web/keys/me.pub", "ssh-ed25519 AAAA me\n");
    let repository = clean(&world);
    let stack = repository.stack("web", None).unwrap().machines().unwrap();
    let containers = stack.container_instances();
    assert_eq!(
        containers.iter().map(|one| (one.name.as_str(), one.vm_id)).collect::<Vec<_>>(),
        [("dns-1", 200), ("dns-2", 201)]
    );
    let nic = containers[1].spec.network.get("net0").unwrap();
    let second = containers[1].addressing(nic.ip.unwrap().value).unwrap();
    assert!(matches!(second, Addressing::Static(cidr) if cidr.to_string() == "192.0.2.21/24"));
}

#[test]
fn templates_on_several_nodes_take_one_number_each() {
    let world = Memory::new().file("strata.yaml", SETTINGS).file(
        "stacks/base/stack.yaml",
        "\
proxmox: {nodes: [pve1, pve2], storage: tank}
templates:
  debian: {vmId: 9000, image: local:import/debian.qcow2, nodes: [pve1, pve2], disk: 10}
vms:
  web: {vmId: 100, count: 3, template: debian}
",
    );
    let repository = clean(&world);
    let effective = repository.stack("base", None).unwrap();
    assert_eq!(repository.target(effective).unwrap().0, "pve", "the only target is taken");
    let stack = effective.machines().unwrap();
    let templates: Vec<(String, u32)> =
        stack.template_instances().into_iter().map(|one| (one.name, one.vm_id)).collect();
    assert_eq!(templates, [("debian-pve1".into(), 9000), ("debian-pve2".into(), 9001)]);
    let nodes: Vec<String> = stack.vm_instances().into_iter().map(|vm| vm.node.unwrap().value).collect();
    assert_eq!(nodes, ["pve1", "pve2", "pve1"]);
}

#[test]
fn defaults_lie_beneath_and_give_way() {
    let settings = format!(
        "{SETTINGS}\
defaults:
  proxmox: {{target: pve, node: pve1, storage: tank}}
  vm: {{cores: 2, template: none, tags: [managed], agent: true}}
  container: {{memory: 256}}
"
    );
    let world = Memory::new().file("strata.yaml", settings).file(
        "stacks/a/stack.yaml",
        "\
proxmox: {nodes: [pve2]}
vms:
  one: {vmId: 100, iso: local:iso/a.iso}
  two: {vmId: 101, iso: local:iso/a.iso, cores: 8, tags: [mine]}
containers:
  three: {vmId: 102, image: local:vztmpl/a.tar.zst}
",
    );
    let repository = clean(&world);
    let stack = repository.stack("a", None).unwrap().machines().unwrap();
    let one = stack.vms.get("one").unwrap();
    assert_eq!(
        (one.hardware.cores, one.template.is_none()),
        (Some(2), true),
        "`iso` excludes the default template"
    );
    assert_eq!(one.guest.tags, ["managed"]);
    let two = stack.vms.get("two").unwrap();
    assert_eq!((two.hardware.cores, two.guest.tags.as_slice()), (Some(8), ["mine".to_owned()].as_slice()));
    assert_eq!(stack.containers.get("three").unwrap().memory.unwrap().mib(), 256);
    let placement = stack.proxmox.as_ref().unwrap();
    assert!(placement.node.is_none() && placement.nodes.len() == 1, "`nodes` excludes the default node");
    assert_eq!(placement.storage.as_ref().unwrap().disk.as_ref().unwrap().as_str(), "tank");
}
