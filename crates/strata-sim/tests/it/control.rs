//! The control interface: export, counts, other people's changes.

use serde_json::json;

use crate::client::Site;

#[tokio::test]
async fn the_export_has_no_times_ids_digests_or_secrets() {
    let site = Site::single().await;
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100"), ("scsi0", "local:1,format=qcow2")]).await;
    site.task("POST", "/nodes/pve/qemu/100/snapshot", &[("snapname", "s1")]).await;
    let export = site.export().await.to_string();
    for word in ["ctime", "snaptime", "UPID", "digest", "aaaaaaaa-bbbb", "strata-sim"] {
        assert!(!export.contains(word), "{word} in {export}");
    }
    assert!(export.contains("vm-100-disk-0"));
}

#[tokio::test]
async fn requests_are_counted_by_template() {
    let site = Site::single().await;
    site.get("/version").await;
    site.call("GET", "/nodes/pve/qemu/100/config", &[]).await;
    site.call("GET", "/nodes/pve/qemu/101/config", &[]).await;
    let counts = site.control("GET", "/_sim/requests", json!(null)).await;
    assert_eq!(counts["total"], 3);
    let row = json!({ "method": "GET", "path": "/nodes/{node}/qemu/{vmid}/config", "count": 2 });
    assert!(counts["counts"].as_array().unwrap().contains(&row), "{counts}");
    site.control("DELETE", "/_sim/requests", json!(null)).await;
    assert_eq!(site.sim.requests(), 0);
}

#[tokio::test]
async fn a_restored_copy_has_everything_of_the_original_but_the_vmid() {
    let site = Site::single().await;
    let params =
        [("vmid", "100"), ("description", "mark"), ("scsi0", "local:1"), ("net0", "virtio,bridge=vmbr0")];
    site.task("POST", "/nodes/pve/qemu", &params).await;
    site.control("POST", "/_sim/change", json!({ "restore": { "from": 100, "vmid": 200 } })).await;
    let (a, b) = (site.get("/nodes/pve/qemu/100/config").await, site.get("/nodes/pve/qemu/200/config").await);
    for key in ["description", "smbios1", "net0"] {
        assert_eq!(a[key], b[key], "{key}");
    }
    assert_eq!(b["scsi0"], "local:200/vm-200-disk-0.raw,size=1G");
}

#[tokio::test]
async fn someone_else_can_call_anything() {
    let site = Site::single().await;
    let change = json!([
        { "method": "POST", "path": "/nodes/pve/qemu", "params": { "vmid": 300, "args": "-S" } },
        { "method": "PUT", "path": "/nodes/pve/qemu/300/config", "params": { "name": "theirs" } },
        { "method": "PUT", "path": "/nodes/pve/qemu/999/config", "params": { "name": "none" } },
        { "method": "PUT", "path": "/nodes/pve/qemu/300/config", "params": { "name": "never" } },
    ]);
    let done = site.control("POST", "/_sim/change", change).await;
    assert_eq!(done.as_array().unwrap().len(), 3, "the first refusal ends it: {done}");
    assert_eq!(done[2]["status"], 500);
    assert_eq!(site.get("/nodes/pve/qemu/300/config").await["name"], "theirs");
    assert_eq!(site.sim.requests(), 1, "changes by others are not counted");
}
