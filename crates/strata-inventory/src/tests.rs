#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::json;
use strata_resource::{Address, KindTable, Layer, register_kinds};
use strata_state::StateDocument;

use crate::{Inventory, StackState, alias, ansible, hosts, prometheus, ssh};

static VM: KindTable = KindTable::new("vm", "", &[]);
static CONTAINER: KindTable = KindTable::new("container", "", &[]);
static MACHINE: KindTable = KindTable::new("machine", "", &[]);

fn state(key: &str, resources: &serde_json::Value) -> StateDocument {
    register_kinds(&[&VM, &CONTAINER, &MACHINE]);
    serde_json::from_value(json!({
        "format": 1, "lineage": "0123456789abcdef0123456789abcdef", "serial": 1, "key": key, "resources": resources,
    }))
    .unwrap()
}

fn resource(spec: &serde_json::Value) -> serde_json::Value {
    json!({"target": "pve", "spec": spec, "stage": "compute"})
}

fn inventory(states: &[(&str, &StateDocument)], written: &BTreeMap<Address, String>) -> Inventory {
    let stacks: Vec<StackState<'_>> = states
        .iter()
        .map(|(stack, state)| StackState {
            stack,
            environment: "test",
            layer: Layer::Workloads,
            state,
            written,
        })
        .collect();
    Inventory::of(&stacks)
}

#[test]
fn guests_have_names_addresses_and_groups() {
    let web = state(
        "test/web",
        &json!({
            "web/vm/app-1": resource(&json!({
                "name": "app-1", "vmid": 9100, "node": "pve1", "tags": ["app", "strata"], "pool": "production",
                "cloudinit": {"user": "debian", "password": {"$secret": null}, "ipconfig": {"ipconfig0": {"ip": "192.0.2.10/24"}}},
            })),
            "web/container/dns": resource(&json!({
                "name": "dns", "vmid": 9200, "node": "pve2", "networks": {"net0": {"ip": "192.0.2.53/24", "ip6": "2001:db8::53/64"}},
            })),
            "web/vm/iso": resource(&json!({"name": "iso", "vmid": 9300, "networks": {"net0": {"ip": "dhcp"}}})),
            "web/vm/template": resource(&json!({"name": "template", "vmid": 9000, "template": true})),
        }),
    );
    let written = BTreeMap::from([("web/vm/iso".parse().unwrap(), "192.0.2.99".to_owned())]);
    let inventory = inventory(&[("web", &web)], &written);
    let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["app-1", "dns", "iso"]);
    assert_eq!(
        hosts::render(&inventory),
        "192.0.2.10 app-1\n192.0.2.53 dns\n2001:db8::53 dns\n192.0.2.99 iso\n"
    );
    let list = ansible::list(&inventory);
    assert_eq!(list["tag_app"]["hosts"], json!(["app-1"]));
    assert_eq!(list["pool_production"]["hosts"], json!(["app-1"]));
    assert_eq!(list["stack_web"]["hosts"], json!(["app-1", "dns", "iso"]));
    assert_eq!(list["environment_test"]["hosts"], list["layer_workloads"]["hosts"]);
    assert_eq!(list["_meta"]["hostvars"]["app-1"]["ansible_host"], "192.0.2.10");
    assert_eq!(list["_meta"]["hostvars"]["app-1"]["ansible_user"], "debian");
    assert_eq!(ansible::host(&inventory, "app-1"), list["_meta"]["hostvars"]["app-1"]);
    assert_eq!(ansible::host(&inventory, "nobody"), json!({}));
    let targets = prometheus::targets(&inventory, 9100);
    assert_eq!(targets[0]["targets"], json!(["192.0.2.10:9100"]));
    assert_eq!(targets[0]["labels"]["tags"], ",app,strata,");
}

