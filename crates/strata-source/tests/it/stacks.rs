//! Stacks of machines.

use strata_source::machine::image::ImageRef;
use strata_source::world::Memory;

use crate::{SETTINGS, checksum, clean};

#[test]
fn the_stack_of_the_handbook_is_read() {
    let stack = format!(
        "\
metadata: {{name: web, environment: prod}}
proxmox: {{target: pve, node: pve1}}
templates:
  debian12:
    vmId: 9000
    image: {{url: https://cloud.debian.org/images/debian-12-genericcloud-amd64.qcow2, checksum: \"{sum}\"}}
    cores: 2
    memory: 2048
    disk: 20
    protect: true
vms:
  web: {{count: 3, template: debian12, vmId: 9100, cores: 2, memory: 4096, started: true,
        disks: {{scsi0: {{storage: local-lvm, size: 40, ssd: true}}, scsi1: {{storage: tank, size: 100}}}},
        network: [{{bridge: vmbr0, vlan: 30}}],        # net0, net1, …; or by slot
        cloudInit: {{user: debian, sshKeys: [file: ~/.ssh/id_ed25519.pub], userData: cloud-init/web.yaml}},
        firewall: {{rules: [{{direction: in, action: ACCEPT, protocol: tcp, destinationPort: \"443\"}}]}}, tags: [web]}}
containers:
  monitor: {{vmId: 9200, image: {{url: https://images.example/debian-12-standard_amd64.tar.zst, checksum: \"{sum}\"}}, unprivileged: true,
            cores: 1, memory: 512, disk: 8, network: [{{bridge: vmbr0, ip: 192.0.2.90/24, gateway: 192.0.2.1}}]}}
outputs:
  web_addresses: vms.web[*].address
",
        sum = checksum()
    );
    let world = Memory::new()
        .file("strata.yaml", SETTINGS)
        .file("stacks/web/stack.yaml", stack)
        .file("stacks/web/cloud-init/web.yaml", "#cloud-config\n")
        .file("/home/me/.ssh/id_ed25519.pub", "ssh-ed25519 AAAA me\n")
        .variable("HOME", "/home/me");
    let repository = clean(&world);
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
    let world = Memory::new().file("strata.yaml", SETTINGS).file(
        "stacks/first/stack.yaml",
        "\
metadata: {name: first}
proxmox: {target: pve, node: pve}
vms:
  hello:
    vmId: 100
    iso: local:iso/test.iso
    cores: 1
    memory: 512
    disks: {scsi0: {storage: local, size: 1}}
    network: [vmbr0]
",
    );
    let repository = clean(&world);
    let stack = repository.stack("first", None).unwrap().machines().unwrap();
    let vm = stack.vms.get("hello").unwrap();
    assert!(matches!(&vm.iso, Some(ImageRef::Volume(volume)) if volume.value == "local:iso/test.iso"));
    assert_eq!(vm.hardware.network.get("net0").unwrap().bridge.as_ref().unwrap().as_str(), "vmbr0");
    assert_eq!(vm.places.value("cores"), vm.hardware.places.value("cores"));
}
