//! Images, templates, clones and cloud-init.

use serde_json::{Value as Json, json};
use strata_engine::{Action, ErrorClass, Sighting};
use strata_resource::{Secret, Spec, Value};
use strata_secret::SecretString;
use strata_sim::synthetic_checksum;

use crate::world::{World, assert_same_world, recorded};

const IMAGE: &str = "web/image/debian12";
const TEMPLATE: &str = "web/template/debian12";
const URL: &str = "https://cloud.example.com/debian-12.qcow2";

fn image(world: &World) -> Json {
    let checksum = synthetic_checksum(URL, "sha256").unwrap();
    let name = format!("{}-{}.qcow2", world.lineage.short(), &checksum[..12]);
    json!({"volume": format!("local:import/{name}"), "storage": "local", "node": "pve1", "content": "import", "url": URL,
        "checksum": format!("sha256:{checksum}")})
}

fn template(image: &str) -> Json {
    json!({
        "vmid": 9000, "node": "pve1", "name": "debian12", "template": true, "cpu": {"cores": 1}, "memory": {"size": 1024},
        "scsihw": "virtio-scsi-single", "agent": {"enabled": true},
        "disks": {"scsi0": {"storage": "local-lvm", "size": 4i64 << 30, "import": image}},
        "networks": {"net0": {"model": "virtio", "bridge": "vmbr0"}, "net1": {"model": "virtio", "bridge": "vmbr1"}},
        "cloudinit": {"drive": {"slot": "ide2", "storage": "local-lvm"}}, "boot": ["scsi0"],
    })
}

pub(crate) fn clone(vmid: u32, full: bool) -> Json {
    json!({
        "vmid": vmid, "node": "pve1", "name": format!("web-{vmid}"), "notes": "a clone",
        "clone": {"template": 9000, "full": full}, "cpu": {"cores": 2}, "memory": {"size": 2048},
        "disks": {"scsi0": {"storage": "local-lvm", "size": 10i64 << 30, "ssd": true}, "scsi1": {"storage": "tank", "size": 1i64 << 30}},
        "networks": {"net0": {"model": "virtio", "mac": "BC:24:11:00:01:01", "bridge": "vmbr0", "vlan": 30}},
        "cloudinit": {"drive": {"slot": "ide2", "storage": "local-lvm"}, "user": "debian",
            "ssh_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJ5Y2xlYXJ0ZXh0a2V5Zm9ydGVzdGluZ29ubHkwMDAw a@b"],
            "ipconfig": {"ipconfig0": {"ip": "192.0.2.50/24", "gateway": "192.0.2.1"}}, "nameservers": ["192.0.2.53"]},
        "tags": ["web"], "boot": ["scsi0"], "power": "running",
    })
}

pub(crate) async fn with_template(world: &World) -> Vec<(String, strata_state::StateResource)> {
    let made = world.create(IMAGE, image(world)).await;
    let volume = made.spec["volume"].as_text().unwrap().to_owned();
    let template = world.create(TEMPLATE, template(&volume)).await;
    vec![(IMAGE.to_owned(), made), (TEMPLATE.to_owned(), template)]
}

#[tokio::test]
async fn an_image_becomes_a_template_and_that_becomes_vms() {
    let world = World::start().await;
    let before = world.sim.export();
    let mut made = with_template(&world).await;
    assert!(made[0].1.facts["size"].as_int().unwrap() > 0);
    for (vmid, full) in [(9101, true), (9102, false)] {
        let mut wanted = clone(vmid, full);
        wanted["networks"]["net0"]["mac"] = json!(format!("BC:24:11:00:01:{:02X}", vmid - 9000));
        let address = format!("web/vm/web-{vmid}");
        let clone = world.create(&address, wanted).await;
        made.push((address, clone));
    }
    let live = world.sim.export().to_string();
    assert!(live.contains("192.0.2.50/24") && live.contains("order=scsi0"), "{live}");
    // The second network of the template is not in the spec of the clones.
    let clone = world.ours(&made[2].0, &made[2].1.spec, None).await;
    assert_eq!(clone.spec["networks"].as_map().unwrap().len(), 1);
    for (address, known) in made.iter().rev() {
        world.delete(address, known).await.unwrap_or_else(|error| panic!("{address}: {error:?}"));
    }
    assert_same_world(&before, &world.sim.export(), "all deleted");
}

#[tokio::test]
async fn a_template_that_is_elsewhere_is_cloned_over_shared_storage() {
    let world = World::start().await;
    let made = world.create(IMAGE, image(&world)).await;
    let mut shared = template(made.spec["volume"].as_text().unwrap());
    for (slot, field) in [("disks", "scsi0"), ("cloudinit", "drive")] {
        shared[slot][field]["storage"] = json!("tank");
    }
    world.create(TEMPLATE, shared).await;
    let mut wanted = clone(9101, true);
    wanted["node"] = json!("pve2");
    wanted["clone"]["node"] = json!("pve1");
    wanted["clone"]["storage"] = json!("tank");
    wanted["disks"]["scsi0"]["storage"] = json!("tank");
    wanted["cloudinit"]["drive"]["storage"] = json!("tank");
    let clone = world.create("web/vm/web-9101", wanted).await;
    assert_eq!(clone.facts["node"], Value::text("pve2"));
}