#[test]
fn nodes_of_a_cluster_have_roles() {
    let lab = state(
        "test/lab",
        &json!({
            "lab/vm/cp-1": resource(&json!({"name": "cp-1", "vmid": 100})),
            "lab/machine/cp-1": resource(&json!({"machine": "cp-1", "role": "controlplane", "address": "192.0.2.41", "vm": "uuid"})),
            "lab/machine/metal-1": resource(&json!({"machine": "metal-1", "role": "worker", "address": "192.0.2.51"})),
        }),
    );
    let inventory = inventory(&[("lab", &lab)], &BTreeMap::new());
    assert_eq!(inventory.groups["role_controlplane"], ["cp-1"]);
    assert_eq!(inventory.groups["role_worker"], ["metal-1"]);
    assert_eq!(hosts::render(&inventory), "192.0.2.41 cp-1\n192.0.2.51 metal-1\n");
}

/// Somebody who may name a guest must not get a line of their own into a file that others read.
#[test]
fn a_hostile_name_stays_a_name() {
    let hostile = "x\nHost *\n  ProxyCommand touch /tmp/owned #\u{2028}{{ lookup('pipe','id') }}\"'`$(id)";
    let web = state(
        "test/web",
        &json!({"web/vm/a": resource(&json!({
            "name": hostile, "vmid": 1, "pool": hostile, "tags": [hostile, "a-b", "a_b"],
            "cloudinit": {"user": hostile, "ipconfig": {"ipconfig0": {"ip": "192.0.2.10/24"}}},
        }))}),
    );
    let inventory = inventory(&[("web", &web)], &BTreeMap::new());
    let ssh = ssh::render(&inventory);
    assert_eq!(ssh.lines().filter(|line| line.starts_with("Host ")).count(), 1, "{ssh}");
    assert!(!ssh.contains("ProxyCommand touch") && !ssh.contains('#') && !ssh.contains("User "), "{ssh}");
    assert_eq!(hosts::render(&inventory).lines().count(), 1);
    let list = ansible::list(&inventory);
    assert!(!list.to_string().contains("{{"), "{list}");
    let identifiers =
        inventory.groups.keys().all(|group| group.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    assert!(identifiers, "{:?}", inventory.groups);
    // Two tags that look alike as identifiers are two groups.
    assert!(inventory.groups.contains_key("tag_a_b") && inventory.groups.contains_key("tag_a_b_2"));
    assert_eq!(
        (alias("-F/etc/x").as_str(), alias("").as_str(), alias("..").as_str()),
        ("_F_etc_x", "_", "_.")
    );
}

#[test]
fn two_guests_of_one_name_are_two_hosts() {
    let of = |stack: &str, vmid: i64| {
        let address = format!("{stack}/vm/db");
        state(&format!("test/{stack}"), &json!({address: resource(&json!({"name": "db", "vmid": vmid}))}))
    };
    let (web, shop) = (of("web", 1), of("shop", 2));
    let inventory = inventory(&[("web", &web), ("shop", &shop)], &BTreeMap::new());
    let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["shop.db", "web.db"]);
}

/// What a guest reported is used where nobody wrote an address; a device is one of the datacenter, in the order of their names.
#[test]
fn addresses_that_guests_reported_come_after_those_that_are_written() {
    let reported = |spec: serde_json::Value| {
        let facts = json!({"address": "192.0.2.31", "addresses": {
            "net10": ["198.51.100.9"], "net2": ["198.51.100.2"], "net0": ["192.0.2.31", "2001:db8::31"],
        }});
        json!({"target": "pve", "spec": spec, "facts": facts, "stage": "compute"})
    };
    let web = state(
        "test/web",
        &json!({
            "web/vm/lease": reported(json!({"name": "lease", "vmid": 1})),
            "web/vm/fixed": reported(json!({"name": "fixed", "vmid": 2, "cloudinit": {"ipconfig": {"ipconfig0": {"ip": "192.0.2.9/24"}}}})),
        }),
    );
    let inventory = inventory(&[("web", &web)], &BTreeMap::new());
    let all = |name: &str| -> Vec<String> {
        inventory.host(name).unwrap().addresses.iter().map(ToString::to_string).collect()
    };
    assert_eq!(all("lease"), ["192.0.2.31", "2001:db8::31", "198.51.100.2", "198.51.100.9"]);
    assert_eq!(all("fixed")[0], "192.0.2.9");
}
