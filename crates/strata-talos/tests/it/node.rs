//! Machines of a cluster: each setting in the place where its version of Talos looks for it.

use std::sync::LazyLock;

use strata_secret::SecretString;
use strata_talos::{
    Cni, ConfigInput, Contract, DiskKey, KernelModule, Link, MachineConfig, NodeInput, NodeNetwork,
    NodePatch, Patch, Role, SecretsBundle, ServiceAccountKey, Value, node_config,
};

use crate::world::{now, seeded};

/// One bundle for all tests.
pub(crate) fn secrets() -> SecretsBundle {
    static BUNDLE: LazyLock<SecretsBundle> = LazyLock::new(|| {
        SecretsBundle::generate(now(), ServiceAccountKey::Ecdsa, &mut seeded(7))
            .unwrap_or_else(|error| panic!("{error}"))
    });
    BUNDLE.clone()
}

pub(crate) fn input(contract: Contract) -> ConfigInput {
    let mut input = ConfigInput::new(contract, "homelab", "https://192.0.2.40:6443", "1.34.1");
    input.additional_sans = vec!["192.0.2.40".to_owned()];
    input
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}

/// A machine that uses everything.
pub(crate) fn full(role: Role, vlan: Option<u16>) -> NodeInput {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    NodeInput {
        hostname: Some("homelab-cp-1".to_owned()),
        network: Some(NodeNetwork {
            link: Link::Mac("BC:24:11:00:00:01".to_owned()),
            addresses: owned(&["192.0.2.41/24"]),
            gateway: Some("192.0.2.1".to_owned()),
            vlan,
            mtu: Some(9000),
            vip: Some("192.0.2.40".to_owned()),
        }),
        nameservers: owned(&["192.0.2.1"]),
        search_domains: owned(&["lab.internal"]),
        time_servers: owned(&["time.example.org"]),
        cert_sans: owned(&["192.0.2.41"]),
        install_disk: Some("/dev/vda".to_owned()),
        disk_key: Some(DiskKey::NodeId),
        kernel_modules: vec![KernelModule { name: "nbd".to_owned(), parameters: owned(&["nbds_max=16"]) }],
        sysctls: vec![pair("net.core.somaxconn", "1024")],
        labels: vec![pair("pool", "general")],
        taints: vec![pair("example.org/only", "NoSchedule")],
        kubelet_extra_args: vec![pair("rotate-server-certificates", "true")],
        node_ip_subnets: owned(&["192.0.2.0/24"]),
        etcd_subnets: if role == Role::ControlPlane { owned(&["192.0.2.0/24"]) } else { Vec::new() },
        cni: Cni::None,
        schedule_on_control_planes: true,
        ..NodeInput::new(role)
    }
}

fn config(contract: Contract, node: &NodeInput, patches: &[&str]) -> Result<MachineConfig, String> {
    let patch = |text: &&str| {
        let patch = Patch::parse(&SecretString::from(*text)).map_err(|error| error.to_string())?;
        Ok(NodePatch { origin: "nodes.yaml".to_owned(), patch })
    };
    let patches: Vec<NodePatch> = patches.iter().map(patch).collect::<Result<_, String>>()?;
    node_config(&input(contract), &secrets(), node, &patches).map_err(|error| error.to_string())
}

fn made(contract: Contract, node: &NodeInput) -> MachineConfig {
    config(contract, node, &[]).unwrap_or_else(|error| panic!("{contract}: {error}"))
}

fn text<'c>(config: &'c MachineConfig, kind: &str, path: &[&str]) -> Option<&'c str> {
    config.document(kind)?.at(path)?.as_text()
}

