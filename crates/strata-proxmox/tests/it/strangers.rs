//! What has our identity and is not ours is never touched.

use serde_json::json;
use strata_engine::{Action, ErrorClass, Sighting};

use crate::life::{VM, iso_vm};
use crate::world::World;

fn stranger(sighting: Sighting) -> String {
    match sighting {
        Sighting::Unmanaged(who) => who.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_guest_of_somebody_else_is_named_and_left_alone() {
    let world = World::start().await;
    world.with_iso().await;
    world.somebody("POST", "/nodes/pve2/qemu", json!({"vmid": 9100, "name": "db"})).await;
    let before = world.sim.export();
    let spec = world.complete(VM, iso_vm(2, "running"));
    assert_eq!(
        stranger(world.look(VM, &spec, None).await),
        "VM 9100 `db` on `pve2` exists and is not managed by this repository"
    );
    // It appeared after the plan was made.
    let error = world.execute(&world.operation(Action::Create, VM, spec.clone())).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(
        error.to_string(),
        "VMID 9100 is taken: VM 9100 `db` on `pve2` exists and is not managed by this repository"
    );
    let error = world.execute(&world.operation(Action::Delete, VM, spec.clone())).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(error.to_string(), "VM 9100 `db` on `pve2` exists and is not managed by this repository");
    let error = world.execute(&world.operation(Action::Update, VM, spec)).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!(world.sim.export(), before);
}

#[tokio::test]
async fn who_took_over_the_vmid_is_a_stranger() {
    let world = World::start().await;
    world.with_iso().await;
    let made = world.create(VM, iso_vm(2, "stopped")).await;
    world.somebody("DELETE", "/nodes/pve1/qemu/9100", json!({})).await;
    world.somebody("POST", "/nodes/pve1/qemu", json!({"vmid": 9100, "name": "other"})).await;
    let who = stranger(world.look(VM, &made.spec, Some(&made)).await);
    assert!(who.contains("its uuid is not the one that the state knows"), "{who}");
    let error = world.delete(VM, &made).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(world.sim.export().to_string().contains("other"));
}

#[tokio::test]
async fn a_restored_backup_under_another_vmid_is_a_copy() {
    let world = World::start().await;
    world.with_iso().await;
    world.create(VM, iso_vm(2, "stopped")).await;
    world.control("POST", "/_sim/change", json!({"restore": {"from": 9100, "vmid": 9101}})).await;
    let mut other = iso_vm(2, "stopped");
    other["vmid"] = json!(9101);
    let spec = world.complete("web/vm/web-2", other);
    let who = stranger(world.look("web/vm/web-2", &spec, None).await);
    assert!(who.ends_with("its ownership mark is that of VMID 9100: it is a copy"), "{who}");
}

#[tokio::test]
async fn a_container_on_the_vmid_of_a_vm_is_a_stranger() {
    let world = World::start().await;
    world.with_iso().await;
    let template = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst";
    let params = json!({"vmid": 9100, "hostname": "ct", "ostemplate": template, "storage": "local-lvm"});
    world.somebody("POST", "/nodes/pve1/lxc", params).await;
    let spec = world.complete(VM, iso_vm(2, "running"));
    assert_eq!(
        stranger(world.look(VM, &spec, None).await),
        "container 9100 `ct` on `pve1`: it is a container"
    );
}
