//! Every family as it is rendered. With STRATA_UPDATE_GOLDEN=1 the files are written anew.

use std::fs;
use std::path::{Path, PathBuf};

use strata_source::world::Memory;

use crate::world::rendered;

const SETTINGS: &str = "repository: golden
targets:
  pve: {proxmox: {endpoint: 'https://192.0.2.10:8006', token: {env: TOKEN}}}
";

const STACK: &str = "metadata: {name: web, environment: prod}
proxmox: {target: pve, node: pve1}
templates:
  debian12:
    vmId: 9000
    image: {url: 'https://images.example/debian-12.qcow2', checksum: 'sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}
    cores: 2
    memory: 2048
    disk: 20
vms:
  web:
    count: 2
    template: debian12
    vmId: 9100
    memory: 4096
    notes: \"two lines ${here}\\nof notes\"
    disks: {scsi0: {storage: local-lvm, size: 40, ssd: true}, scsi1: {storage: tank, size: 100}}
    network: {net0: {bridge: vmbr0, vlan: 30, ip: 192.0.2.50/24, gateway: 192.0.2.1}, net2: {bridge: vmbr1}}
    cloudInit: {user: debian, sshKeys: ['ssh-ed25519 AAAA someone']}
    firewall: {rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: '443'}]}
    options: {hookscript: 'local:snippets/x'}
  own: {vmId: 9110, disk: 10, cloudInit: {userData: \"#cloud-config\\npackages: []\\n\"}}
containers:
  dns:
    vmId: 9200
    image: {url: 'https://images.example/debian-12.tar.zst'}
    disk: 8
    network: [{bridge: vmbr0, ip: 192.0.2.90/24, gateway: 192.0.2.1}]
    mountPoints: {mp0: {path: /data, storage: tank, size: 16}}
outputs: {web_addresses: 'vms.web[*].address'}
";

const CLUSTER: &str = "metadata: {name: lab, environment: dev}
cluster:
  talos: {version: v1.13.9, schematic: {extensions: [siderolabs/qemu-guest-agent]}, installDisk: /dev/sda}
  kubernetes: {version: v1.36.3}
  network: {cidr: 192.0.2.0/24, gateway: 192.0.2.1, nameservers: [192.0.2.1], vip: 192.0.2.40, vlan: 20}
  topology:
    controlPlane: {count: 1, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.43}
    workers: {count: 1, resources: {cores: 8, memory: 16384, disk: 128}, addresses: 192.0.2.51-192.0.2.53, labels: {zone: a}}
  patches: [\"machine:\\n  sysctls:\\n    vm.max_map_count: '262144'\\n\"]
proxmox: {target: pve, node: pve1, vm: {idBase: 800}}
";

const FLAT: &str = "node_cidr: 192.0.2.0/24
cluster_api_addr: 192.0.2.40
cluster_gateway_addr: 192.0.2.45
repository_name: me/infra
cloudflare_domain: example.org
talos_version: 1.12.0
kubernetes_version: 1.35.0
proxmox_api_url: https://192.0.2.10:8006/api2/json
proxmox_node: pve
monitoring_enabled: true
";

const FLAT_NODES: &str = "nodes:
  - {name: k8s-1, address: 192.0.2.41, controller: true, disk: /dev/sda, mac_addr: 'bc:24:11:00:00:01',
     schematic_id: ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515, vm_id: 801}
";

fn state(text: &str) -> String {
    format!("{SETTINGS}state: {text}\n")
}

/// The whole of a family against the files beside this one.
fn compare(family: &str, world: &Memory, prefixes: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(family);
    let files = rendered(world);
    let wanted = |path: &str| prefixes.iter().any(|prefix| path.starts_with(prefix));
    let text: Vec<(&str, &str)> = files.iter().filter(|(path, _)| wanted(path)).collect();
    assert!(!text.is_empty());
    let place = |path: &str| -> PathBuf { folder.join(path.replace('/', "__")) };
    if std::env::var_os("STRATA_UPDATE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (path, text) in &text {
            fs::write(place(path), text).unwrap();
        }
    }
    for (path, text) in &text {
        let golden = fs::read_to_string(place(path)).unwrap_or_default();
        assert_eq!(*text, golden, "`{path}` of `{family}` is another");
    }
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        text.len(),
        "`{family}` has files that nothing renders"
    );
    // Twice the same.
    let again = rendered(world);
    assert!(again.iter().eq(files.iter()));
}

#[test]
fn the_stack_family() {
    let world = Memory::new()
        .file("strata.yaml", state("{backend: s3, bucket: states, endpoint: 'https://r2.example', lockTable: locks}"))
        .file("stacks/onprem/web/stack.yaml", STACK)
        .file("environments/staging.yaml", "targets: {pve: {proxmox: {endpoint: 'https://192.0.2.99:8006'}}}\nstacks: {web: {vms: {web: {count: 1}}}}\n");
    compare("stack", &world, &["stacks/"]);
    let gaps = rendered(&world).gaps;
    assert!(gaps.iter().any(|gap| gap.reason.contains("`options`")), "{gaps:?}");
}

#[test]
fn the_cluster_family() {
    let world = Memory::new()
        .file(
            "strata.yaml",
            state("{backend: http, url: 'https://state.example', encryption: {passphrase: {env: PASS}}}"),
        )
        .file("clusters/lab/cluster.yaml", CLUSTER);
    compare("cluster", &world, &["clusters/", "Taskfile.yml", "justfile"]);
}

#[test]
fn the_template_family() {
    let world = Memory::new()
        .file("strata.yaml", "repository: golden\n")
        .file("cluster.yaml", FLAT)
        .file("nodes.yaml", FLAT_NODES);
    compare("template", &world, &["infrastructure/", "talos/"]);
}

#[test]
fn the_modules() {
    let world = Memory::new().file("strata.yaml", SETTINGS).file("clusters/lab/cluster.yaml", CLUSTER);
    compare("modules", &world, &["modules/"]);
}

#[test]
fn no_secret_is_rendered() {
    let stack = "proxmox: {target: pve, node: pve1}
vms: {db: {vmId: 9100, disk: 8, cloudInit: {user: debian, password: {secret: db}}}}
";
    let world = Memory::new().file("strata.yaml", SETTINGS).file("stacks/db/stack.yaml", stack);
    let (repository, _) = strata_source::Repository::load(&world);
    let blueprint = crate::world::draw(&repository, repository.stack("db", None).unwrap());
    let secrets = strata_tofu::secret_variables(&blueprint);
    assert_eq!(secrets["user_passwords"]["db"], "secret");
}
