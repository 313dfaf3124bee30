//! Moves between hypervisors: what travels, what is ejected for the move, and what cannot.

use serde_json::json;
use strata_engine::{ErrorClass, Provider};
use strata_proxmox::Login;
use strata_resource::Value;
use strata_secret::SecretString;
use strata_sim::{Pace, ROOT_PASSWORD};

use crate::containers::{CONTAINER, container};
use crate::life::{ISO, VM, iso_vm};
use crate::world::World;

async fn iso_on(world: &World, node: &str) {
    let params = json!({"content": "iso", "filename": "boot.iso", "url": "https://example.com/boot.iso"});
    world.somebody("POST", &format!("/nodes/{node}/storage/local/download-url"), params).await;
}

#[tokio::test]
async fn local_disks_travel_and_a_local_iso_is_put_back() {
    let world = World::start().await;
    iso_on(&world, "pve1").await;
    iso_on(&world, "pve2").await;
    for power in ["running", "stopped"] {
        let mut wanted = iso_vm(1, power);
        let made = world.create(VM, wanted.clone()).await;
        wanted["node"] = json!("pve2");
        let moved = world.update(VM, &made, wanted).await;
        assert_eq!(moved.facts["node"], Value::text("pve2"));
        let live = world.ours(VM, &moved.spec, Some(&moved)).await;
        assert_eq!(live.spec["power"], Value::text(power));
        assert_eq!(
            live.spec["cdroms"].as_map().unwrap()["ide2"].as_map().unwrap()["volume"],
            Value::text(ISO)
        );
        world.delete(VM, &moved).await.unwrap();
    }
}

#[tokio::test]
async fn an_iso_that_is_not_ours_to_take_out_keeps_the_guest_where_it_is() {
    let world = World::start().await;
    iso_on(&world, "pve1").await;
    let mut wanted = iso_vm(1, "stopped");
    wanted.as_object_mut().unwrap().remove("cdroms");
    wanted["boot"] = json!(["scsi0"]);
    let made = world.create(VM, wanted.clone()).await;
    world
        .somebody("PUT", "/nodes/pve1/qemu/9100/config", json!({"ide0": format!("{ISO},media=cdrom")}))
        .await;
    wanted["node"] = json!("pve2");
    wanted.as_object_mut().unwrap().remove("boot");
    let operation = world.plan_update(VM, &made, wanted).await;
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::BadInput, Some("node")));
    assert!(error.to_string().contains("`ide0` holds `local:iso/boot.iso`"), "{error}");
}

#[tokio::test]
async fn a_guest_with_a_device_of_its_hypervisor_stays_and_says_why() {
    let login = Login { user: "root@pam".to_owned(), password: SecretString::from(ROOT_PASSWORD) };
    let world = World::with(Pace::INSTANT, Some(login)).await;
    world.with_iso().await;
    let mut wanted = iso_vm(1, "stopped");
    wanted["machine"] = json!("q35");
    wanted["pci"] = json!({"hostpci0": {"device": "0000:01:00.0", "pcie": true}});
    let made = world.create(VM, wanted.clone()).await;
    wanted["node"] = json!("pve2");
    let operation = world.plan_update(VM, &made, wanted).await;
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::BadInput, Some("node")));
    assert_eq!(
        error.to_string(),
        "VM 9100 cannot move from `pve1` to `pve2`: it uses hostpci0 of its hypervisor"
    );
    assert!(error.nothing_done);
}

#[tokio::test]
async fn a_container_is_restarted_on_the_other_side() {
    let world = World::start().await;
    let mut wanted = container();
    wanted["rootfs"]["storage"] = json!("tank");
    let made = world.create(CONTAINER, wanted.clone()).await;
    wanted["node"] = json!("pve3");
    let moved = world.update(CONTAINER, &made, wanted).await;
    assert_eq!(moved.facts["node"], Value::text("pve3"));
}

#[tokio::test]
async fn a_user_and_a_password_do_without_a_token() {
    let world = World::start().await;
    let mut options = strata_proxmox::ProxmoxOptions::new(world.sim.endpoint(), std::sync::Arc::new(|| 0));
    options.tls = strata_net::TlsTrust::Ca(world.sim.ca_pem().as_bytes().to_vec());
    options.login = Some(Login { user: "root@pam".to_owned(), password: SecretString::from(ROOT_PASSWORD) });
    let provider = strata_proxmox::ProxmoxProvider::connect(options.clone()).unwrap();
    let spec = world
        .complete(VM, json!({"vmid": 9100, "node": "pve1", "name": "a", "options": {"args": "-no-reboot"}}));
    let operation = world.operation(strata_engine::Action::Create, VM, spec);
    provider.execute(&operation, &world.told).await.unwrap();
    options.login =
        Some(Login { user: "root@pam".to_owned(), password: SecretString::from("wrong-password") });
    let stranger = strata_proxmox::ProxmoxProvider::connect(options).unwrap();
    let error = stranger.execute(&operation, &world.told).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Refused);
    assert_eq!(
        error.to_string(),
        "cannot create VM 9100 on `pve1`: `root@pam` cannot log in: authentication failure"
    );
}
