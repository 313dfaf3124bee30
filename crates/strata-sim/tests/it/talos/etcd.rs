//! Membership of etcd: joins, majorities, losses, restores.

use serde_json::json;

use super::api::{Talos, tunnel};
use super::{Cluster, NODE, eventually, machine, power, proxmox, voters, wire};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_there_until_the_bootstrap_and_then_only_once() {
    let cluster = Cluster::new("v1.13.0").await;
    let mut talos = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    assert!(talos.members().await.is_err());
    assert!(tunnel(&cluster.sim, "192.0.2.40:6443").await.unwrap_err().text.contains("no route"));
    talos.bootstrap(false).await.unwrap();
    let again = talos.bootstrap(false).await.unwrap_err();
    assert_eq!((again.code, again.text.as_str()), (6, "etcd data directory is not empty"));
    let members = talos.members().await.unwrap();
    assert_eq!((members.len(), members[0].hostname.as_str(), members[0].learner), (1, "cp-1", false));
    // The shared address is held now: something is there that has no API of that port.
    let shared = tunnel(&cluster.sim, "192.0.2.40:1").await.unwrap_err();
    assert!(shared.text.contains("refused"), "{shared:?}");
    assert_eq!(cluster.sim.talos()["counters"]["test-cluster"]["bootstraps"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_planes_join_one_after_another_and_keep_their_majority() {
    let cluster = Cluster::of_three("v1.13.0").await;
    let mut second = cluster.admin("192.0.2.42").await;
    assert_eq!(second.members().await.unwrap().len(), 3);
    power(&cluster.sim, 101, "stop").await;
    assert_eq!(second.members().await.unwrap().len(), 3);
    power(&cluster.sim, 103, "stop").await;
    assert!(second.members().await.unwrap_err().text.contains("no leader"));
    assert!(tunnel(&cluster.sim, "192.0.2.40:6443").await.is_err());
    let lost = second.members().await.unwrap_err();
    assert!(lost.text.contains("no leader"), "{lost:?}");
    let counters = cluster.sim.talos()["counters"]["test-cluster"].clone();
    assert_eq!((counters["most_down"].as_u64(), counters["quorum_lost"].as_bool()), (Some(2), Some(true)));
    power(&cluster.sim, 103, "start").await;
    eventually(async || second.members().await.ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_member_is_removed_by_its_number_and_replaced() {
    let cluster = Cluster::of_three("v1.13.0").await;
    power(&cluster.sim, 101, "stop").await;
    proxmox(&cluster.sim, "DELETE", &format!("/nodes/{NODE}/qemu/101"), json!({ "purge": 1 })).await;
    let mut second = cluster.admin("192.0.2.42").await;
    let members = second.members().await.unwrap();
    let lost = members.iter().find(|member| member.hostname == "cp-1").unwrap().id;
    assert_eq!(second.remove_member(1).await.unwrap_err().code, 5);
    second.remove_member(lost).await.unwrap();
    assert_eq!(second.members().await.unwrap().len(), 2);
    cluster.add(101, "cp-1", "192.0.2.41", true).await;
    cluster.voters(&["cp-1", "cp-2", "cp-3"]).await;
    let export = cluster.sim.talos();
    assert_eq!(export["etcd-clusters"].as_array().unwrap().len(), 1);
    assert_eq!(export["counters"]["test-cluster"]["quorum_lost"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_machine_that_is_bootstrapped_makes_a_second_cluster() {
    let cluster = Cluster::of_three("v1.13.0").await;
    for vmid in [101, 102, 103] {
        power(&cluster.sim, vmid, "stop").await;
    }
    proxmox(&cluster.sim, "DELETE", &format!("/nodes/{NODE}/qemu/101"), json!({ "purge": 1 })).await;
    cluster.add(101, "cp-1", "192.0.2.41", true).await.bootstrap(false).await.unwrap();
    let report = cluster.sim.talos();
    assert_eq!(report["counters"]["test-cluster"]["bootstraps"], 2);
    assert_eq!(report["etcd-clusters"].as_array().unwrap().len(), 2);
    assert_eq!(cluster.sim.export()["talos"]["etcd-clusters"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_machine_that_is_left_alone_joins_again_under_its_name() {
    let cluster = Cluster::of_three("v1.13.0").await;
    power(&cluster.sim, 101, "stop").await;
    proxmox(&cluster.sim, "DELETE", &format!("/nodes/{NODE}/qemu/101"), json!({ "purge": 1 })).await;
    let mut first = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    cluster.voters(&["cp-1", "cp-2", "cp-3"]).await;
    assert_eq!(first.members().await.unwrap().len(), 3);
    assert_eq!(first.bootstrap(false).await.unwrap_err().code, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_is_gone_and_the_last_one_cannot() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let mut first = cluster.admin("192.0.2.41").await;
    assert!(first.leave().await.unwrap_err().text.contains("not enough started members"));
    let mut second = cluster.add(102, "cp-2", "192.0.2.42", true).await;
    cluster.voters(&["cp-1", "cp-2"]).await;
    second.leave().await.unwrap();
    assert_eq!(first.members().await.unwrap().len(), 1);
    assert_eq!(cluster.machine(102)["etcd-data"], false);
    // It stays out until it boots again.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(voters(&cluster.sim.talos()), ["cp-1"]);
    second.reboot().await.unwrap();
    cluster.voters(&["cp-1", "cp-2"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_brings_the_same_cluster_back() {
    let cluster = Cluster::of_three("v1.13.0").await;
    let snapshot = cluster.admin("192.0.2.42").await.snapshot().await.unwrap();
    for vmid in [101, 102, 103] {
        power(&cluster.sim, vmid, "stop").await;
        proxmox(&cluster.sim, "DELETE", &format!("/nodes/{NODE}/qemu/{vmid}"), json!({ "purge": 1 })).await;
    }
    let mut first = cluster.add(101, "cp-1", "192.0.2.41", true).await;
    assert_eq!(first.bootstrap(true).await.unwrap_err().code, 9);
    first.recover(b"not a snapshot, whatever it may be").await.unwrap();
    assert!(first.bootstrap(true).await.unwrap_err().text.contains("snapshot"));
    first.recover(&snapshot).await.unwrap();
    first.bootstrap(true).await.unwrap();
    let members = first.members().await.unwrap();
    assert_eq!((members.len(), members[0].hostname.as_str()), (1, "cp-1"));
    let export = cluster.sim.talos();
    assert_eq!(export["etcd-clusters"].as_array().unwrap().len(), 1);
    assert_eq!(export["counters"]["test-cluster"]["bootstraps"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_leaves_the_cluster_and_the_disk_empty() {
    let cluster = Cluster::of_three("v1.13.0").await;
    let mut third = cluster.admin("192.0.2.43").await;
    third.reset(&wire::Reset { graceful: true, reboot: true, partitions: Vec::new() }).await.unwrap();
    cluster.voters(&["cp-1", "cp-2"]).await;
    eventually(async || (cluster.machine(103)["stage"] == "maintenance").then_some(())).await;
    assert_eq!(cluster.machine(103)["installed"], json!(null));
    // Only its state: Talos stays installed, and the machine waits for a configuration again.
    let mut second = cluster.admin("192.0.2.42").await;
    let state = |label: &str| wire::Partition { label: label.to_owned(), wipe: true };
    let partitions = vec![state("STATE"), state("EPHEMERAL")];
    second.reset(&wire::Reset { graceful: false, reboot: true, partitions }).await.unwrap();
    eventually(async || (cluster.machine(102)["stage"] == "maintenance").then_some(())).await;
    assert_eq!(cluster.machine(102)["installed"]["version"], "v1.13.0");
    assert!(Talos::insecure(&cluster.sim, "192.0.2.42").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_clusters_control_plane_does_not_join() {
    let cluster = Cluster::bootstrapped("v1.13.0").await;
    let mut other = super::configs::Pki::new();
    other.id = "other-cluster".to_owned();
    machine(&cluster.sim, 102, "192.0.2.42", "v1.13.0").await;
    let config = other.config(&cluster.wanted("cp-9", "192.0.2.42", true));
    Talos::insecure(&cluster.sim, "192.0.2.42").await.unwrap().apply(&config, 1).await.unwrap();
    eventually(async || (cluster.machine(102)["stage"] == "running").then_some(())).await;
    assert_eq!(cluster.machine(102)["etcd-data"], false);
    assert_eq!(voters(&cluster.sim.talos()), ["cp-1"]);
}