#[tokio::test]
async fn an_image_is_not_fetched_twice_and_never_overwritten() {
    let world = World::start().await;
    let made = world.create(IMAGE, image(&world)).await;
    world.requests().await;
    let again = world.operation(Action::Create, IMAGE, made.spec.clone());
    assert_eq!(world.execute(&again).await.unwrap().facts, made.facts);
    // What appeared after the plan is proven by its size.
    assert_eq!(
        world.requests().await,
        ["1 GET /nodes/{node}/query-url-metadata", "1 GET /nodes/{node}/storage/{storage}/content"]
    );
    let mut other = made.spec.clone();
    other.insert("size".to_owned(), Value::Int(1));
    let error = world.execute(&world.operation(Action::Create, IMAGE, other.clone())).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(matches!(world.look(IMAGE, &other, None).await, Sighting::Unmanaged(_)));
    let mut wrong = image(&world);
    wrong["volume"] = json!(format!("local:import/{}-ffff.qcow2", world.lineage.short()));
    wrong["checksum"] = json!(format!("sha256:{}", "0".repeat(64)));
    let operation = world.operation(Action::Create, IMAGE, world.complete(IMAGE, wrong));
    let error = world.execute(&operation).await.unwrap_err();
    assert_eq!((error.class, error.field.as_deref()), (ErrorClass::TaskFailed, Some("url")));
    assert!(error.to_string().contains("checksum mismatch"), "{error}");
}

pub(crate) fn cidata(world: &World, hash: &str) -> (Spec, String) {
    let name = strata_proxmox::cidata::volume_name(world.lineage.short(), 9101, hash);
    let volume = format!("local:iso/{name}");
    let mut spec = world.complete(
        "web/cidata/web-1",
        json!({"volume": volume, "storage": "local", "node": "pve1", "vmid": 9101}),
    );
    let file = |text: &str| Value::Secret(Secret::new(SecretString::from(text)));
    let files: Spec = [
        ("user-data".to_owned(), file("#cloud-config\npassword: planted-secret\n")),
        ("meta-data".to_owned(), file(&format!("instance-id: {hash}\n"))),
    ]
    .into();
    spec.insert("files".to_owned(), Value::Map(files));
    (spec, volume)
}

#[tokio::test]
async fn cloud_init_data_of_our_own_replaces_the_drive() {
    let world = World::start().await;
    with_template(&world).await;
    let (spec, volume) = cidata(&world, "aaaaaaaaaaaaaaaa");
    let create = world.operation(Action::Create, "web/cidata/web-1", spec.clone());
    let outcome = world.execute(&create).await.unwrap();
    assert!(outcome.facts["size"].as_int().unwrap() > 0);
    let known = recorded(spec.clone(), outcome);
    world.ours("web/cidata/web-1", &spec, Some(&known)).await;
    // A second time it is there already.
    world.requests().await;
    world.execute(&create).await.unwrap();
    assert_eq!(world.requests().await, ["1 GET /nodes/{node}/storage/{storage}/content"]);

    let mut wanted = clone(9101, true);
    wanted.as_object_mut().unwrap().remove("cloudinit");
    wanted["cdroms"] = json!({"ide0": {"volume": volume}});
    let vm = world.create("web/vm/web-9101", wanted.clone()).await;
    assert!(!world.ours("web/vm/web-9101", &vm.spec, None).await.spec.contains_key("cloudinit"));

    // New data is a new volume: uploaded, swapped in, and the old one deleted.
    let (new, new_volume) = cidata(&world, "bbbbbbbbbbbbbbbb");
    world.execute(&world.operation(Action::Create, "web/cidata/web-1", new)).await.unwrap();
    wanted["cdroms"]["ide0"]["volume"] = json!(new_volume);
    world.update("web/vm/web-9101", &vm, wanted).await;
    world.delete("web/cidata/web-1", &known).await.unwrap();
    assert_eq!(world.look("web/cidata/web-1", &spec, Some(&known)).await, Sighting::Absent);
    assert!(!world.sim.export().to_string().contains("planted-secret"));
}

#[tokio::test]
async fn a_password_is_sent_once_and_never_shown() {
    let world = World::start().await;
    with_template(&world).await;
    let mut wanted = world.complete("web/vm/web-9101", clone(9101, true));
    let password = Value::Secret(Secret::new(SecretString::from("planted-pass-word")));
    let Some(Value::Map(cloudinit)) = wanted.get_mut("cloudinit") else { panic!("no cloud-init") };
    cloudinit.insert("password".to_owned(), password);
    let key = strata_secret::DigestKey::from_bytes(&[7; 32]).unwrap();
    let address = "web/vm/web-9101".parse().unwrap();
    let sealed = Value::Map(wanted).sealed(&key, &address).as_map().unwrap().clone();
    let outcome =
        world.execute(&world.operation(Action::Create, "web/vm/web-9101", sealed.clone())).await.unwrap();
    world.settled("web/vm/web-9101", &recorded(sealed.clone(), outcome)).await;
    assert!(world.sim.export().to_string().contains("cipassword"));
    // A server that quotes the request back does not give it away either.
    let text = "cannot set cipassword=planted-pass-word here";
    world
        .fault(json!({"kind": "refuse", "status": 500, "text": text, "writes": true, "path": "*/clone"}))
        .await;
    let mut other = sealed;
    other.insert("vmid".to_owned(), Value::Int(9102));
    let error = world.execute(&world.operation(Action::Create, "web/vm/web-9102", other)).await.unwrap_err();
    assert!(error.to_string().contains("cipassword=<secret> here"), "{error}");
}
