//! Making and removing virtual machines.

use crate::client::Site;

#[tokio::test]
async fn a_vm_gets_what_the_server_makes_up() {
    let site = Site::single().await;
    let exit = site
        .task(
            "POST",
            "/nodes/pve/qemu",
            &[
                ("vmid", "100"),
                ("name", "web"),
                ("scsi0", "local:2,format=qcow2,ssd=1,discard=on"),
                ("net0", "virtio,bridge=vmbr0,firewall=1"),
                ("ide2", "local:iso/test.iso,media=cdrom"),
                ("tags", "Zeta;alpha"),
            ],
        )
        .await;
    assert_eq!(exit, "OK");
    let config = site.get("/nodes/pve/qemu/100/config").await;
    assert_eq!(config["scsi0"], "local:100/vm-100-disk-0.qcow2,discard=on,size=2G,ssd=1");
    assert_eq!(config["ide2"], "local:iso/test.iso,media=cdrom,size=2930K");
    assert_eq!(config["boot"], "order=scsi0;ide2;net0");
    assert_eq!(config["tags"], "Zeta;alpha");
    let net = config["net0"].as_str().unwrap();
    assert!(net.starts_with("virtio=BC:24:11:") && net.ends_with(",bridge=vmbr0,firewall=1"), "{net}");
    assert!(config["smbios1"].as_str().unwrap().starts_with("uuid="));
    assert!(config["meta"].as_str().unwrap().starts_with("creation-qemu="));
}

#[tokio::test]
async fn made_up_values_derive_from_seed_and_identity_not_from_the_order_of_requests() {
    let one = Site::single().await;
    let two = Site::single().await;
    for vmid in ["100", "101"] {
        one.task("POST", "/nodes/pve/qemu", &[("vmid", vmid), ("net0", "virtio,bridge=vmbr0")]).await;
    }
    for vmid in ["101", "100"] {
        two.task("POST", "/nodes/pve/qemu", &[("vmid", vmid), ("net0", "virtio,bridge=vmbr0")]).await;
    }
    assert_eq!(one.export().await["guests"], two.export().await["guests"]);
    let a = one.get("/nodes/pve/qemu/100/config").await;
    let b = one.get("/nodes/pve/qemu/101/config").await;
    assert_ne!(a["net0"], b["net0"]);
}

#[tokio::test]
async fn what_another_user_makes_on_the_same_vmid_is_not_the_same_guest() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await;
    let mine = site.get("/nodes/pve/qemu/100/config").await["smbios1"].clone();
    site.task("DELETE", "/nodes/pve/qemu/100", &[]).await;
    let change =
        serde_json::json!({ "method": "POST", "path": "/nodes/pve/qemu", "params": { "vmid": 100 } });
    assert_eq!(site.control("POST", "/_sim/change", change).await["exitstatus"], "OK");
    assert_ne!(site.get("/nodes/pve/qemu/100/config").await["smbios1"], mine);
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let site = Site::single().await;
    let exit = site
        .task(
            "POST",
            "/nodes/pve/qemu",
            &[("vmid", "100"), ("scsi0", "local:1"), ("scsi1", "local:100/vm-100-disk-9.raw")],
        )
        .await;
    assert_eq!(exit, "unable to create VM 100 - volume 'local:100/vm-100-disk-9.raw' does not exist");
    assert_eq!(site.call("GET", "/nodes/pve/qemu/100/config", &[]).await.status, 500);
    let volumes = site.export().await["volumes"].clone();
    assert!(!volumes.to_string().contains("vm-100-"), "{volumes}");
}

#[tokio::test]
async fn a_full_storage_refuses_in_the_task() {
    let site = Site::single().await;
    let room = serde_json::json!({ "room": { "storage": "local", "bytes": 1 << 30 } });
    site.control("POST", "/_sim/change", room).await;
    let exit = site.task("POST", "/nodes/pve/qemu", &[("vmid", "100"), ("scsi0", "local:2")]).await;
    assert_eq!(
        exit,
        "unable to create VM 100 - unable to create image: qemu-img: /var/lib/vz/images/100/vm-100-disk-0.raw: No space left on device"
    );
}

