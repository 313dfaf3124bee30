//! The flat files of the cluster-template family.

use insta::assert_snapshot;
use strata_diagnostics::Diagnostics;
use strata_source::world::Memory;

use crate::{clean, load, mistakes};

const CLUSTER: &str = r#"
---
node_cidr: 192.0.2.0/24
node_vlan_tag: "20"
proxmox_vlan_mode: true
cluster_api_addr: 192.0.2.40
cluster_gateway_addr: 192.0.2.42
repository_name: me/infra
cloudflare_domain: example.com
cloudflare_token: abc
monitoring_enabled: true
keycloak_replicas: 3
proxmox_api_url: https://192.0.2.10:8006/api2/json
proxmox_node: pve
proxmox_api_token_id: root@pam!tofu
proxmox_api_token_secret: {env: PROXMOX_SECRET}
proxmox_vm_defaults: {cores: 6}
proxmox_vm_worker_defaults: {memory: 32768}
proxmox_vm_advanced: {net_queues: 8, tags: [talos]}
"#;

const NODES: &str = r#"
nodes:
  - name: k8s-0
    address: 192.0.2.50
    controller: true
    disk: /dev/sda
    mac_addr: "bc:24:11:00:00:01"
    schematic_id: "SCHEMATIC"
    mtu: 1500
    vm_id: 500
    vm_memory: 4096
    vm_startup_order: 1
  - name: k8s-1
    address: 192.0.2.51
    controller: false
    disk: /dev/sda
    mac_addr: "bc:24:11:00:00:02"
    schematic_id: "SCHEMATIC"
    secureboot: true
    vm_id: 501
"#;

fn world(cluster: &str, nodes: &str) -> Memory {
    let nodes = nodes.replace("SCHEMATIC", &"ab".repeat(32));
    Memory::new().file("cluster.yaml", cluster).file("nodes.yaml", nodes)
}

