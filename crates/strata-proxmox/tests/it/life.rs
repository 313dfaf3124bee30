//! The life of a VM from an ISO: made, seen, changed, deleted; and what that costs.

use serde_json::json;
use strata_engine::{Action, ErrorClass, Provider, Sighting, Wanted};
use strata_resource::{Address, Value};

use crate::world::{World, assert_same_world, spec};

pub(crate) const VM: &str = "web/vm/web-1";
/// In the simulator a guest with an ISO has somebody in it who answers to a shutdown.
pub(crate) const ISO: &str = "local:iso/boot.iso";

pub(crate) fn iso_vm(cores: i64, power: &str) -> serde_json::Value {
    json!({
        "vmid": 9100, "node": "pve1", "name": "web-1", "notes": "hello",
        "cpu": {"cores": cores, "type": "host"}, "memory": {"size": 2048}, "scsihw": "virtio-scsi-single", "ostype": "l26",
        "disks": {"scsi0": {"storage": "local-lvm", "size": 8i64 << 30, "ssd": true, "discard": true}},
        "cdroms": {"ide2": {"volume": ISO}},
        "networks": {"net0": {"model": "virtio", "mac": "BC:24:11:00:00:01", "bridge": "vmbr0", "vlan": 30}},
        "boot": ["scsi0", "ide2"], "tags": ["prod", "web"], "agent": {"enabled": true}, "onboot": true,
        "power": power,
    })
}

#[tokio::test]
async fn a_vm_is_made_seen_changed_and_deleted() {
    let world = World::start().await;
    world.with_iso().await;
    let before = world.sim.export();
    assert_eq!(world.look(VM, &world.complete(VM, iso_vm(2, "running")), None).await, Sighting::Absent);

    let made = world.create(VM, iso_vm(2, "running")).await;
    assert!(made.facts.contains_key("uuid"));
    assert_eq!(made.facts["node"], Value::text("pve1"));
    let tasks = world.told.tasks.lock().unwrap().clone();
    assert!(tasks.iter().any(|task| task.contains(":qmcreate:9100:")), "{tasks:?}");
    assert!(tasks.iter().any(|task| task.contains(":qmstart:9100:")), "{tasks:?}");

    // Without the state it is ours by its ownership mark.
    assert!(matches!(world.look(VM, &made.spec, None).await, Sighting::Ours(_)));

    let mut wanted = iso_vm(4, "stopped");
    wanted["disks"]["scsi0"]["size"] = json!(12i64 << 30);
    wanted["disks"]["scsi1"] = json!({"storage": "tank", "size": 1i64 << 30});
    wanted["networks"]["net1"] = json!({"model": "virtio", "mac": "BC:24:11:00:00:02", "bridge": "vmbr1"});
    wanted["name"] = json!("web-one");
    wanted["tags"] = json!(["web"]);
    let changed = world.update(VM, &made, wanted.clone()).await;

    // A slot that leaves the source is detached; its volume stays.
    wanted["disks"].as_object_mut().unwrap().remove("scsi1");
    wanted["networks"].as_object_mut().unwrap().remove("net1");
    let changed = world.update(VM, &changed, wanted).await;
    assert!(world.sim.export().to_string().contains("unused0"));

    world.delete(VM, &changed).await.unwrap();
    assert_eq!(world.look(VM, &changed.spec, Some(&changed)).await, Sighting::Absent);
    // Deleting what is gone already is done.
    world.delete(VM, &changed).await.unwrap();
    assert_same_world(&before, &world.sim.export(), "deleted");
}

#[tokio::test]
async fn only_what_changed_is_sent() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(2, "stopped")).await;
    let operation = world.plan_update(VM, &made, iso_vm(3, "stopped")).await;
    world.requests().await;
    world.execute(&operation).await.unwrap();
    assert_eq!(
        world.requests().await,
        [
            "1 PUT /nodes/{node}/qemu/{vmid}/config",
            "2 GET /nodes/{node}/qemu/{vmid}/pending",
            "1 GET /nodes/{node}/qemu/{vmid}/status/current",
        ]
    );
}

#[tokio::test]
async fn a_look_costs_one_read_for_each_guest_and_a_handful_besides() {
    let world = World::start().await;
    let mut specs = Vec::new();
    for (index, node) in ["pve1", "pve2", "pve1"].into_iter().enumerate() {
        let address = format!("web/vm/web-{index}");
        let json = json!({"vmid": 9100 + index, "node": node, "name": format!("web-{index}"), "memory": {"size": 64}});
        specs.push((address.parse::<Address>().unwrap(), world.create(&address, json).await.spec));
    }
    let absent: Address = "web/vm/absent".parse().unwrap();
    specs.push((absent, spec(json!({"vmid": 9999, "node": "pve3"}))));
    let wanted: Vec<Wanted<'_>> = specs
        .iter()
        .map(|(address, spec)| Wanted { address, spec, recorded: None, begun: None, lineage: &world.lineage })
        .collect();
    world.requests().await;
    let seen = world.provider.observe_all(&wanted).await.unwrap();
    assert_eq!(seen.iter().filter(|sighting| matches!(sighting, Sighting::Ours(_))).count(), 3);
    assert_eq!(seen[3], Sighting::Absent);
    assert_eq!(
        world.requests().await,
        // That one is not there is asked once more, of who sees all of them.
        [
            "1 GET /cluster/nextid",
            "1 GET /cluster/resources",
            "2 GET /nodes/{node}/qemu",
            "3 GET /nodes/{node}/qemu/{vmid}/pending",
        ]
    );
}