#[test]
fn everything_is_where_the_version_looks_for_it() {
    let node = full(Role::ControlPlane, None);
    let old = made(Contract::V1_11, &node);
    assert_eq!(old.documents().len(), 1);
    assert_eq!(text(&old, "v1alpha1", &["machine", "network", "hostname"]), Some("homelab-cp-1"));
    let interfaces = old.v1alpha1().unwrap().at(&["machine", "network", "interfaces"]).unwrap();
    let interface = &interfaces.as_list().unwrap()[0];
    assert_eq!(
        interface.at(&["deviceSelector", "hardwareAddr"]).and_then(Value::as_text),
        Some("bc:24:11:00:00:01")
    );
    assert_eq!(interface.at(&["vip", "ip"]).and_then(Value::as_text), Some("192.0.2.40"));
    assert!(old.v1alpha1().unwrap().at(&["machine", "systemDiskEncryption", "state"]).is_some());

    for contract in [Contract::V1_12, Contract::V1_13] {
        let config = made(contract, &node);
        assert_eq!(text(&config, "HostnameConfig", &["hostname"]), Some("homelab-cp-1"));
        assert_eq!(text(&config, "HostnameConfig", &["auto"]), Some("off"));
        assert_eq!(text(&config, "Layer2VIPConfig", &["link"]), Some("net0"));
        assert!(config.has("VolumeConfig") && config.has("TimeSyncConfig") && !config.has("KubeletConfig"));
        assert_eq!(text(&config, "v1alpha1", &["machine", "nodeLabels", "pool"]), Some("general"));
        assert_eq!(text(&config, "v1alpha1", &["cluster", "network", "cni", "name"]), Some("none"));
    }

    let new = made(Contract::V1_14, &node);
    assert_eq!(text(&new, "KubeNodeConfig", &["labels", "pool"]), Some("general"));
    assert_eq!(text(&new, "KubeNodeConfig", &["taints", "example.org/only"]), Some("NoSchedule"));
    assert_eq!(text(&new, "KubeNodeConfig", &["taints", "node-role.kubernetes.io/control-plane"]), None);
    assert_eq!(text(&new, "KubeletConfig", &["extraArgs", "rotate-server-certificates"]), Some("true"));
    assert_eq!(
        text(&new, "UnattendedInstallConfig", &["provisioning", "diskSelector", "match"]),
        Some("disk.dev_path == \"/dev/vda\"")
    );
    assert_eq!(text(&new, "KernelModuleConfig", &["name"]), Some("nbd"));
    assert!(!new.has("KubeFlannelCNIConfig"));
    let ephemeral = new.documents().iter().find(|document| document.name() == Some("EPHEMERAL")).unwrap();
    assert!(ephemeral.at(&["mount", "secure"]).is_some() && ephemeral.at(&["encryption", "keys"]).is_some());
    let network = new.document("KubeNetworkConfig").unwrap().at(&["podSubnets"]).unwrap();
    assert_eq!(network.as_list().unwrap().len(), 1);
    let leftover = new.v1alpha1().unwrap().at(&["machine"]).unwrap().as_map().unwrap();
    let mut keys: Vec<&str> = leftover.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["ca", "certSANs", "features", "token", "type"]);
}

#[test]
fn a_vlan_carries_the_address_and_the_shared_one() {
    let node = full(Role::ControlPlane, Some(20));
    let config = made(Contract::V1_14, &node);
    assert_eq!(text(&config, "VLANConfig", &["name"]), Some("net0.20"));
    assert_eq!(text(&config, "VLANConfig", &["parent"]), Some("net0"));
    assert_eq!(text(&config, "Layer2VIPConfig", &["link"]), Some("net0.20"));
    assert!(config.document("LinkConfig").unwrap().at(&["addresses"]).is_none());
    // A worker has no part in the shared address.
    assert!(!made(Contract::V1_14, &full(Role::Worker, Some(20))).has("Layer2VIPConfig"));
}

#[test]
fn without_an_address_it_asks_for_one() {
    let mut node = NodeInput::new(Role::Worker);
    node.network = Some(NodeNetwork {
        link: Link::Only,
        addresses: Vec::new(),
        gateway: None,
        vlan: None,
        mtu: None,
        vip: None,
    });
    assert_eq!(text(&made(Contract::V1_13, &node), "DHCPv4Config", &["name"]), Some("net0"));
    let old = made(Contract::V1_11, &node);
    let interfaces = old.v1alpha1().unwrap().at(&["machine", "network", "interfaces"]).unwrap();
    assert!(interfaces.as_list().unwrap()[0].get("dhcp") == Some(&Value::Bool(true)));
}

#[test]
fn mistakes_are_found_before_a_node_sees_them() {
    let mut node = NodeInput::new(Role::Worker);
    node.network = Some(NodeNetwork {
        link: Link::Only,
        addresses: owned(&["192.0.2.41"]),
        gateway: None,
        vlan: None,
        mtu: None,
        vip: None,
    });
    let error = config(Contract::V1_13, &node, &[]).err().expect("an error");
    assert!(error.contains("`addresses.0.address` of `LinkConfig` must be a network"), "{error}");

    let plain = NodeInput::new(Role::Worker);
    let kubelet = "apiVersion: v1alpha1\nkind: KubeletConfig\nextraArgs: {v: 2}\n";
    assert_eq!(
        config(Contract::V1_13, &plain, &[kubelet]).err().as_deref(),
        Some("Talos v1.13 does not know the document `KubeletConfig`; it is new in v1.14")
    );
    let scheduler = "apiVersion: v1alpha1\nkind: KubeSchedulerConfig\nimage: x\n";
    assert_eq!(
        config(Contract::V1_14, &plain, &[scheduler]).err().as_deref(),
        Some("a worker cannot have the document `KubeSchedulerConfig`, which is for control planes")
    );
    let mut bad = input(Contract::V1_14);
    bad.pod_subnets = owned(&["10.244.0.0"]);
    assert!(node_config(&bad, &secrets(), &plain, &[]).is_err());
}
