//! What a state of OpenTofu has of a datacenter besides guests, as `hypervisors/`.

use serde_json::{Value as Json, json};
use strata_blueprint::kinds;
use strata_import::tofu_state::{BuiltObjects, Connection, Repository, write_repository};
use strata_resource::Kind;
use strata_source::world::Memory;
use strata_tofu::TofuState;

/// One of each kind, as bpg/proxmox describes it.
fn resources() -> Vec<(&'static str, Json)> {
    vec![
        ("proxmox_virtual_environment_pool", json!({"pool_id": "web", "comment": "the shop", "id": "web"})),
        ("proxmox_virtual_environment_role", json!({"role_id": "Ops", "privileges": ["VM.Audit"]})),
        ("proxmox_virtual_environment_group", json!({"group_id": "ops", "comment": ""})),
        (
            "proxmox_virtual_environment_user",
            json!({"user_id": "ann@pve", "enabled": true, "groups": ["ops"], "password": "hunter2",
                   "expiration_date": "2030-01-01T00:00:00Z", "acl": [{"path": "/vms", "role_id": "Ops", "propagate": true}]}),
        ),
        (
            "proxmox_user_token",
            json!({"user_id": "ann@pve", "token_name": "ci", "privileges_separation": false, "value": "ann@pve!ci=x"}),
        ),
        (
            "proxmox_acl",
            json!({"path": "/pool/web", "role_id": "Ops", "group_id": "ops", "propagate": false}),
        ),
        (
            "proxmox_hardware_mapping_pci",
            json!({"name": "gpu", "mediated_devices": false, "map": [{"node": "pve1", "path": "0000:01:00.0", "id": "10de:1b81"}]}),
        ),
        (
            "proxmox_hardware_mapping_usb",
            json!({"name": "key", "map": [{"node": "pve1", "id": "1050:0407", "path": null}]}),
        ),
        (
            "proxmox_storage_zfspool",
            json!({"id": "fast", "zfs_pool": "tank/fast", "thin_provision": true, "content": ["images"], "disable": false}),
        ),
        (
            "proxmox_virtual_environment_dns",
            json!({"node_name": "pve1", "domain": "example.org", "servers": ["192.0.2.1"]}),
        ),
        ("proxmox_virtual_environment_time", json!({"node_name": "pve1", "time_zone": "Europe/Paris"})),
        (
            "proxmox_network_linux_bond",
            json!({"node_name": "pve1", "name": "bond0", "slaves": ["eno1", "eno2"], "bond_mode": "802.3ad", "autostart": true}),
        ),
        (
            "proxmox_network_linux_bridge",
            json!({"node_name": "pve1", "name": "vmbr1", "ports": ["bond0"], "vlan_aware": true, "autostart": true}),
        ),
        ("proxmox_virtual_environment_cluster_firewall", json!({"enabled": true, "input_policy": "DROP"})),
        (
            "proxmox_virtual_environment_firewall_alias",
            json!({"name": "office", "cidr": "198.51.100.0/24", "comment": "", "vm_id": null}),
        ),
        (
            "proxmox_virtual_environment_firewall_ipset",
            json!({"name": "admins", "cidr": [{"name": "192.0.2.5", "nomatch": false}, {"name": "192.0.2.6", "nomatch": true}]}),
        ),
        (
            "proxmox_virtual_environment_cluster_firewall_security_group",
            json!({"name": "web", "rule": [{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "443", "enabled": true}]}),
        ),
        (
            "proxmox_virtual_environment_firewall_rules",
            json!({"rule": [{"security_group": "web"}, {"type": "in", "action": "DROP", "enabled": false}]}),
        ),
    ]
}

fn state() -> TofuState {
    let resources: Vec<Json> = resources()
        .into_iter()
        .map(|(kind, attributes)| {
            json!({"mode": "managed", "type": kind, "name": "this", "provider": "provider[\"registry.opentofu.org/bpg/proxmox\"]",
                   "instances": [{"schema_version": 0, "attributes": attributes}]})
        })
        .collect();
    let text = json!({"version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": resources});
    TofuState::parse(&text.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

fn written() -> Repository {
    let state = state();
    write_repository(&state, &BuiltObjects::of(&state), &Connection::default(), "abcdef", "lab")
}

#[test]
fn each_object_has_the_name_that_its_address_has() {
    let built = BuiltObjects::of(&state());
    let found: Vec<(Kind, &str)> =
        built.objects.iter().map(|object| (object.kind, object.name.as_str())).collect();
    let wanted = [
        (kinds::POOL, "web"),
        (kinds::ROLE, "Ops"),
        (kinds::GROUP, "ops"),
        (kinds::USER, "ann@pve"),
        (kinds::TOKEN, "ann@pve!ci"),
        (kinds::ACL, "ops=Ops=~pool~web"),
        (kinds::MAPPING, "pci-gpu"),
        (kinds::MAPPING, "usb-key"),
        (kinds::STORAGE, "fast"),
        (kinds::DNS, "pve1"),
        (kinds::TIMEZONE, "pve1"),
        (kinds::NETWORK, "pve1"),
        (kinds::NETWORK, "pve1"),
        (kinds::FIREWALL, "datacenter"),
        (kinds::ALIAS, "office"),
        (kinds::IPSET, "admins"),
        (kinds::SECURITY_GROUP, "web"),
        (kinds::FIREWALL, "datacenter"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(built.notes, []);
}

#[test]
fn what_is_written_is_valid_and_has_the_same_objects() {
    let written = written();
    assert_eq!(written.notes, []);
    let text = &written.files["hypervisors/lab-pve1.yaml"];
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(written.secrets["ann_pve_password"].expose(), "hunter2");
    // The encrypted file is not here: what is in it comes from elsewhere.
    let mut world = Memory::new();
    for (path, text) in &written.files {
        world = world
            .file(path, text.replace("secret: ", "env: ").replace("  - sops: secrets.sops.yaml", "  []"));
    }
    let (repository, found) = strata_source::Repository::load(&world);
    let errors: Vec<&str> =
        found.iter().filter(|found| found.is_error()).map(|found| found.message.as_str()).collect();
    assert_eq!(errors, Vec::<&str>::new(), "{text}");
    let stack = repository.stack("lab-pve1", None).unwrap();
    let blueprint = crate::world::draw(&repository, stack);
    for object in BuiltObjects::of(&state()).objects {
        let is_it = |resource: &strata_resource::Resource| {
            resource.kind() == object.kind && resource.address.name() == object.name
        };
        assert!(blueprint.graph.iter().any(is_it), "`{}` is not in\n{text}", object.address);
    }
}

#[test]
fn a_document_reads_like_one_that_a_person_wrote() {
    let written = written();
    let text = &written.files["hypervisors/lab-pve1.yaml"];
    let keys: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    let order = [
        "metadata:",
        "proxmox:",
        "storages:",
        "network:",
        "dns:",
        "timezone: Europe/Paris",
        "pools:",
        "roles:",
        "groups:",
        "users:",
        "tokens:",
        "acl:",
        "mappings:",
        "firewall:",
    ];
    assert_eq!(keys, order, "{text}");
    for part in [
        "mode: \"802.3ad\"",
        "sparse: true",
        "expire: 1893456000",
        "privilegeSeparation: false",
        "direction: group",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}
