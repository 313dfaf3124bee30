//! The datacenter that people made by hand, as the API shows it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions, WorldKind};

use crate::client::Site;

async fn lived_in() -> Site {
    Site::start(SimOptions { world: WorldKind::LivedIn, pace: Pace::INSTANT, ..SimOptions::default() }).await
}

fn rows(list: &Value) -> &Vec<Value> {
    list.as_array().unwrap()
}

#[tokio::test]
async fn every_guest_is_listed_once_and_its_configuration_is_served() {
    let site = lived_in().await;
    let resources = site.get("/cluster/resources?type=vm").await;
    let ids: BTreeSet<u64> = rows(&resources).iter().map(|row| row["vmid"].as_u64().unwrap()).collect();
    assert_eq!((rows(&resources).len(), ids.len()), (60, 60));
    for row in rows(&resources) {
        let (node, id) = (row["node"].as_str().unwrap(), row["id"].as_str().unwrap());
        let config = site.get(&format!("/nodes/{node}/{id}/config")).await;
        assert!(config["digest"].is_string(), "{id}");
        let snapshots = site.get(&format!("/nodes/{node}/{id}/snapshot")).await;
        let names: Vec<&str> = rows(&snapshots).iter().map(|row| row["name"].as_str().unwrap()).collect();
        for row in rows(&snapshots) {
            assert!(
                row["parent"].is_null() || names.contains(&row["parent"].as_str().unwrap()),
                "{id}: {row}"
            );
        }
        for path in ["pending", "status/current", "firewall/rules", "firewall/options"] {
            site.get(&format!("/nodes/{node}/{id}/{path}")).await;
        }
    }
}

#[tokio::test]
async fn oddities_are_shown_as_the_original_shows_them() {
    let site = lived_in().await;
    let old = site.get("/nodes/pve1/qemu/100/config").await;
    assert_eq!(
        (&old["boot"], &old["bootdisk"], &old["ostype"]),
        (&json!("cdn"), &json!("ide0"), &json!("w2k8"))
    );
    assert!(old["meta"].is_null() && old["smbios1"].is_null() && old["scsihw"].is_null());
    let notes = site.get("/nodes/pve2/qemu/114/config").await["description"].as_str().unwrap().to_owned();
    assert!(notes.starts_with("Überwachung 📈\n\n| Dienst | Port |\n"), "{notes}");
    assert!(notes.contains("* 100% Verfügbarkeit “versprochen”\n"), "{notes}");
    let raw = &site.get("/nodes/pve1/lxc/202/config").await["lxc"];
    assert_eq!(raw[2], json!(["lxc.cgroup2.devices.allow", "c 226:* rwm"]));
    assert_eq!(rows(raw).len(), 4);
    let pending = site.get("/nodes/pve1/qemu/109/pending").await;
    let row = |key: &str| rows(&pending).iter().find(|row| row["key"] == key).unwrap().clone();
    assert_eq!((row("memory")["pending"].clone(), row("net1")["delete"].clone()), (json!("8192"), json!(1)));
}

#[tokio::test]
async fn volumes_of_every_storage_are_listed_with_their_owners() {
    let site = lived_in().await;
    let mut owners = BTreeSet::new();
    for node in ["pve1", "pve2", "pve3"] {
        let storages = site.get(&format!("/nodes/{node}/storage")).await;
        for storage in rows(&storages).iter().filter(|storage| storage["enabled"] == 1) {
            let id = storage["storage"].as_str().unwrap();
            let content = site.get(&format!("/nodes/{node}/storage/{id}/content")).await;
            owners.extend(rows(&content).iter().filter_map(|row| row["vmid"].as_u64()));
        }
    }
    // One has CDs alone, one has nothing, and 777 was deleted without its disk.
    assert_eq!(owners.len(), 60 - 2 + 1);
    assert!(owners.contains(&777) && !owners.contains(&126) && !owners.contains(&127));
}

#[tokio::test]
async fn a_guest_that_is_replicated_goes_only_with_its_jobs() {
    let site = lived_in().await;
    assert_eq!(rows(&site.get("/cluster/replication").await).len(), 3);
    site.task("POST", "/nodes/pve2/lxc/213/status/stop", &[]).await;
    let kept = site.call("DELETE", "/nodes/pve2/lxc/213", &[]).await;
    assert_eq!(
        kept.body["message"],
        "There is a replication job '213-0' for guest '213' - Please remove that first.\n"
    );
    assert_eq!(site.task("DELETE", "/nodes/pve2/lxc/213?purge=1", &[]).await, "OK");
    let left = site.get("/cluster/replication").await;
    assert_eq!(rows(&left).iter().map(|job| job["id"].as_str().unwrap()).collect::<Vec<_>>(), ["120-0"]);
    assert_eq!(left[0]["guest"], 120);
}

#[tokio::test]
async fn what_stands_around_the_guests_is_served_too() {
    let site = lived_in().await;
    for (path, count) in [
        ("/storage", 7),
        ("/pools", 4),
        ("/cluster/backup", 3),
        ("/cluster/ha/resources", 4),
        ("/cluster/ha/rules", 2),
        ("/cluster/mapping/pci", 2),
        ("/cluster/mapping/usb", 1),
        ("/cluster/mapping/dir", 1),
        ("/access/groups", 3),
        ("/cluster/firewall/groups", 2),
        ("/cluster/firewall/ipset", 2),
        ("/cluster/firewall/aliases", 2),
        ("/cluster/firewall/rules", 5),
        ("/nodes/pve2/qemu/113/firewall/rules", 5),
        ("/nodes/pve2/network", 9),
    ] {
        assert_eq!(rows(&site.get(path).await).len(), count, "{path}");
    }
    let rules = site.get("/nodes/pve2/qemu/113/firewall/rules").await;
    assert!(rows(&rules).iter().all(|rule| rule["errors"].is_null()), "{rules}");
    let options = site.get("/cluster/options").await;
    assert_eq!(options["keyboard"], "de");
}
