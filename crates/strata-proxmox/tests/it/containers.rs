//! Containers, pools and moves between hypervisors.

use serde_json::{Value as Json, json};
use strata_engine::{Action, ErrorClass, Sighting};
use strata_resource::Value;

use crate::life::{VM, iso_vm};
use crate::world::{World, assert_same_world};

pub(crate) const CONTAINER: &str = "web/container/monitor";

pub(crate) fn container() -> Json {
    json!({
        "vmid": 9200, "node": "pve1", "name": "monitor", "notes": "metrics", "image": "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst",
        "unprivileged": true, "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ5Y2xlYXJ0ZXh0a2V5Zm9ydGVzdGluZ29ubHkwMDAw a@b"],
        "cpu": {"cores": 1}, "memory": {"size": 512, "swap": 0},
        "rootfs": {"storage": "local-lvm", "size": 8i64 << 30},
        "mounts": {"mp0": {"storage": "tank", "size": 2i64 << 30, "path": "/data", "backup": true}},
        "networks": {"net0": {"name": "eth0", "mac": "BC:24:11:00:02:01", "bridge": "vmbr0", "ip": "192.0.2.90/24", "gateway": "192.0.2.1"}},
        "features": {"nesting": true}, "nameservers": ["192.0.2.53"], "tags": ["prod"], "onboot": true, "startup": {"order": 2},
        "power": "running",
    })
}

#[tokio::test]
async fn a_container_is_made_seen_changed_and_deleted() {
    let world = World::start().await;
    let before = world.sim.export();
    let made = world.create(CONTAINER, container()).await;
    assert_eq!(made.facts["hwaddr"], Value::text("BC:24:11:00:02:01"));
    let mut wanted = container();
    wanted["memory"]["size"] = json!(1024);
    wanted["rootfs"]["size"] = json!(12i64 << 30);
    wanted["networks"]["net0"]["vlan"] = json!(30);
    wanted["name"] = json!("watcher");
    wanted["power"] = json!("stopped");
    wanted["mounts"]["mp1"] = json!({"storage": "local-lvm", "size": 1i64 << 30, "path": "/more"});
    let changed = world.update(CONTAINER, &made, wanted.clone()).await;
    wanted["mounts"].as_object_mut().unwrap().remove("mp1");
    let changed = world.update(CONTAINER, &changed, wanted).await;
    // Notes edited by hand leave it ours: the state knows its MAC.
    world.somebody("PUT", "/nodes/pve1/lxc/9200/config", json!({"description": "mine"})).await;
    assert!(matches!(world.look(CONTAINER, &changed.spec, Some(&changed)).await, Sighting::Ours(_)));
    assert!(matches!(world.look(CONTAINER, &changed.spec, None).await, Sighting::Unmanaged(_)));
    world.delete(CONTAINER, &changed).await.unwrap();
    assert_same_world(&before, &world.sim.export(), "deleted");
}

#[tokio::test]
async fn keys_that_only_root_may_set_are_named() {
    let world = World::start().await;
    let mut wanted = container();
    wanted["features"]["keyctl"] = json!(true);
    let operation = world.operation(Action::Create, CONTAINER, world.complete(CONTAINER, wanted));
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::Refused, Some("features")));
    assert!(error.hint.unwrap().contains("root@pam"));
}

#[tokio::test]
async fn a_guest_joins_changes_and_leaves_a_pool() {
    let world = World::start().await;
    world.with_iso().await;
    world.somebody("POST", "/pools", json!({"poolid": "staging"})).await;
    let mut wanted = iso_vm(1, "stopped");
    wanted["pool"] = json!("production");
    let made = world.create(VM, wanted.clone()).await;
    wanted["pool"] = json!("staging");
    let made = world.update(VM, &made, wanted.clone()).await;
    wanted.as_object_mut().unwrap().remove("pool");
    let made = world.update(VM, &made, wanted).await;
    assert!(!world.ours(VM, &made.spec, None).await.spec.contains_key("pool"));
}

#[tokio::test]
async fn a_guest_moves_to_another_hypervisor_and_is_never_made_anew() {
    let world = World::start().await;
    world.with_iso().await;
    let mut wanted = iso_vm(1, "running");
    wanted["disks"]["scsi0"]["storage"] = json!("tank");
    wanted["cdroms"]["ide2"]["volume"] = json!("none");
    let made = world.create(VM, wanted.clone()).await;
    wanted["node"] = json!("pve2");
    let moved = world.update(VM, &made, wanted.clone()).await;
    assert_eq!((&moved.facts["node"], &moved.facts["uuid"]), (&Value::text("pve2"), &made.facts["uuid"]));
    // Somebody moves it elsewhere: it is still ours, and goes back.
    world.somebody("POST", "/nodes/pve2/qemu/9100/migrate", json!({"target": "pve3", "online": 1})).await;
    let seen = world.ours(VM, &moved.spec, Some(&moved)).await;
    assert_eq!(seen.spec["node"], Value::text("pve3"));
    world.update(VM, &moved, wanted).await;
}

#[tokio::test]
async fn disks_move_between_storages() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(1, "stopped")).await;
    let mut wanted = iso_vm(1, "stopped");
    wanted["disks"]["scsi0"]["storage"] = json!("tank");
    world.update(VM, &made, wanted).await;
    assert!(!world.sim.export().to_string().contains("unused0"));
    let made = world.create(CONTAINER, container()).await;
    let mut wanted = container();
    wanted["rootfs"]["storage"] = json!("tank");
    wanted["power"] = json!("stopped");
    world.update(CONTAINER, &made, wanted).await;
}