#[test]
fn they_are_read_where_they_are() {
    let repository = clean(&world(CLUSTER, NODES));
    let stack = repository.stack("kubernetes", None).unwrap();
    let cluster = stack.cluster().unwrap();
    let machines = cluster.machines("kubernetes", &mut Diagnostics::new());
    let lines: Vec<String> = machines
        .iter()
        .map(|machine| {
            format!(
                "{} {} {} {:?} {} cores={:?} memory={} disk={}",
                machine.role,
                machine.name,
                machine.vm_id.unwrap(),
                machine.address.unwrap().value,
                machine.mac.unwrap(),
                machine.cores,
                machine.memory.unwrap(),
                machine.disk.unwrap()
            )
        })
        .collect();
    assert_snapshot!(lines.join("\n"), @"
    controlPlane k8s-0 500 192.0.2.50 BC:24:11:00:00:01 cores=Some(6) memory=4096M disk=64G
    worker k8s-1 501 192.0.2.51 BC:24:11:00:00:02 cores=Some(6) memory=32768M disk=256G
    ");
    let proxmox = cluster.proxmox.as_ref().unwrap();
    assert_eq!(proxmox.endpoint.as_ref().unwrap().as_str(), "https://192.0.2.10:8006");
    assert_eq!(repository.proxmox_endpoint(stack).unwrap(), "https://192.0.2.10:8006");
    let network = cluster.cluster.network.as_ref().unwrap();
    assert_eq!((network.vlan, network.gateway.unwrap().to_string().as_str()), (Some(20), "192.0.2.1"));
    let hardware = &proxmox.vm.as_ref().unwrap().hardware;
    assert_eq!(hardware.network.get("net0").unwrap().queues, Some(8));
    assert_eq!(hardware.balloon, Some(0));
    assert_eq!(hardware.bios.unwrap().as_str(), "ovmf");
    assert_eq!(proxmox.vm.as_ref().unwrap().tags.as_deref().unwrap(), ["talos"]);
}

#[test]
fn without_a_proxmox_there_are_only_machines() {
    let cluster: String =
        CLUSTER.lines().filter(|line| !line.starts_with("proxmox_node")).map(|l| format!("{l}\n")).collect();
    let repository = clean(&world(&cluster, NODES));
    assert!(repository.stack("kubernetes", None).unwrap().cluster().unwrap().proxmox.is_none());
}

#[test]
fn mistakes_are_reported_in_their_words() {
    let cluster = CLUSTER.replace("node_cidr: 192.0.2.0/24", "node_cidr: 192.0.2.0").replace("\"20\"", "20");
    assert_snapshot!(mistakes(&world(&cluster, NODES)), @r#"
    error[invalid-value]: `192.0.2.0` has no prefix: write `192.0.2.0/24` or the prefix of its network
     --> cluster.yaml:3:12
      |
    3 | node_cidr: 192.0.2.0
      |            ^^^^^^^^^ `node_cidr` takes an address with its prefix such as `192.0.2.10/24`
    error[wrong-type]: expected text, found the number `20`
     --> cluster.yaml:4:16
      |
    4 | node_vlan_tag: 20
      |                ^^ `node_vlan_tag` takes text
      |
      = hint: put it in quotes: "20"
    "#);
    let nodes =
        NODES.replace("vm_memory: 4096", "vm_memroy: 4096").replace("controller: false", "controller: no");
    assert_snapshot!(mistakes(&world(CLUSTER, &nodes)), @"
    error[unknown-key]: unknown key `vm_memroy`
      --> nodes.yaml:11:5
       |
    11 |     vm_memroy: 4096
       |     ^^^^^^^^^
       |
       = note: allowed here: name, address, controller, disk, mac_addr, schematic_id, mtu, secureboot, encrypt_disk, kernel_modules, vm_id, vm_cores, vm_sockets, vm_memory, vm_disk_size, vm_startup_order, vm_startup_delay, vm_shutdown_delay
       = hint: did you mean `vm_memory`?
    error[wrong-type]: expected `true` or `false`, found text `no`
      --> nodes.yaml:15:17
       |
    15 |     controller: no
       |                 ^^ `controller` takes `true` or `false`
       |
       = hint: write `false`, without quotes
    ");
}

#[test]
fn a_machine_without_a_number_gets_one_and_says_so() {
    let (repository, warnings) = load(&world(CLUSTER, &NODES.replace("    vm_id: 501\n", "")));
    assert_snapshot!(warnings, @"
    warning[no-vmid]: `k8s-1` has no `vm_id`; it gets 810
      --> nodes.yaml:13:11
       |
    13 |   - name: k8s-1
       |           ^^^^^
       |
       = hint: write `vm_id: 810`, so that it stays
    ");
    let cluster = repository.stack("kubernetes", None).unwrap().cluster().unwrap();
    assert_eq!(cluster.machines("kubernetes", &mut Diagnostics::new())[1].vm_id.unwrap().value, 810);
}

#[test]
fn machines_that_share_something_are_found() {
    let nodes = NODES.replace("192.0.2.51", "192.0.2.50").replace("00:00:02", "00:00:01");
    assert_snapshot!(mistakes(&world(CLUSTER, &nodes)), @r#"
    error[ip-collision]: the address `192.0.2.50` is used twice on the same target
      --> nodes.yaml:14:14
       |
     4 |     address: 192.0.2.50
       |              ---------- `k8s-0` of stack `kubernetes`
    ...
    14 |     address: 192.0.2.50
       |              ^^^^^^^^^^ `k8s-1` of stack `kubernetes`
    error[mac-collision]: the MAC `BC:24:11:00:00:01` is used twice on the same target
      --> nodes.yaml:17:15
       |
     7 |     mac_addr: "bc:24:11:00:00:01"
       |               ------------------- `k8s-0` of stack `kubernetes`
    ...
    17 |     mac_addr: "bc:24:11:00:00:01"
       |               ^^^^^^^^^^^^^^^^^^^ `k8s-1` of stack `kubernetes`
    "#);
}

/// The family's samples give every key, with an empty text for what is not said.
#[test]
fn an_empty_text_says_nothing() {
    let cluster = CLUSTER.replace("node_vlan_tag: \"20\"", "node_vlan_tag: \"\"\nnode_default_gateway: ''");
    let nodes = NODES.replace("    mtu: 1500\n", "    mtu: ''\n");
    let repository = clean(&world(&cluster, &nodes));
    let cluster = repository.stack("kubernetes", None).and_then(|stack| stack.cluster()).unwrap();
    let network = cluster.cluster.network.as_ref().unwrap();
    assert_eq!((network.vlan.is_none(), network.guest_vlan.is_none()), (true, true));
}

#[test]
fn e6_the_family_runs_cilium_and_no_kube_proxy() {
    use strata_source::cluster::Cni;
    let kubernetes = |cluster: &str| {
        let repository = clean(&world(cluster, NODES));
        let stack = repository.stack("kubernetes", None).unwrap();
        let own = stack.cluster().unwrap().cluster.kubernetes.clone().unwrap();
        (own.cni, own.kube_proxy)
    };
    assert_eq!(kubernetes(CLUSTER), (Some(Cni::None), Some(false)));
    assert_eq!(kubernetes(&format!("{CLUSTER}cluster_cni: cilium\n")), (Some(Cni::None), Some(false)));
    // A cluster that was made otherwise says so.
    assert_eq!(kubernetes(&format!("{CLUSTER}cluster_cni: flannel\n")), (Some(Cni::Flannel), None));
    let found = mistakes(&world(&format!("{CLUSTER}cluster_cni: calico\n"), NODES));
    assert!(found.contains("cluster_cni: calico") && found.contains("^"), "{found}");
}
