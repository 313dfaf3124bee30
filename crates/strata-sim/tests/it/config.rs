//! Configurations: digests, pending values, what is normalised.

use crate::client::Site;

async fn vm(params: &[(&str, &str)]) -> Site {
    let site = Site::single().await;
    let all: Vec<(&str, &str)> = [("vmid", "100")].into_iter().chain(params.iter().copied()).collect();
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &all).await, "OK");
    site
}

const CONFIG: &str = "/nodes/pve/qemu/100/config";

#[tokio::test]
async fn a_stale_digest_is_refused() {
    let site = vm(&[]).await;
    let digest = site.get(CONFIG).await["digest"].as_str().unwrap().to_owned();
    assert_eq!(site.put(CONFIG, &[("memory", "256"), ("digest", &digest)]).await.status, 200);
    let stale = site.put(CONFIG, &[("memory", "512"), ("digest", &digest)]).await;
    assert_eq!(stale.reason, "checksum mismatch (file change by other user?)");
    assert_eq!(site.get(CONFIG).await["memory"], "256");
}

#[tokio::test]
async fn tags_are_normalised_and_an_empty_list_is_a_space() {
    let site = vm(&[("tags", "Zeta;alpha")]).await;
    site.put(CONFIG, &[("tags", "B a,c;a")]).await;
    assert_eq!(site.get(CONFIG).await["tags"], "a;b;c");
    site.put(CONFIG, &[("tags", ""), ("description", "")]).await;
    let config = site.get(CONFIG).await;
    assert_eq!(config["tags"], " ");
    assert!(config.get("description").is_none());
}

#[tokio::test]
async fn a_running_vm_keeps_what_cannot_change_until_the_next_start() {
    let site = vm(&[("memory", "64"), ("scsi0", "local:1")]).await;
    site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    site.put(CONFIG, &[("memory", "128"), ("cores", "2"), ("name", "new")]).await;
    assert_eq!(site.get(CONFIG).await["memory"], "128");
    let current = site.call("GET", CONFIG, &[("current", "1")]).await;
    assert_eq!((&current.data()["memory"], &current.data()["name"]), (&"64".into(), &"new".into()));
    let pending = site.get("/nodes/pve/qemu/100/pending").await;
    let row = |key: &str| pending.as_array().unwrap().iter().find(|r| r["key"] == key).cloned().unwrap();
    assert_eq!(row("memory"), serde_json::json!({ "key": "memory", "value": "64", "pending": "128" }));
    assert_eq!(row("cores"), serde_json::json!({ "key": "cores", "pending": 2 }));
    site.put(CONFIG, &[("revert", "cores"), ("delete", "scsihw")]).await;
    site.task("POST", "/nodes/pve/qemu/100/status/stop", &[]).await;
    site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    let config = site.call("GET", CONFIG, &[("current", "1")]).await;
    assert_eq!(config.data()["memory"], "128");
    assert!(config.data().get("cores").is_none());
}

#[tokio::test]
async fn an_empty_vm_does_not_let_go_of_its_card_but_one_with_a_system_does() {
    let site = vm(&[("net0", "virtio,bridge=vmbr0"), ("scsi0", "local:1")]).await;
    site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    let busy = site.put(CONFIG, &[("delete", "net0")]).await;
    assert_eq!(
        busy.error("net0"),
        "hotplug problem - error on hot-unplugging device 'net0' - still busy in guest?\n"
    );
    site.task("POST", "/nodes/pve/qemu/100/status/stop", &[]).await;
    site.put(CONFIG, &[("revert", "net0")]).await;
    site.put(CONFIG, &[("ide2", "local:iso/test.iso,media=cdrom")]).await;
    site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    assert_eq!(site.put(CONFIG, &[("delete", "net0")]).await.status, 200);
    assert!(site.get(CONFIG).await.get("net0").is_none());
}

#[tokio::test]
async fn a_detached_disk_becomes_unused_and_deleting_that_frees_it() {
    let site = vm(&[("scsi0", "local:1")]).await;
    site.put(CONFIG, &[("scsi1", "local:1,format=qcow2")]).await;
    site.put(CONFIG, &[("delete", "scsi1")]).await;
    assert_eq!(site.get(CONFIG).await["unused0"], "local:100/vm-100-disk-1.qcow2");
    site.put(CONFIG, &[("delete", "unused0")]).await;
    assert!(site.get(CONFIG).await.get("unused0").is_none());
    assert!(!site.export().await["volumes"].to_string().contains("vm-100-disk-1"));
}

#[tokio::test]
async fn a_lock_stops_changes_and_only_root_sets_or_skips_it() {
    let site = vm(&[]).await;
    let lock = serde_json::json!({ "edit": { "vmid": 100, "set": { "lock": "backup" } } });
    site.control("POST", "/_sim/change", lock).await;
    assert_eq!(site.put(CONFIG, &[("memory", "64")]).await.reason, "VM is locked (backup)");
    let skip = site.put(CONFIG, &[("memory", "64"), ("skiplock", "1")]).await;
    assert_eq!(skip.error("skiplock"), "Only root may use this option.");
    let start = site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    assert_eq!(start, "VM is locked (backup)");
}

#[tokio::test]
async fn disks_grow_and_never_shrink() {
    let site = vm(&[("scsi0", "local:2")]).await;
    let resize = "/nodes/pve/qemu/100/resize";
    assert_eq!(site.task("PUT", resize, &[("disk", "scsi0"), ("size", "+1G")]).await, "OK");
    let shrink = site.task("PUT", resize, &[("disk", "scsi0"), ("size", "1G")]).await;
    assert_eq!(shrink, "shrinking disks is not supported");
    assert_eq!(site.get(CONFIG).await["scsi0"], "local:100/vm-100-disk-0.raw,size=3G");
}
