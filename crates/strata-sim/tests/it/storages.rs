//! Storages of the datacenter and what lies on them.

use serde_json::{Value, json};

use crate::client::Site;

const CONTENT: &str = "/nodes/pve/storage/local/content";

fn names(rows: &Value, key: &str) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_storage_comes_changes_and_goes() {
    let site = Site::single().await;
    let before = site.export().await;
    let params = [
        ("storage", "data"),
        ("type", "dir"),
        ("path", "/srv/data"),
        ("content", "images,iso"),
        ("shared", "1"),
    ];
    let created = site.post("/storage", &params).await;
    assert_eq!(created.data(), &json!({ "storage": "data", "type": "dir" }));
    let again = site.post("/storage", &params).await;
    assert_eq!(again.reason, "create storage failed: storage ID 'data' already defined");
    let digest = site.get("/storage/data").await["digest"].as_str().unwrap().to_owned();
    site.put("/storage/data", &[("content", "iso"), ("digest", &digest)]).await.data();
    let stale = site.put("/storage/data", &[("content", "images"), ("digest", &digest)]).await;
    assert!(stale.reason.contains("detected modified configuration"), "{stale:?}");
    let fixed = site.put("/storage/data", &[("path", "/elsewhere")]).await;
    assert!(fixed.status >= 400, "{fixed:?}");
    site.put("/storage/data", &[("delete", "shared")]).await.data();
    let now = site.get("/storage/data").await;
    assert_eq!((&now["content"], now.get("shared")), (&json!("iso"), None));
    site.delete("/storage/data", &[]).await.data();
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_storage_needs_what_its_type_needs() {
    let site = Site::single().await;
    let missing = site.post("/storage", &[("storage", "nas"), ("type", "nfs"), ("export", "/x")]).await;
    assert_eq!(missing.reason, "missing value for required option 'server'");
    let unknown = site.post("/storage", &[("storage", "nas"), ("type", "floppy")]).await;
    assert!(unknown.error("type").starts_with("value 'floppy' does not have a value in the enumeration"));
    let content =
        [("storage", "nas"), ("type", "lvmthin"), ("vgname", "v"), ("thinpool", "t"), ("content", "iso")];
    assert!(site.post("/storage", &content).await.status >= 400);
    assert_eq!(names(&site.get("/storage").await, "storage"), ["local"]);
}

#[tokio::test]
async fn a_storage_is_only_on_the_nodes_it_names() {
    let site = Site::cluster().await;
    site.put("/storage/local-lvm", &[("nodes", "pve1,pve2")]).await.data();
    assert!(names(&site.get("/nodes/pve1/storage").await, "storage").contains(&"local-lvm".to_owned()));
    let there = site.get("/nodes/pve3/storage").await;
    let row = there.as_array().unwrap().iter().find(|row| row["storage"] == "local-lvm").unwrap();
    assert_eq!((&row["enabled"], &row["active"]), (&json!(0), &json!(0)));
    let exit = site.task("POST", "/nodes/pve3/qemu", &[("vmid", "100"), ("scsi0", "local-lvm:1")]).await;
    assert!(exit.ends_with("storage 'local-lvm' is not available on node 'pve3'"), "{exit}");
}

#[tokio::test]
async fn a_volume_is_made_looked_at_and_removed() {
    let site = Site::single().await;
    let before = site.export().await;
    let params = [("vmid", "150"), ("filename", "vm-150-disk-0.qcow2"), ("size", "1G"), ("format", "qcow2")];
    assert_eq!(site.post(CONTENT, &params).await.text(), "local:150/vm-150-disk-0.qcow2");
    let path = format!("{CONTENT}/local:150/vm-150-disk-0.qcow2");
    let seen = site.get(&path).await;
    assert_eq!((&seen["size"], &seen["format"]), (&json!(1 << 30), &json!("qcow2")));
    let wrong = [("vmid", "150"), ("filename", "vm-150-disk-1.iso"), ("size", "1G")];
    assert!(site.post(CONTENT, &wrong).await.status >= 400);
    let owned = site.call("GET", CONTENT, &[("vmid", "150")]).await;
    assert_eq!(names(owned.data(), "volid"), ["local:150/vm-150-disk-0.qcow2"]);
    assert_eq!(site.task("DELETE", &path, &[]).await, "OK");
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn room_is_taken_and_given_back() {
    let site = Site::single().await;
    let free = async || site.get("/nodes/pve/storage/local/status").await["avail"].as_u64().unwrap();
    let at_first = free().await;
    let params = [("vmid", "150"), ("filename", "vm-150-disk-0.raw"), ("size", "3G")];
    site.post(CONTENT, &params).await.data();
    assert_eq!(at_first - free().await, 3 << 30);
    site.task("DELETE", &format!("{CONTENT}/local:150/vm-150-disk-0.raw"), &[]).await;
    assert_eq!(free().await, at_first);
}

#[tokio::test]
async fn what_clones_need_is_not_deleted_and_what_is_gone_is_no_failure() {
    let site = Site::single().await;
    let create = [("vmid", "100"), ("scsi0", "local:1"), ("ide2", "local:iso/test.iso,media=cdrom")];
    site.task("POST", "/nodes/pve/qemu", &create).await;
    site.task("POST", "/nodes/pve/qemu/100/template", &[]).await;
    let clone = [("newid", "101"), ("full", "0")];
    assert_eq!(site.task("POST", "/nodes/pve/qemu/100/clone", &clone).await, "OK");
    let base = site.task("DELETE", &format!("{CONTENT}/local:100/base-100-disk-0.raw"), &[]).await;
    assert!(base.contains("base volume '100/base-100-disk-0.raw' is still in use"), "{base}");
    let upid = site.delete(&format!("{CONTENT}/local:iso/nope.iso"), &[]).await.text().to_owned();
    assert_eq!(site.wait(&upid).await, "OK");
    let log = site.get(&format!("/nodes/pve/tasks/{upid}/log")).await.to_string();
    assert!(log.contains("does not exist"), "{log}");
}

#[tokio::test]
async fn old_backups_are_pruned_but_protected_ones_stay() {
    let site = Site::single().await;
    let template = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst";
    let create = [("vmid", "200"), ("ostemplate", template), ("rootfs", "local:1")];
    assert_eq!(site.task("POST", "/nodes/pve/lxc", &create).await, "OK");
    for _ in 0..3 {
        let exit = site.task("POST", "/nodes/pve/vzdump", &[("vmid", "200"), ("storage", "local")]).await;
        assert_eq!(exit, "OK");
    }
    let list = async || {
        let rows = site.call("GET", CONTENT, &[("content", "backup")]).await;
        let mut found = names(rows.data(), "volid");
        found.sort();
        found
    };
    let all = list().await;
    assert_eq!(all.len(), 3);
    let oldest = format!("{CONTENT}/{}", all[0]);
    site.put(&oldest, &[("protected", "1"), ("notes", "keep me")]).await.data();
    assert!(site.task("DELETE", &oldest, &[]).await.starts_with("cannot remove protected volume"));
    let prune = "/nodes/pve/storage/local/prunebackups";
    let preview = site.call("GET", prune, &[("prune-backups", "keep-last=1")]).await;
    let marks = names(preview.data(), "mark");
    assert_eq!(marks.iter().filter(|mark| *mark == "remove").count(), 1, "{marks:?}");
    assert_eq!(site.task("DELETE", prune, &[("prune-backups", "keep-last=1")]).await, "OK");
    assert_eq!(list().await, [all[0].clone(), all[2].clone()]);
}