#[tokio::test]
async fn a_change_between_plan_and_apply_is_refused() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(2, "stopped")).await;
    let operation = world.plan_update(VM, &made, iso_vm(3, "stopped")).await;
    let config = "/nodes/pve1/qemu/9100/config";
    world.somebody("PUT", config, json!({"memory": "512"})).await;
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(error.to_string(), "somebody else changed VM 9100 since the plan was made");
    assert!(error.nothing_done);
    assert!(world.sim.export().to_string().contains("\"512\""));
}

#[tokio::test]
async fn drift_is_seen_and_edited_notes_leave_it_ours() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(2, "stopped")).await;
    let config = "/nodes/pve1/qemu/9100/config";
    world.somebody("PUT", config, json!({"description": "mine now", "cores": 7})).await;
    let seen = world.ours(VM, &made.spec, Some(&made)).await;
    assert_eq!(seen.spec["cpu"].as_map().unwrap()["cores"], Value::Int(7));
    assert_eq!(seen.spec["notes"], Value::text("mine now"));
    assert!(!seen.spec.contains_key("mark"));
    let mended = world.update(VM, &made, iso_vm(2, "stopped")).await;
    assert!(matches!(world.look(VM, &mended.spec, None).await, Sighting::Ours(_)));
}

#[tokio::test]
async fn what_waits_for_a_restart_is_told_and_a_restart_brings_it() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(2, "running")).await;
    let mut operation = world.plan_update(VM, &made, iso_vm(6, "running")).await;
    world.execute(&operation).await.unwrap();
    let seen = world.ours(VM, &operation.spec, Some(&made)).await;
    assert_eq!(seen.pending, ["cpu.cores"]);
    operation = world.plan_update(VM, &made, iso_vm(8, "running")).await;
    operation.restart = true;
    world.execute(&operation).await.unwrap();
    let seen = world.ours(VM, &operation.spec, Some(&made)).await;
    assert!(seen.pending.is_empty(), "{:?}", seen.pending);
}

#[tokio::test]
async fn a_protected_guest_is_not_deleted() {
    let world = World::start().await;
    world.with_iso().await;
    let mut wanted = iso_vm(1, "running");
    wanted["protection"] = json!(true);
    let made = world.create(VM, wanted).await;
    let error = world.delete(VM, &made).await.unwrap_err();
    assert_eq!(
        (error.class, error.to_string().as_str()),
        (ErrorClass::Guard, "VM 9100 is protected in Proxmox")
    );
    assert!(world.sim.export().to_string().contains("running"), "it was not even shut down");
}

#[tokio::test]
async fn a_value_that_the_server_refuses_points_to_its_field() {
    let world = World::start().await;
    world.with_iso().await;
    let mut wanted = iso_vm(1, "stopped");
    wanted["name"] = json!("under_score");
    let operation = world.operation(Action::Create, VM, world.complete(VM, wanted));
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::BadInput, Some("name")));
    assert_eq!(
        error.to_string(),
        "cannot create VM 9100 on `pve1`: `name`: invalid format - value does not look like a valid DNS name"
    );
    let mut wanted = iso_vm(1, "stopped");
    wanted["cdroms"]["ide2"]["volume"] = json!("local:iso/none.iso");
    let operation = world.operation(Action::Create, VM, world.complete(VM, wanted));
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::TaskFailed);
    assert!(error.to_string().contains("volume 'local:iso/none.iso' does not exist"), "{error}");
    assert!(!error.log.is_empty());
}

#[tokio::test]
async fn shared_storages_are_told_from_local_ones() {
    let world = World::start().await;
    let shared = world.provider.shared_storages().await.unwrap();
    assert_eq!(shared.into_iter().collect::<Vec<_>>(), ["tank"]);
}

#[tokio::test]
async fn a_lock_that_somebody_holds_for_a_moment_is_waited_for() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(1, "stopped")).await;
    let lock = |change: serde_json::Value| world.control("POST", "/_sim/change", change);
    lock(json!({"edit": {"vmid": 9100, "set": {"lock": "backup"}}})).await;
    let free_it = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        lock(json!({"edit": {"vmid": 9100, "delete": ["lock"]}})).await
    };
    // The delete itself fails inside of its task as long as the lock is there.
    let (done, _) = tokio::join!(world.delete(VM, &made), free_it);
    done.unwrap();
    assert_eq!(world.look(VM, &made.spec, None).await, Sighting::Absent);
}
