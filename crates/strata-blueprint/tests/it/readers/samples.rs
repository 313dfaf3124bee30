//! Values for a key: those that a table names for it, and those that its shape allows.

use serde_json::{Map, Value as Json, json};
use strata_yaml::{FieldSpec, Rules, Shape};

use super::sources::CHAIN;

/// Texts for whatever wants one; which of them is right the decoder says.
const TEXTS: &[&str] = &[
    "a-file",
    "other-1",
    "192.0.2.77",
    "192.0.2.78",
    "192.0.2.77/24",
    "2001:db8::77",
    "2001:db8::77/64",
    "https://x.example/a.iso",
    "https://x.example/b.iso",
    "10m",
    "11m",
    "BC:24:11:00:00:77",
    "scsi5",
    "mp3",
    "v1.13.9",
    "v1.36.2",
    "1.13.9",
    "1.36.2",
    "ACCEPT",
    "local:iso/a.iso",
    "0000:01:00.1",
    "1234:5679",
    "/vms/100",
    "VM.Audit",
    "Europe/Paris",
    "Europe/Rome",
    "08:30",
    "17:45",
    "siderolabs/iscsi-tools",
    "tank/a",
    "unmanaged",
    "/dev/sdb",
    "x",
    "web",
    "#cloud-config\nx: y\n",
    "sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
    "AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7516",
];