#[tokio::test]
async fn a_taken_vmid_is_refused_at_once() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await;
    let answer = site.post("/nodes/pve/qemu", &[("vmid", "100")]).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.reason, "unable to create VM 100 - VM 100 already exists on node 'pve'");
    let taken = site.call("GET", "/cluster/nextid", &[("vmid", "100")]).await;
    assert_eq!(taken.error("vmid"), "VM 100 already exists");
    assert_eq!(site.get("/cluster/nextid").await, "101");
}

#[tokio::test]
async fn every_wrong_parameter_is_named() {
    let site = Site::single().await;
    let wrong = site
        .post(
            "/nodes/pve/qemu",
            &[("vmid", "5"), ("cores", "0"), ("bios", "efi"), ("memory", "abc"), ("foo", "1")],
        )
        .await;
    assert_eq!(wrong.reason, "Parameter verification failed.");
    assert_eq!(wrong.error("vmid"), "invalid format - value does not look like a valid VM ID\n");
    assert_eq!(wrong.error("cores"), "value must have a minimum value of 1");
    assert_eq!(
        wrong.error("memory"),
        "invalid format - format error\nmemory.current: type check ('integer') failed - got 'abc'\n"
    );
    assert!(wrong.error("foo").starts_with("property is not defined in schema"));
}

#[tokio::test]
async fn destroying_takes_own_disks_and_unreferenced_ones_only_when_asked() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100"), ("scsi0", "local:1")]).await;
    let stray = serde_json::json!({ "volume": {
        "volid": "local:100/vm-100-disk-7.raw", "node": "pve", "size": 1024, "vmid": 100,
    } });
    site.control("POST", "/_sim/change", stray).await;
    site.task("DELETE", "/nodes/pve/qemu/100", &[("purge", "1")]).await;
    let left = site.export().await["volumes"].to_string();
    assert!(!left.contains("vm-100-disk-0") && left.contains("vm-100-disk-7"), "{left}");
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await;
    site.task("DELETE", "/nodes/pve/qemu/100", &[("destroy-unreferenced-disks", "1")]).await;
    assert!(!site.export().await["volumes"].to_string().contains("vm-100-"));
}

#[tokio::test]
async fn a_restored_backup_is_the_same_guest_unless_a_new_one_is_asked_for() {
    let site = Site::cluster().await;
    let params =
        [("vmid", "100"), ("description", "mark"), ("scsi0", "local-lvm:1"), ("net0", "virtio,bridge=vmbr0")];
    site.task("POST", "/nodes/pve1/qemu", &params).await;
    let exit = site.task("POST", "/nodes/pve1/vzdump", &[("vmid", "100"), ("storage", "local")]).await;
    assert_eq!(exit, "OK");
    let backups = site.call("GET", "/nodes/pve1/storage/local/content", &[("content", "backup")]).await;
    let archive = backups.data()[0]["volid"].as_str().unwrap().to_owned();
    let restore = |vmid: &'static str, unique: &'static str| {
        let params = [("vmid", vmid), ("archive", archive.as_str()), ("unique", unique)];
        let site = &site;
        async move { site.task("POST", "/nodes/pve1/qemu", &params).await }
    };
    assert_eq!(restore("200", "0").await, "OK");
    assert_eq!(restore("201", "1").await, "OK");
    let config = async |vmid: u32| site.get(&format!("/nodes/pve1/qemu/{vmid}/config")).await;
    let (own, same, other) = (config(100).await, config(200).await, config(201).await);
    assert_eq!((&own["smbios1"], &own["net0"]), (&same["smbios1"], &same["net0"]));
    assert_eq!(same["description"], "mark");
    assert_eq!(same["scsi0"], "local-lvm:vm-200-disk-0,size=1G");
    assert_ne!(own["smbios1"], other["smbios1"]);
    assert_ne!(own["net0"], other["net0"]);
}
