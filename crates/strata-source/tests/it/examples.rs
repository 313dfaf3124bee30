//! The files of the handbook, as they are printed there.

use crate::checksum;

pub(crate) const STRATA: &str = r#"
state:
  backend: local                     # local | http | s3 | postgres
  encryption: {passphrase: {secret: state_encryption_passphrase}}
secrets:
  - sops: secrets.sops.yaml          # age identity: SOPS_AGE_KEY, SOPS_AGE_KEY_FILE, or sops' default path
  - vault: secrets.vault.yaml        # password: ANSIBLE_VAULT_PASSWORD_FILE, --vault-password-file, or a prompt
targets:
  pve:
    proxmox:
      endpoint: https://192.0.2.10:8006
      token: {secret: proxmox_api_token}          # user@realm!name=uuid
      tls: {fingerprint: "AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD:AB:CD"}
  nas:
    truenas: {endpoint: https://192.0.2.20, apiKey: {secret: truenas_api_key}}
mirrors:                             # air gap, caches and the simulator
  https://factory.talos.dev: https://factory.internal.example
"#;

pub(crate) const CLUSTER: &str = r#"
metadata: {name: homelab, environment: dev}
cluster:
  talos:
    version: v1.13.9
    schematic: {extensions: [siderolabs/qemu-guest-agent]}   # or {id: <64 hex>}
    secureBoot: false
    installDisk: /dev/sda
  kubernetes: {version: v1.36.3}
  network:
    cidr: 192.0.2.0/24
    gateway: 192.0.2.1
    nameservers: [192.0.2.1]
    vip: 192.0.2.40
    bridge: vmbr0
    vlan: 20
    mtu: 1500
  topology:
    controlPlane: {count: 1, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
    workers:      {count: 1, resources: {cores: 8, memory: 16384, disk: 256}, addresses: 192.0.2.51-192.0.2.69}
    pools:
      - {name: gpu, count: 1, resources: {cores: 8, memory: 32768, disk: 256}, labels: {gpu: "true"}, pci: [gpu0]}
  nodes:                             # by name; any field of a pool, for one node (nodes.yaml says the same)
    homelab-worker-1: {memory: 24576, hypervisor: pve2}
  patches: [patches/common.yaml]
proxmox:
  target: pve
  nodes: [pve1, pve2]                # control planes are spread over them
  storage: {iso: local, disk: local-lvm}
  vm: {idBase: 800}                  # + the Talos-tuned defaults, each of which can be overridden
storage:
  truenas: {target: nas, datasets: [tank/k8s/homelab]}
gitops:
  flux:
    version: v2.9.5
    repository: ssh://git@git.example/me/infra
    branch: main
    path: infrastructure/core/overlays/homelab
    ageKey: {file: age.agekey}       # becomes Secret flux-system/sops-age, straight into the cluster
  infrastructure: {core: [cert-manager], optional: [kube-prometheus-stack]}
  secrets:
    truenas-api: {namespace: democratic-csi, data: {apiKey: {secret: truenas_api_key}}}
"#;

pub(crate) fn stack() -> String {
    let text = r#"
metadata: {name: web, environment: prod}
proxmox: {target: pve, node: pve1}
templates:
  debian12:
    vmId: 9000
    image: {url: https://cloud.debian.org/images/debian-12-genericcloud-amd64.qcow2, checksum: "SUM"}
    cores: 2
    memory: 2048
    disk: 20
    protect: true
vms:
  web: {count: 3, template: debian12, vmId: 9100, cores: 2, memory: 4096, started: true,
        disks: {scsi0: {storage: local-lvm, size: 40, ssd: true}, scsi1: {storage: tank, size: 100}},
        network: [{bridge: vmbr0, vlan: 30}],        # net0, net1, …; or by slot: {net0: …, net3: …}
        cloudInit: {user: debian, sshKeys: [file: ~/.ssh/id_ed25519.pub], userData: cloud-init/web.yaml},
        firewall: {rules: [{direction: in, action: ACCEPT, protocol: tcp, destinationPort: "443"}]}, tags: [web]}
containers:
  monitor: {vmId: 9200, image: {url: https://images.example/debian-12-standard_amd64.tar.zst, checksum: "SUM"}, unprivileged: true,
            cores: 1, memory: 512, disk: 8, network: [{bridge: vmbr0, ip: 192.0.2.90/24, gateway: 192.0.2.1}]}
outputs:
  web_addresses: vms.web[*].address
"#;
    text.replace("SUM", &checksum())
}

pub(crate) const HYPERVISOR: &str = r#"
metadata: {name: hosts, description: the rack in the cellar}
proxmox: {target: pve, nodes: [pve1, pve2]}
storages:
  tank: {type: zfspool, pool: tank, content: [images, rootdir], sparse: true}
  nfs: {type: nfs, server: 192.0.2.20, export: /tank/iso, content: [iso, vztmpl, import], nodes: [pve1, pve2]}
  backup: {type: pbs, server: 192.0.2.30, datastore: main, username: strata@pbs, password: {secret: pbs}, enabled: false}
network:
  vmbr0: {type: bridge, ports: [eno1], address: 192.0.2.10/24, gateway: 192.0.2.1, vlanAware: true}
  vmbr0.20: {type: vlan, device: vmbr0, tag: 20, mtu: 1500, comment: servers}
pools: {web: {comment: public}}
roles: {Strata: [VM.Allocate, VM.Config.Disk], Reader: {privileges: [VM.Audit]}}
groups: {ops: {comment: on call}}
users: {ops@pve: {groups: [ops], email: ops@example.com, expire: 0, password: {env: OPS}}}
tokens: {ops@pve!ci: {privilegeSeparation: false, comment: pipelines}}
acl:
  - {path: /, role: Strata, token: ops@pve!ci}
  - {path: /vms, role: Reader, group: ops, propagate: false}
mappings:
  pci: {gpu0: {devices: [{node: pve1, path: "0000:01:00.0", id: "10de:2204", iommuGroup: 12}], mediated: false}}
  usb: {stick: {devices: [{node: pve2, path: 1-2}]}}
firewall:
  policyIn: DROP
  aliases: {nas: 192.0.2.20}
  ipSets: {admins: [192.0.2.0/28], web: {comment: public, addresses: [192.0.2.90]}}
  groups: {webservers: {rules: [{direction: in, action: ACCEPT, macro: HTTPS}]}}
  rules: [{direction: in, action: ACCEPT, source: +admins}]
dns: {servers: [192.0.2.1], searchDomain: example}
timezone: Europe/Paris
"#;

pub(crate) const ENVIRONMENT: &str = r#"
targets: {pve: {proxmox: {endpoint: https://198.51.100.10:8006, tls: null}}}
mirrors: {https://cloud.debian.org: https://mirror.example/debian}
policy: {requireChecksum: true}
defaults: {vm: {tags: [prod]}}
stacks:
  web: {vms: {web: {count: 5, cores: 4, disks: {scsi0: {size: 80}}, cloudInit: {userData: null}}}, outputs: null}
clusters:
  homelab: {cluster: {topology: {controlPlane: {count: 3}}, nodes: {homelab-cp-2: {hypervisor: pve3}}}}
hypervisors:
  hosts: {storages: {tank: {sparse: false}}}
"#;

pub(crate) const NODES: &str =
    "nodes:\n  homelab-cp-1: {vmId: 899, address: 192.0.2.45, mac: \"BC:24:11:00:00:02\", labels: {a: b}}\n";

/// All of them in one repository, with the files that they name.
pub(crate) fn handbook() -> strata_source::world::Memory {
    strata_source::world::Memory::new()
        .file("strata.yaml", STRATA)
        .file(
            "secrets.sops.yaml",
            "proxmox_api_token: ENC[x]\ntruenas_api_key: ENC[y]\nsops: {version: 3.9.0}\n",
        )
        .file("secrets.vault.yaml", "$ANSIBLE_VAULT;1.1;AES256\n6162\n")
        .file("clusters/homelab/cluster.yaml", CLUSTER)
        .file("clusters/homelab/patches/common.yaml", "machine: {}\n")
        .file("age.agekey", "AGE-SECRET-KEY-1\n")
        .file("stacks/web/stack.yaml", stack())
        .file("stacks/web/cloud-init/web.yaml", "#cloud-config\n")
        .file("/home/me/.ssh/id_ed25519.pub", "ssh-ed25519 AAAA me\n")
        .variable("HOME", "/home/me")
}

#[test]
fn the_handbook_is_read_without_a_mistake() {
    let repository = crate::clean(&handbook());
    let names: Vec<&str> = repository.stacks().iter().map(|entry| entry.name.value.as_str()).collect();
    assert_eq!(names, ["homelab", "web"], "platforms before workloads");
    assert_eq!(
        repository.settings.mirrored("https://factory.talos.dev/image/x"),
        "https://factory.internal.example/image/x"
    );
}