/// Values that only one key takes: they name something else of the repository, or have a form of their own.
fn special(record: &str, key: &str) -> Vec<Json> {
    match (record, key) {
        ("AclEntry", "user") => vec![json!("a@pve"), json!("b@pve")],
        ("AclEntry", "group") => vec![json!("g"), json!("h")],
        ("AclEntry", "token") => vec![json!("a@pve!tk"), json!("a@pve!uk")],
        ("AclEntry", "role") => vec![json!("s")],
        ("Hypervisor", "tokens") => vec![json!({"a@pve!tk": {}, "a@pve!uk": {}, "b@pve!vk": {}})],
        ("Hypervisor", "groups") => vec![json!({"g": {}, "h": {}, "more": {}})],
        ("Hypervisor", "users") => vec![json!({"a@pve": {}, "b@pve": {}, "c@pve": {}})],
        ("User", "groups") => vec![json!(["h"])],
        ("Container", "dependsOn") => vec![json!(["vms.a"])],
        ("Vm", "dependsOn") => vec![json!(["containers.b"])],
        ("Vm" | "Container", "backup") => vec![json!({"job": "nightly"})],
        ("GuestBackup", "job") => vec![json!("nightly"), json!("weekly")],
        ("Container", "mountPoints") => vec![json!({"mp0": {"path": "/data", "size": 4}})],
        (_, "disks") => vec![json!({"scsi3": {"size": 5}})],
        ("FlatAdvanced", "bios") => vec![json!("ovmf"), json!("seabios")],
        ("FlatAdvanced", "ostype") => vec![json!("l24")],
        ("FlatAdvanced", "scsi_hw") => vec![json!("lsi")],
        ("StackProxmox", "idRange") => vec![json!("100-200")],
        ("Metadata", "dependsOn") => vec![json!(["dc"]), json!(["tiny"])],
        ("Vm", "template") => vec![json!("t2")],
        ("Nic" | "ContainerNic", "ip6") => vec![json!("2001:db8::77/64")],
        ("Nic" | "ContainerNic" | "HostInterface", "gateway6") => {
            vec![json!("2001:db8::1"), json!("2001:db8:9::2")]
        }
        ("HostInterface", "address6") => vec![json!("2001:db8:9::3/64")],
        ("HostInterface", "gateway") => vec![json!("10.9.0.2")],
        ("Cpu", "flags") => vec![json!(["+aes"])],
        ("ClusterNetwork", "cidr") => vec![json!("192.0.2.0/25")],
        ("FlatCluster", "node_cidr") => vec![json!("203.0.113.0/25")],
        ("FlatCluster", "node_default_gateway") => vec![json!("203.0.113.4")],
        ("FlatCluster", "cluster_api_addr") => vec![json!("203.0.113.20")],
        ("FlatCluster", "node_vlan_tag") => vec![json!("31")],
        ("FlatNode", "address") => vec![json!("203.0.113.15")],
        ("ClusterNode", "address") => vec![json!("198.51.100.85")],
        ("ClusterNode", "role") => vec![json!("worker")],
        ("ClusterNetwork", "vip") => vec![json!("192.0.2.30")],
        ("ClusterNode" | "Pool" | "NamedPool", "taints") => vec![json!({"dedicated": "x:NoSchedule"})],
        ("ClusterNode" | "Pool" | "NamedPool", "labels" | "annotations") => {
            vec![json!({"example.org/a": "b"})]
        }
        ("Pool" | "NamedPool", "addresses") => {
            vec![json!("192.0.2.71-192.0.2.79"), json!("198.51.100.71-198.51.100.79")]
        }
        ("StackProxmox" | "HypervisorProxmox" | "ClusterProxmox", "target") => vec![json!("far")],
        ("StackProxmox", "nodes") => vec![json!(["pve1", "pve2"])],
        ("TruenasStorage", "target") => vec![json!("nas"), json!("nas-2")],
        ("ClusterSpec", "naming") => vec![json!("x-{role}-{n}")],
        ("Talos", "clusterName") => vec![json!("other")],
        ("Kubernetes", "podCidr") => vec![json!("10.200.0.0/16")],
        ("Kubernetes", "serviceCidr") => vec![json!("10.201.0.0/16")],
        ("FlatCluster", "cluster_pod_cidr") => vec![json!("10.202.0.0/16")],
        ("FlatCluster", "cluster_svc_cidr") => vec![json!("10.203.0.0/16")],
        ("Cluster", "outputs") => vec![json!({"o": "nodes.lab-cp-1.address"})],
        ("Stack", "outputs") => vec![json!({"o": "vms.c.vmId"})],
        ("TofuInputs", "inputs") => vec![json!({})],
        ("Settings" | "Environment", "mirrors") => vec![json!({"https://x.example": "https://m.example"})],
        ("Settings", "repository") => vec![json!("demo5678")],
        (_, "use") => vec![json!(["p"])],
        (_, "ignoreChanges") => vec![json!([{"field": "tags", "reason": "x"}])],
        ("IgnoredChanges", "field") => vec![json!("notes")],
        (_, "moved") => vec![json!([{"from": "web/vm/old", "to": "web/vm/a"}])],
        ("Stack" | "Cluster" | "Settings" | "Environment", "profiles") => vec![json!({"p": {"memory": 900}})],
        ("Offsets", "vmId") => vec![json!(1), json!(50)],
        // The gateway alone: the addresses of the environment are its own.
        ("Offsets", "addresses") => vec![json!({"100.64.0.1/32": "100.64.0.2/32"})],
        ("Offsets", "vlans") => vec![json!({"7": 8})],
        ("Offsets", "bridges") => vec![json!({"vmbr0": "vmbr7"})],
        ("Environment", "include") => vec![json!(["stacks"])],
        ("HighAvailability", "state") => vec![json!("ignored")],
        ("HaRule", "nodes") => vec![json!(["pve2:3"])],
        ("HaRule", "guests") => vec![json!(["vms.e", "containers.b"])],
        ("Stack", "haRules") => vec![json!({})],
        ("Replication", "target") => vec![json!("pve3")],
        ("DatacenterOptions", "macPrefix") => vec![json!("02:AB")],
        ("TagStyle", "colors") => vec![json!({"web": "ff0000"})],
        ("NextId", "lower") => vec![json!(200)],
        ("NotificationEndpoint", "users") => vec![json!(["a@pve"])],
        ("Host", "repositories") => vec![json!({"no-subscription": true}), json!({"enterprise": false})],
        ("HostCertificate", "chain") => vec![json!(format!("{CHAIN}{CHAIN}"))],
        ("HostCertificate", "key") => vec![json!({"env": "SAME_KEY"})],
        ("SdnSubnet", "gateway") => vec![json!("10.66.0.2")],
        ("SdnSubnet", "dhcpRanges") => vec![json!(["10.66.0.50-10.66.0.60"])],
        ("SdnVnet", "subnets") => vec![json!({"10.67.0.0/24": {}})],
        ("SdnVnet", "zone") => vec![json!("zv")],
        ("CloudInit", "allowSecretOnStorage") => vec![json!(false)],
        _ => Vec::new(),
    }
}

