//! Moving guests between nodes.

use crate::client::Site;

async fn vm(disk: &str) -> Site {
    let site = Site::cluster().await;
    let params = [("vmid", "100"), ("scsi0", disk), ("net0", "virtio,bridge=vmbr0")];
    assert_eq!(site.task("POST", "/nodes/pve1/qemu", &params).await, "OK");
    site
}

const MIGRATE: &str = "/nodes/pve1/qemu/100/migrate";

#[tokio::test]
async fn a_vm_on_shared_storage_moves_running_or_not() {
    let site = vm("tank:1").await;
    site.task("POST", "/nodes/pve1/qemu/100/status/start", &[]).await;
    let offline = site.post(MIGRATE, &[("target", "pve2")]).await;
    assert_eq!(offline.reason, "can't migrate running VM without --online");
    assert_eq!(site.task("POST", MIGRATE, &[("target", "pve2"), ("online", "1")]).await, "OK");
    let status = site.get("/nodes/pve2/qemu/100/status/current").await;
    assert_eq!(status["status"], "running");
    assert_eq!(site.get("/nodes/pve2/qemu/100/config").await["scsi0"], "tank:100/vm-100-disk-0.raw,size=1G");
    assert_eq!(site.call("GET", "/nodes/pve1/qemu/100/config", &[]).await.status, 500);
}

#[tokio::test]
async fn local_disks_come_along_only_when_that_is_asked_for_live() {
    let site = vm("local-lvm:1").await;
    let preview = site.get(MIGRATE).await;
    assert_eq!(preview["local_disks"][0]["volid"], "local-lvm:vm-100-disk-0");
    assert_eq!(preview["allowed_nodes"], serde_json::json!(["pve2", "pve3"]));
    site.task("POST", "/nodes/pve1/qemu/100/status/start", &[]).await;
    let online = [("target", "pve3"), ("online", "1")];
    assert_eq!(site.task("POST", MIGRATE, &online).await, "migration aborted");
    let with_disks = [("target", "pve3"), ("online", "1"), ("with-local-disks", "1")];
    assert_eq!(site.task("POST", MIGRATE, &with_disks).await, "OK");
    assert_eq!(site.get("/nodes/pve3/qemu/100/config").await["scsi0"], "local-lvm:vm-100-disk-0,size=1G");
    let volumes = site.export().await["volumes"].clone();
    let disk = volumes.as_array().unwrap().iter().find(|v| v["vmid"] == 100).unwrap().clone();
    assert_eq!(disk["node"], "pve3");
}

#[tokio::test]
async fn impossible_targets_are_refused_at_once() {
    let site = vm("tank:1").await;
    let own = site.post(MIGRATE, &[("target", "pve1")]).await;
    assert_eq!(own.error("target"), "target is local node.");
    assert_eq!(site.post(MIGRATE, &[("target", "nope")]).await.reason, "no such cluster node 'nope'");
}
