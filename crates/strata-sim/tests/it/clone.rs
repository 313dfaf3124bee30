//! Templates and clones.

use std::time::Duration;

use strata_sim::Pace;

use crate::client::Site;

async fn template(pace: Pace) -> Site {
    let site = Site::single_at(pace).await;
    let params = [
        ("vmid", "100"),
        ("name", "base"),
        ("description", "notes of the template"),
        ("tags", "a;b"),
        ("scsi0", "local:1,format=qcow2"),
        ("ide2", "local:cloudinit"),
        ("net0", "virtio,bridge=vmbr0"),
    ];
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &params).await, "OK");
    assert_eq!(site.task("POST", "/nodes/pve/qemu/100/template", &[]).await, "OK");
    site
}

#[tokio::test]
async fn a_clone_copies_tags_and_notes_and_gets_its_own_identity() {
    let site = template(Pace::INSTANT).await;
    let clone = "/nodes/pve/qemu/100/clone";
    assert_eq!(site.task("POST", clone, &[("newid", "101"), ("name", "one")]).await, "OK");
    let base = site.get("/nodes/pve/qemu/100/config").await;
    let one = site.get("/nodes/pve/qemu/101/config").await;
    assert_eq!(base["scsi0"], "local:100/base-100-disk-0.qcow2,size=1G");
    assert_eq!(one["scsi0"], "local:100/base-100-disk-0.qcow2/101/vm-101-disk-0.qcow2,size=1G");
    assert_eq!(one["ide2"], "local:101/vm-101-cloudinit.qcow2,media=cdrom,size=4M");
    assert_eq!((&one["description"], &one["tags"]), (&base["description"], &base["tags"]));
    assert_ne!(one["smbios1"], base["smbios1"]);
    assert_ne!(one["net0"], base["net0"]);
    assert!(one.get("template").is_none());
    let inuse = site.task("DELETE", "/nodes/pve/qemu/100", &[]).await;
    assert_eq!(inuse, "base volume 'local:100/base-100-disk-0.qcow2' is still in use by linked cloned");
}

#[tokio::test]
async fn while_a_clone_runs_its_target_shows_nothing_but_the_lock() {
    let site = template(Pace::FAST).await;
    let params = [("newid", "101"), ("full", "1"), ("description", "mark")];
    let answer = site.post("/nodes/pve/qemu/100/clone", &params).await;
    let upid = answer.text().to_owned();
    assert!(upid.contains(":qmclone:100:"), "the task is named after the source: {upid}");
    let config = loop {
        let config = site.call("GET", "/nodes/pve/qemu/101/config", &[]).await;
        if config.status == 200 {
            break config.data().clone();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(config["lock"], "clone");
    let keys: Vec<&str> = config.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["description", "lock", "digest"]);
    assert_eq!(config["description"], " qmclone temporary file");
    assert_eq!(site.wait(&upid).await, "OK");
    let config = site.get("/nodes/pve/qemu/101/config").await;
    assert_eq!(config["description"], "mark");
    assert!(config.get("lock").is_none());
}

#[tokio::test]
async fn while_a_create_runs_the_vm_shows_nothing_but_the_lock() {
    // Slow enough to be seen by a machine that is busy with other tests.
    let site = Site::single_at(Pace::REAL).await;
    let upid = site.post("/nodes/pve/qemu", &[("vmid", "100"), ("name", "x")]).await.text().to_owned();
    let config = site.get("/nodes/pve/qemu/100/config").await;
    assert_eq!(config["lock"], "create");
    assert!(config.get("name").is_none());
    let busy = site.post("/nodes/pve/qemu", &[("vmid", "100")]).await;
    assert_eq!(busy.reason, "unable to create VM 100 - VM 100 already exists on node 'pve'");
    assert_eq!(site.wait(&upid).await, "OK");
    assert_eq!(site.get("/nodes/pve/qemu/100/config").await["name"], "x");
}

#[tokio::test]
async fn a_stopped_clone_leaves_nothing() {
    let site = template(Pace::REAL).await;
    let params = [("newid", "101"), ("full", "1")];
    let upid = site.post("/nodes/pve/qemu/100/clone", &params).await.text().to_owned();
    while site.call("GET", "/nodes/pve/qemu/101/config", &[]).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(site.delete(&format!("/nodes/pve/tasks/{upid}"), &[]).await.status, 200);
    assert_eq!(site.wait(&upid).await, "received interrupt");
    assert_eq!(site.call("GET", "/nodes/pve/qemu/101/config", &[]).await.status, 500);
    assert!(!site.export().await["volumes"].to_string().contains("vm-101-"));
}

#[tokio::test]
async fn clones_to_another_node_need_shared_storage() {
    let site = Site::cluster().await;
    let make = |vmid: &'static str, disk: &'static str| {
        let site = &site;
        async move {
            site.task("POST", "/nodes/pve1/qemu", &[("vmid", vmid), ("scsi0", disk)]).await;
        }
    };
    make("100", "tank:1").await;
    make("101", "local-lvm:1").await;
    let clone = |vmid: &str, newid: &'static str| {
        let path = format!("/nodes/pve1/qemu/{vmid}/clone");
        let site = &site;
        async move { site.post(&path, &[("newid", newid), ("target", "pve2")]).await }
    };
    assert_eq!(clone("100", "110").await.status, 200);
    assert_eq!(site.get("/nodes/pve2/qemu/110/config").await["scsi0"], "tank:110/vm-110-disk-0.raw,size=1G");
    let local = clone("101", "111").await;
    assert_eq!(local.reason, "can't clone VM to node 'pve2' (VM uses local storage)");
}

#[tokio::test]
async fn thin_volumes_forget_their_base_and_grow_to_whole_extents() {
    let site = Site::cluster().await;
    let params = [
        ("vmid", "100"),
        ("bios", "ovmf"),
        ("efidisk0", "local-lvm:1,efitype=4m,pre-enrolled-keys=1"),
        ("scsi0", "local-lvm:1"),
    ];
    site.task("POST", "/nodes/pve1/qemu", &params).await;
    site.task("POST", "/nodes/pve1/qemu/100/template", &[]).await;
    let base = site.get("/nodes/pve1/qemu/100/config").await;
    assert_eq!(base["efidisk0"], "local-lvm:base-100-disk-0,efitype=4m,pre-enrolled-keys=1,size=4M");
    site.task("POST", "/nodes/pve1/qemu/100/clone", &[("newid", "101")]).await;
    assert_eq!(site.get("/nodes/pve1/qemu/101/config").await["scsi0"], "local-lvm:vm-101-disk-1,size=1G");
    // So the template can go, and its clone stays.
    assert_eq!(site.task("DELETE", "/nodes/pve1/qemu/100", &[]).await, "OK");
    assert_eq!(site.task("POST", "/nodes/pve1/qemu/101/status/start", &[]).await, "OK");
}