/// What a key may be given, the likely ones first.
pub(super) fn of_key(record: &str, field: &FieldSpec) -> Vec<Json> {
    let mut found = special(record, field.key);
    found.extend(of_shape(&field.shape, &field.rules, 0).into_iter().take(45));
    found
}

/// Values that a shape may take, simple ones first.
fn of_shape(shape: &Shape, rules: &Rules, depth: usize) -> Vec<Json> {
    match shape {
        Shape::Bool => vec![json!(true), json!(false)],
        Shape::Integer(least, most) => {
            let (least, most) = rules.range.unwrap_or((*least, *most));
            let mut found: Vec<i64> = [3, 7, 1, 20, 1400, 9500, 9501, least, most].into();
            found.retain(|number| (least..=most).contains(number));
            found.into_iter().map(Json::from).collect()
        }
        Shape::Number => vec![json!(1.5), json!(2)],
        Shape::Text(_) => {
            let fits = |text: &&&str| rules.text.is_none_or(|rule| (rule.accepts)(text));
            TEXTS.iter().filter(fits).map(|text| json!(text)).collect()
        }
        Shape::Choice(words) => words.iter().map(|word| json!(word)).collect(),
        Shape::Scalar => vec![json!("x"), json!(3)],
        Shape::Any | Shape::AnyMapping => {
            vec![json!({"machine": {"sysctls": {"x": "1"}}}), json!({"x": "y"})]
        }
        Shape::List(item) => of_shape(item, rules, depth).into_iter().map(|item| json!([item])).collect(),
        Shape::Map(_, item) => {
            let takes = |key: &&&str| rules.keys.is_none_or(|rule| (rule.accepts)(key));
            let items = of_shape(item, &Rules { keys: None, ..*rules }, depth);
            let with =
                |key: &&str| items.iter().take(8).map(move |item| json!({*key: item})).collect::<Vec<_>>();
            TEXTS.iter().filter(takes).flat_map(with).collect()
        }
        Shape::Record(spec) if depth < 4 => {
            let spec = spec();
            let required: Vec<&FieldSpec> = spec.fields.iter().filter(|field| field.required).collect();
            let chosen: Vec<Option<&FieldSpec>> = match spec.exactly_one.first() {
                Some(keys) => keys.iter().map(|key| spec.field(key)).collect(),
                None if required.is_empty() => spec.fields.iter().map(Some).collect(),
                None => vec![None],
            };
            let with = |more: Option<&'static FieldSpec>| {
                records(spec.name, required.iter().copied().chain(more), depth)
            };
            chosen.into_iter().flat_map(with).chain([json!({})]).collect()
        }
        Shape::Record(_) => Vec::new(),
        Shape::Partial(shape) => of_shape(shape, rules, depth),
        Shape::AnyOf(shapes) => shapes.iter().flat_map(|shape| of_shape(shape, rules, depth)).collect(),
        Shape::Reference(shape) => {
            let plain = of_shape(shape, rules, depth);
            plain.into_iter().chain([json!({"env": "TOKEN"})]).collect()
        }
    }
}

/// Records with these fields: of each the first few values.
fn records<'f>(record: &str, fields: impl Iterator<Item = &'f FieldSpec>, depth: usize) -> Vec<Json> {
    let mut found = vec![Map::new()];
    for field in fields {
        let mut values = special(record, field.key);
        values.extend(of_shape(&field.shape, &field.rules, depth + 1).into_iter().take(40));
        let with = |value: &Json| {
            let value = value.clone();
            found
                .iter()
                .map(move |own| {
                    let mut own = own.clone();
                    own.insert(field.key.to_owned(), value.clone());
                    own
                })
                .collect::<Vec<_>>()
        };
        found = values.iter().flat_map(with).take(45).collect();
    }
    found.into_iter().map(Json::Object).collect()
}
