//! Clusters: the machines that a topology stands for.

use insta::assert_snapshot;
use strata_diagnostics::Diagnostics;
use strata_source::Repository;
use strata_source::world::Memory;

use crate::examples::{CLUSTER, handbook};
use crate::{SETTINGS, clean, mistakes};

/// One line for each machine.
fn machines(repository: &Repository, stack: &str) -> String {
    let stack_read = repository.stack(stack, None).expect("the stack");
    let cluster = stack_read.cluster().expect("a cluster");
    let mut diagnostics = Diagnostics::new();
    let machines = cluster.machines(stack, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let line = |machine: &strata_source::cluster::nodes::Machine<'_>| {
        format!(
            "{} {} vm={} {} on {} cores={} memory={} disk={}",
            machine.role,
            machine.name,
            machine.vm_id.map_or("-".to_owned(), |id| id.to_string()),
            machine.address.map_or("dhcp".to_owned(), |address| address.to_string()),
            machine.hypervisor.as_ref().map_or("-", |node| node.as_str()),
            machine.cores.map_or("-".to_owned(), |cores| cores.to_string()),
            machine.memory.map_or("-".to_owned(), |memory| memory.to_string()),
            machine.disk.map_or("-".to_owned(), |disk| disk.to_string()),
        )
    };
    machines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The handbook's cluster with changes.
fn cluster(changes: &[(&str, &str)]) -> Memory {
    let mut text = CLUSTER.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    handbook().file("clusters/homelab/cluster.yaml", text)
}

#[test]
fn the_cluster_of_the_handbook() {
    assert_snapshot!(machines(&clean(&handbook()), "homelab"), @"
    controlPlane homelab-cp-1 vm=800 192.0.2.41 on pve1 cores=4 memory=8192M disk=64G
    worker homelab-worker-1 vm=810 192.0.2.51 on pve2 cores=8 memory=24576M disk=256G
    worker homelab-gpu-1 vm=820 192.0.2.69 on pve1 cores=8 memory=32768M disk=256G
    ");
}

#[test]
fn names_follow_the_naming() {
    let world = cluster(&[
        ("  patches: [patches/common.yaml]", "  naming: \"{cluster}-{role}{n}\""),
        ("    homelab-worker-1: {memory", "    homelab-worker1: {memory"),
    ]);
    assert_snapshot!(machines(&clean(&world), "homelab"), @"
    controlPlane homelab-cp1 vm=800 192.0.2.41 on pve1 cores=4 memory=8192M disk=64G
    worker homelab-worker1 vm=810 192.0.2.51 on pve2 cores=8 memory=24576M disk=256G
    worker homelab-gpu1 vm=820 192.0.2.69 on pve1 cores=8 memory=32768M disk=256G
    ");
}

#[test]
fn nodes_beside_the_cluster_win() {
    let world = handbook().file(
        "clusters/homelab/nodes.yaml",
        "nodes:\n  homelab-worker-1: {cores: 16}\n  homelab-cp-1: {vmId: 899, address: 192.0.2.45, mac: \"BC:24:11:00:00:02\"}\n",
    );
    assert_snapshot!(machines(&clean(&world), "homelab"), @"
    controlPlane homelab-cp-1 vm=899 192.0.2.45 on pve1 cores=4 memory=8192M disk=64G
    worker homelab-worker-1 vm=810 192.0.2.51 on pve2 cores=16 memory=24576M disk=256G
    worker homelab-gpu-1 vm=820 192.0.2.69 on pve1 cores=8 memory=32768M disk=256G
    ");
}

#[test]
fn bare_metal_has_addresses_and_no_numbers() {
    let world = Memory::new().file("strata.yaml", SETTINGS).file(
        "clusters/metal/cluster.yaml",
        "\
cluster:
  talos: {version: v1.13.9}
  network: {cidr: 198.51.100.0/24}
  nodes:
    a: {role: controlPlane, address: 198.51.100.2}
    b: {role: worker, address: 198.51.100.3}
",
    );
    assert_snapshot!(machines(&clean(&world), "metal"), @"
    controlPlane a vm=- 198.51.100.2 on - cores=- memory=- disk=-
    worker b vm=- 198.51.100.3 on - cores=- memory=- disk=-
    ");
}

#[test]
fn what_does_not_fit_a_topology() {
    let world = cluster(&[
        ("count: 1, resources: {cores: 4", "count: 12, resources: {cores: 4"),
        ("addresses: 192.0.2.51-192.0.2.69", "addresses: [192.0.2.51, 192.0.3.7]"),
        ("homelab-worker-1: {memory", "homelab-worker-9: {memory"),
        ("workers:      {count: 1", "workers:      {count: 2"),
        ("vip: 192.0.2.40", "vip: 192.0.2.41"),
        ("gateway: 192.0.2.1\n", "gateway: 10.0.0.1\n"),
    ]);
    assert_snapshot!(mistakes(&world), @"
    error[outside-cidr]: the gateway `10.0.0.1` lies outside `192.0.2.0/24`
      --> clusters/homelab/cluster.yaml:12:14
       |
    11 |     cidr: 192.0.2.0/24
       |           ------------ the cluster's network
    12 |     gateway: 10.0.0.1
       |              ^^^^^^^^
    warning[even-control-planes]: 12 control planes survive no more failures than 11
      --> clusters/homelab/cluster.yaml:19:27
       |
    19 |     controlPlane: {count: 12, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                           ^^
       |
       = hint: a majority is cheapest with an odd number
    error[ip-collision]: `homelab-cp-1` has the address of the virtual address, `192.0.2.41`
      --> clusters/homelab/cluster.yaml:19:89
       |
    14 |     vip: 192.0.2.41
       |          ---------- the virtual address
    ...
    19 |     controlPlane: {count: 12, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                                                                                         ^^^^^^^^^^^^^^^^^^^^^
    error[too-few-addresses]: 12 machines need more than 9 addresses
      --> clusters/homelab/cluster.yaml:19:89
       |
    19 |     controlPlane: {count: 12, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                           -- as many as this                                            ^^^^^^^^^^^^^^^^^^^^^
    error[vmid-collision]: VMID `810` is used twice on target `pve`
      --> clusters/homelab/cluster.yaml:20:27
       |
    19 |     controlPlane: {count: 12, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                           -- `homelab-cp-11` of stack `homelab`
    20 |     workers:      {count: 2, resources: {cores: 8, memory: 16384, disk: 256}, addresses: [192.0.2.51, 192.0.3.7]}
       |                           ^ `homelab-worker-1` of stack `homelab`
       |
       = hint: give one of the pools an `idBase` of its own
    error[outside-cidr]: the address `192.0.3.7` of `homelab-worker-2` lies outside `192.0.2.0/24`
      --> clusters/homelab/cluster.yaml:20:90
       |
    11 |     cidr: 192.0.2.0/24
       |           ------------ the cluster's network
    ...
    20 |     workers:      {count: 2, resources: {cores: 8, memory: 16384, disk: 256}, addresses: [192.0.2.51, 192.0.3.7]}
       |                                                                                          ^^^^^^^^^^^^^^^^^^^^^^^
    error[outside-cidr]: the address `192.0.3.7` of `homelab-gpu-1` lies outside `192.0.2.0/24`
      --> clusters/homelab/cluster.yaml:20:90
       |
    11 |     cidr: 192.0.2.0/24
       |           ------------ the cluster's network
    ...
    20 |     workers:      {count: 2, resources: {cores: 8, memory: 16384, disk: 256}, addresses: [192.0.2.51, 192.0.3.7]}
       |                                                                                          ^^^^^^^^^^^^^^^^^^^^^^^
    error[ip-collision]: the address `192.0.3.7` is used twice on target `pve`
      --> clusters/homelab/cluster.yaml:20:90
       |
    20 |     workers:      {count: 2, resources: {cores: 8, memory: 16384, disk: 256}, addresses: [192.0.2.51, 192.0.3.7]}
       |                                                                                          ^^^^^^^^^^^^^^^^^^^^^^^ `homelab-gpu-1` of stack `homelab`
       |
       = note: the other one is `homelab-worker-2` of stack `homelab`
    error[unknown-node]: `homelab-worker-9` is no machine of this cluster
      --> clusters/homelab/cluster.yaml:24:5
       |
    24 |     homelab-worker-9: {memory: 24576, hypervisor: pve2}
       |     ^^^^^^^^^^^^^^^^
       |
       = note: its machines are homelab-cp-1 to homelab-gpu-1
       = hint: did you mean `homelab-worker-1`?
    ");
}

#[test]
fn a_machine_without_a_number_or_an_address() {
    let world =
        cluster(&[("  vm: {idBase: 800}", "  vm: {cores: 2}"), (", addresses: 192.0.2.51-192.0.2.69", "")]);
    assert_snapshot!(mistakes(&world), @r#"
    error[missing-key]: `homelab-cp-1` has no VMID
      --> clusters/homelab/cluster.yaml:19:27
       |
    19 |     controlPlane: {count: 1, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                           ^
       |
       = hint: give the cluster an `idBase` under `proxmox.vm`, or the machine a `vmId`
    error[missing-key]: `homelab-gpu-1` has no VMID
      --> clusters/homelab/cluster.yaml:22:28
       |
    22 |       - {name: gpu, count: 1, resources: {cores: 8, memory: 32768, disk: 256}, labels: {gpu: "true"}, pci: [gpu0]}
       |                            ^
       |
       = hint: give the cluster an `idBase` under `proxmox.vm`, or the machine a `vmId`
    error[missing-key]: `homelab-gpu-1` has no address
      --> clusters/homelab/cluster.yaml:22:28
       |
    22 |       - {name: gpu, count: 1, resources: {cores: 8, memory: 32768, disk: 256}, labels: {gpu: "true"}, pci: [gpu0]}
       |                            ^
       |
       = hint: give its pool `addresses`, or the machine an `address`
    error[missing-key]: `homelab-worker-1` has no VMID
      --> clusters/homelab/cluster.yaml:24:5
       |
    24 |     homelab-worker-1: {memory: 24576, hypervisor: pve2}
       |     ^^^^^^^^^^^^^^^^
       |
       = hint: give the cluster an `idBase` under `proxmox.vm`, or the machine a `vmId`
    error[missing-key]: `homelab-worker-1` has no address
      --> clusters/homelab/cluster.yaml:24:5
       |
    24 |     homelab-worker-1: {memory: 24576, hypervisor: pve2}
       |     ^^^^^^^^^^^^^^^^
       |
       = hint: give its pool `addresses`, or the machine an `address`
    "#);
}

#[test]
fn a_majority_wants_an_odd_number() {
    let world = cluster(&[("controlPlane: {count: 1", "controlPlane: {count: 2")]);
    assert_snapshot!(mistakes(&world), @"
    warning[even-control-planes]: 2 control planes survive no more failures than 1
      --> clusters/homelab/cluster.yaml:19:27
       |
    19 |     controlPlane: {count: 2, resources: {cores: 4, memory: 8192, disk: 64}, addresses: 192.0.2.41-192.0.2.49}
       |                           ^
       |
       = hint: a majority is cheapest with an odd number
    ");
    let world = cluster(&[("controlPlane: {count: 1", "controlPlane: {count: 0")]);
    assert_snapshot!(mistakes(&world), @"
    error[no-control-plane]: the cluster has no control plane
      --> clusters/homelab/cluster.yaml:18:3
       |
    18 |   topology:
       |   ^^^^^^^^
       |
       = hint: give `topology.controlPlane` a `count` of 1, 3 or 5
    ");
}

#[test]
fn one_file_for_each_cluster_with_an_endpoint_of_its_own() {
    let world = Memory::new().file("strata.yaml", SETTINGS).file(
        "clusters/lab/cluster.yaml",
        "\
metadata: {name: lab, environment: dev, description: the lab}
cluster:
  talos: {version: v1.11.3, clusterName: lab-k8s, factorySchematic: SCHEMATIC, installDisk: /dev/sda}
  topology:
    controlPlane: {count: 3, resources: {cores: 4, memory: 8192, disk: 50}}
    workers: {count: 1, resources: {cores: 4, memory: 8192, disk: 100}}
  naming: \"{cluster}-{role}{n}\"
proxmox:
  endpoint: https://192.0.2.9:8006
  node: pve
  insecure: true
  storage: {datastore: local-lvm, isoPath: local:iso/talos.iso}
  network: {bridge: vmbr0}
  vm: {idBase: 400, cpuType: x86-64-v2-AES, onBoot: true, forceStop: true}
gitops:
  enabled: true
  flux: {version: v2.7.0, repository: https://git.example/me/infra, branch: main, path: clusters/lab}
  infrastructure: {core: [cilium], optional: []}
"
        .replace("SCHEMATIC", &"ab".repeat(32)),
    );
    let repository = clean(&world);
    assert_snapshot!(machines(&repository, "lab"), @"
    controlPlane lab-k8s-cp1 vm=400 dhcp on pve cores=4 memory=8192M disk=50G
    controlPlane lab-k8s-cp2 vm=401 dhcp on pve cores=4 memory=8192M disk=50G
    controlPlane lab-k8s-cp3 vm=402 dhcp on pve cores=4 memory=8192M disk=50G
    worker lab-k8s-worker1 vm=410 dhcp on pve cores=4 memory=8192M disk=100G
    ");
    let stack = repository.stack("lab", None).unwrap();
    assert_eq!(repository.proxmox_endpoint(stack).unwrap(), "https://192.0.2.9:8006");
}

#[test]
fn a_machine_asks_dhcp_where_it_or_its_cluster_says_so() {
    let asks = |changes: &[(&str, &str)]| -> Vec<String> {
        let repository = clean(&cluster(changes));
        let stack = repository.stack("homelab", None).expect("the stack");
        let cluster = stack.cluster().expect("a cluster");
        let machines = cluster.machines("homelab", &mut Diagnostics::new());
        let asking = machines.into_iter().filter(|machine| cluster.asks_dhcp(machine));
        asking.map(|machine| format!("{} {}", machine.name, machine.address.unwrap())).collect()
    };
    assert_eq!(asks(&[]), [] as [String; 0]);
    let worker = (
        "    homelab-worker-1: {memory",
        "    homelab-worker-1: {dhcp: true, mac: \"02:00:00:00:00:51\", memory",
    );
    assert_eq!(asks(&[worker]), ["homelab-worker-1 192.0.2.51"]);
    let all = ("    vip: 192.0.2.40", "    dhcp: true\n    vip: 192.0.2.40");
    let not = ("    homelab-worker-1: {memory", "    homelab-worker-1: {dhcp: false, memory");
    assert_eq!(asks(&[all, not]), ["homelab-cp-1 192.0.2.41", "homelab-gpu-1 192.0.2.69"]);
}

#[test]
fn flux_needs_a_node_that_takes_pods() {
    let lonely = [
        ("    workers:      {count: 1", "    workers:      {count: 0"),
        ("      - {name: gpu, count: 1", "      - {name: gpu, count: 0"),
        ("    homelab-worker-1: {memory: 24576, hypervisor: pve2}", "    homelab-cp-1: {memory: 24576}"),
    ];
    let found = |world: &Memory| {
        let (_, diagnostics) = Repository::load(world);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}");
        diagnostics.iter().filter(|found| found.code == "flux-homeless").count()
    };
    assert_eq!(found(&cluster(&lonely)), 1);
    assert_eq!(found(&cluster(&[])), 0);
    let open = (
        "  kubernetes: {version: v1.36.3}",
        "  kubernetes: {version: v1.36.3, scheduleOnControlPlanes: true}",
    );
    assert_eq!(found(&cluster(&[&lonely[..], &[open]].concat())), 0);
}

#[test]
fn f7_networks_that_overlap_or_are_too_small_are_underlined() {
    let kubernetes = "kubernetes: {version: v1.36.3}";
    for (written, told) in [
        (
            "podCidr: 192.0.0.0/16",
            "the network of machines, `192.0.2.0/24`, overlaps with the network of pods",
        ),
        ("serviceCidr: 192.0.2.128/25", "overlaps with the network of services, `192.0.2.128/25`"),
        (
            "podCidr: 10.10.0.0/16, serviceCidr: 10.10.4.0/22",
            "the network of services, `10.10.4.0/22`, overlaps",
        ),
        (
            "podCidr: 10.96.0.0/16",
            "`10.96.0.0/12` is what Talos takes; give the cluster another `kubernetes.serviceCidr`",
        ),
        ("serviceCidr: 10.244.8.0/24", "give the cluster another `kubernetes.podCidr`"),
        ("podCidr: 10.10.0.0/23", "`10.10.0.0/23` has room for the pods of 2 nodes, and the cluster has 3"),
        ("podCidr: 10.10.0.0/24", "has room for the pods of one node"),
        ("podCidr: 10.10.0.0/25", "is too small for the pods of one node"),
        ("podCidr: 'fd00::/96'", "is too small for the pods of one node, which get a /64"),
        ("serviceCidr: 10.97.0.0/29", "`10.97.0.0/29` is too small for services"),
        ("dnsDomain: Cluster_Local", "`Cluster_Local` is no DNS domain"),
    ] {
        let found =
            mistakes(&cluster(&[(kubernetes, &format!("kubernetes: {{version: v1.36.3, {written}}}"))]));
        assert!(found.contains(told), "{written}: {found}");
        assert!(
            found.contains("clusters/homelab/cluster.yaml:") && found.contains("^"),
            "{written}: {found}"
        );
    }
    for fine in [
        "podCidr: 10.10.0.0/22, serviceCidr: 10.11.0.0/28",
        "podCidr: 'fd00:1::/56', serviceCidr: 'fd00:2::/112'",
    ] {
        clean(&cluster(&[(kubernetes, &format!("kubernetes: {{version: v1.36.3, {fine}}}"))]));
    }
}

#[test]
fn f7_names_labels_and_taints_that_kubernetes_refuses_are_underlined() {
    let gpu = "labels: {gpu: \"true\"}";
    for (written, told) in [
        ("labels: {'bad key': a}", "`bad key` cannot be the key of a label"),
        ("labels: {'Example.com/x': a}", "`Example.com/x` cannot be the key of a label"),
        ("labels: {'a/b/c': a}", "`a/b/c` cannot be the key of a label"),
        ("labels: {zone: 'not a value'}", "`not a value` cannot be the value of the label `zone`"),
        ("annotations: {'-x': a}", "`-x` cannot be the key of a annotation"),
        ("taints: {gpu: NoScheduling}", "`NoScheduling` is no effect of the taint `gpu`"),
        ("taints: {gpu: 'a b:NoSchedule'}", "`a b:NoSchedule` is no effect of the taint `gpu`"),
        ("taints: {'gpu!': NoSchedule}", "`gpu!` cannot be the key of a taint"),
    ] {
        let found = mistakes(&cluster(&[(gpu, written)]));
        assert!(found.contains(told) && found.contains("^"), "{written}: {found}");
    }
    clean(&cluster(&[(
        gpu,
        "labels: {example.com/zone: a_1, empty: ''}, taints: {gpu: 'yes:NoExecute', other: NoSchedule}",
    )]));
    for (from, to) in [
        ("installDisk: /dev/sda", "installDisk: /dev/sda\n    clusterName: Home_Lab"),
        ("  patches: [patches/common.yaml]", "  naming: \"{cluster}.{role}.{n}\""),
        ("  patches: [patches/common.yaml]", "  naming: \"{cluster}-{role}-{n}-\""),
    ] {
        let found = mistakes(&cluster(&[(from, to)]));
        assert!(found.contains("cannot be the name of a node"), "{to}: {found}");
    }
}

#[test]
fn f8_a_shared_address_that_somebody_has_is_refused() {
    let vip = "vip: 192.0.2.40";
    for (address, told) in [
        ("192.0.2.1", "it is the gateway"),
        ("192.0.2.0", "it is the address of the network itself"),
        ("192.0.2.255", "it is the broadcast address of the network"),
        ("192.0.2.10", "it is where the target `pve` answers"),
    ] {
        let found = mistakes(&cluster(&[(vip, &format!("vip: {address}"))]));
        assert!(found.contains(told) && found.contains("^"), "{address}: {found}");
    }
    let world = cluster(&[(vip, "vip: 192.0.2.99")]);
    clean(&world);
    // Another guest, and another cluster, in whatever stack.
    let guest = "metadata: {name: other}\nproxmox: {target: pve, node: pve1}\nvms: {x: {vmId: 990, memory: 64, disk: 1, iso: 'local:iso/a.iso', network: [{bridge: vmbr0, vlan: 20, ip: 192.0.2.99/24}]}}\n";
    let found = mistakes(&world.clone().file("stacks/other/stack.yaml", guest));
    assert!(found.contains("it is the address of `x` of stack `other`"), "{found}");
    let apart = guest.replace("vlan: 20", "vlan: 30");
    let found = mistakes(&world.clone().file("stacks/other/stack.yaml", apart));
    assert!(found.contains("which may be meant") && !found.contains("error"), "{found}");
    let second = CLUSTER
        .replace("name: homelab", "name: second")
        .replace("vip: 192.0.2.40", "vip: 192.0.2.99")
        .replace("192.0.2.4", "192.0.2.14")
        .replace("192.0.2.5", "192.0.2.15")
        .replace("192.0.2.6", "192.0.2.16")
        .replace("idBase: 800", "idBase: 850")
        .replace("homelab-worker-1", "second-worker-1")
        .replace("pci: [gpu0]", "cores: 1");
    let found = mistakes(
        &world
            .file("clusters/second/cluster.yaml", second)
            .file("clusters/second/patches/common.yaml", "{}\n"),
    );
    assert!(found.contains("it is the shared address of `homelab` in `dev`"), "{found}");
}
