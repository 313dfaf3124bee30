//! From an ISO to a machine that runs, and what it keeps.

use serde_json::json;

use super::api::{Talos, tunnel};
use super::configs::Pki;
use super::{Cluster, NODE, change, eventually, machine, power, proxmox, simulator};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_boots_its_iso_and_waits_for_a_configuration() {
    let sim = simulator().await;
    assert!(tunnel(&sim, "192.0.2.41:50000").await.unwrap_err().text.contains("no route to host"));
    machine(&sim, 101, "192.0.2.41", "v1.13.2").await;
    let mut talos = Talos::insecure(&sim, "192.0.2.41").await.unwrap();
    assert_eq!(talos.version().await.unwrap(), "v1.13.2");
    assert!(tunnel(&sim, "192.0.2.41:6443").await.unwrap_err().text.contains("connection refused"));
    assert_eq!(talos.bootstrap(false).await.unwrap_err().code, 7);
    power(&sim, 101, "stop").await;
    assert!(Talos::insecure(&sim, "192.0.2.41").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_say_little_before_they_are_configured() {
    let sim = simulator().await;
    machine(&sim, 101, "192.0.2.41", "v1.12.0").await;
    let refused = Talos::insecure(&sim, "192.0.2.41").await.unwrap().version().await.unwrap_err();
    assert_eq!((refused.code, refused.text.as_str()), (12, "API is not implemented in maintenance mode"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_address_drive_a_reservation_decides() {
    let sim = simulator().await;
    machine(&sim, 101, "192.0.2.41", "v1.13.0").await;
    power(&sim, 101, "stop").await;
    let path = format!("/nodes/{NODE}/qemu/101/config");
    proxmox(&sim, "PUT", &path, json!({ "delete": "ide0", "net0": "virtio=02:00:00:00:00:01,bridge=vmbr0" }))
        .await;
    power(&sim, 101, "start").await;
    assert_eq!(sim.talos()["machines"][0]["addresses"], json!([]));
    power(&sim, 101, "stop").await;
    change(&sim, json!({ "reserve": { "mac": "02:00:00:00:00:01", "address": "192.0.2.77" } })).await;
    power(&sim, 101, "start").await;
    assert_eq!(sim.talos()["machines"][0]["addresses"], json!(["192.0.2.77"]));
    Talos::insecure(&sim, "192.0.2.77").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_configuration_is_refused() {
    let sim = simulator().await;
    machine(&sim, 101, "192.0.2.41", "v1.13.0").await;
    let mut talos = Talos::insecure(&sim, "192.0.2.41").await.unwrap();
    for (text, why) in [
        ("a: b: c", "yaml"),
        ("version: v1alpha1\nmachine: {type: pilot}\ncluster: {}", "unknown machine type"),
        ("version: v1alpha1\nmachine: {typo: worker}", "unknown keys"),
        ("apiVersion: v1alpha1\nkind: KubePrismConfig\nport: 1", "not registered"),
        ("apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: x", "machine instructions are required"),
    ] {
        let refused = talos.apply(text, 1).await.unwrap_err();
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.text.contains(why), "{refused:?}");
    }
    assert_eq!(sim.talos()["machines"][0]["stage"], "maintenance");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_installation_only_the_configurations_own_authority_counts() {
    let cluster = Cluster::new("v1.13.0").await;
    let mut talos = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    assert_eq!(talos.version().await.unwrap(), "v1.13.0");
    let stranger = Pki::new();
    assert!(Talos::connect(&cluster.sim, "192.0.2.41", &stranger.client("os:admin")).await.is_err());
    assert!(Talos::insecure(&cluster.sim, "192.0.2.41").await.is_err());
    let reader = cluster.pki.client("os:reader");
    let mut reader = Talos::connect(&cluster.sim, "192.0.2.41", &reader).await.unwrap();
    assert_eq!(reader.reboot().await.unwrap_err().code, 7);
    assert_eq!(
        reader.get("config", "MachineConfigs.config.talos.dev", "v1alpha1").await.unwrap_err().code,
        7
    );
    let live = talos.get("config", "MachineConfigs.config.talos.dev", "v1alpha1").await.unwrap();
    assert!(String::from_utf8_lossy(&live).contains("hostname: cp-1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_survives_stops_and_a_missing_cd() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    power(&cluster.sim, 101, "stop").await;
    let path = format!("/nodes/{NODE}/qemu/101/config");
    proxmox(&cluster.sim, "PUT", &path, json!({ "ide2": "none,media=cdrom" })).await;
    power(&cluster.sim, 101, "start").await;
    let mut talos = cluster.admin("192.0.2.41").await;
    assert_eq!(talos.members().await.unwrap().len(), 1);
    assert_eq!(cluster.machine(101)["boots"], 3);
    assert_eq!(cluster.reboots(), [("cp-1".into(), "install".into()), ("cp-1".into(), "power".into())]);
    // An ACPI shutdown works without the CD, as there is a system on the disk.
    power(&cluster.sim, 101, "shutdown").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_vm_takes_everything_with_it() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    power(&cluster.sim, 101, "stop").await;
    proxmox(&cluster.sim, "DELETE", &format!("/nodes/{NODE}/qemu/101"), json!({ "purge": 1 })).await;
    assert!(cluster.machine(101).is_null());
    machine(&cluster.sim, 101, "192.0.2.41", "v1.13.0").await;
    assert_eq!(cluster.machine(101)["stage"], "maintenance");
    assert_eq!(cluster.machine(101)["installed"], json!(null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_to_a_disk_that_is_not_there_fails() {
    let cluster = Cluster::new("v1.13.0").await;
    machine(&cluster.sim, 101, "192.0.2.41", "v1.13.0").await;
    let mut wanted = cluster.wanted("cp-1", "192.0.2.41", true);
    wanted.disk = "/dev/vda".to_owned();
    let mut talos = Talos::insecure(&cluster.sim, "192.0.2.41").await.unwrap();
    talos.apply(&cluster.pki.config(&wanted), 1).await.unwrap();
    let failed = async || cluster.reboots().iter().any(|(_, cause)| cause == "install-failed").then_some(());
    eventually(failed).await;
    assert_eq!(cluster.machine(101)["stage"], "maintenance");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_needs_a_control_plane_for_its_certificate() {
    let cluster = Cluster::new("v1.13.0").await;
    machine(&cluster.sim, 201, "192.0.2.51", "v1.13.0").await;
    let config = cluster.pki.config(&cluster.wanted("w-1", "192.0.2.51", false));
    Talos::insecure(&cluster.sim, "192.0.2.51").await.unwrap().apply(&config, 1).await.unwrap();
    eventually(async || (cluster.machine(201)["stage"] == "running").then_some(())).await;
    let client = cluster.pki.client("os:admin");
    assert!(Talos::connect(&cluster.sim, "192.0.2.51", &client).await.is_err());
    let mut control_plane = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    let mut worker = cluster.admin("192.0.2.51").await;
    assert_eq!(worker.bootstrap(false).await.unwrap_err().code, 12);
    control_plane.nodes = vec!["192.0.2.51".to_owned(), "192.0.2.99".to_owned()];
    let versions = control_plane.versions().await;
    let seen: Vec<_> = versions.iter().map(|v| v.metadata.clone().unwrap()).collect();
    assert_eq!((seen[0].hostname.as_str(), seen[0].error.as_str()), ("192.0.2.51", ""));
    assert!(seen[1].hostname == "192.0.2.99" && seen[1].error.contains("no route"), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bare_machines_are_there_as_well() {
    let cluster = Cluster::new("v1.14.0").await;
    let metal = json!({ "metal": { "name": "box", "addresses": ["192.0.2.61"], "version": "v1.14.0" } });
    change(&cluster.sim, metal).await;
    let mut wanted = cluster.wanted("cp-1", "192.0.2.61", true);
    wanted.image = wanted.image.replace("nocloud", "metal");
    let config = cluster.pki.config(&wanted);
    Talos::insecure(&cluster.sim, "192.0.2.61").await.unwrap().apply(&config, 1).await.unwrap();
    let mut talos = cluster.admin("192.0.2.61").await;
    talos.bootstrap(false).await.unwrap();
    let before = talos.boot_id().await;
    change(&cluster.sim, json!({ "metal-power": { "name": "box", "on": false } })).await;
    assert!(talos.version().await.is_err());
    change(&cluster.sim, json!({ "metal-power": { "name": "box", "on": true } })).await;
    let mut talos = cluster.admin("192.0.2.61").await;
    assert_ne!(talos.boot_id().await, before);
    assert_eq!(talos.members().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_outlive_the_simulator() {
    let dir = tempfile::tempdir().unwrap();
    let options = || strata_sim::SimOptions {
        pace: strata_sim::Pace::INSTANT,
        data_dir: Some(dir.path().to_owned()),
        ..strata_sim::SimOptions::default()
    };
    let sim = strata_sim::Sim::start(options()).await.unwrap();
    let cluster = Cluster { sim, pki: Pki::new(), version: "v1.13.0".to_owned() };
    cluster.add(101, "cp-1", "192.0.2.41", true).await.bootstrap(false).await.unwrap();
    let before = (cluster.sim.export(), cluster.sim.talos());
    let Cluster { sim, pki, version } = cluster;
    sim.shutdown().await.unwrap();
    let sim = strata_sim::Sim::start(options()).await.unwrap();
    let cluster = Cluster { sim, pki, version };
    assert_eq!((cluster.sim.export(), cluster.sim.talos()), before);
    assert_eq!(cluster.admin("192.0.2.41").await.members().await.unwrap().len(), 1);
}
