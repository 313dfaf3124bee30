//! Containers, from their creation to their end.

use serde_json::json;

use crate::client::Site;

const TEMPLATE: &str = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst";

/// Container 200 on pve1, on thin volumes.
async fn container() -> Site {
    let site = Site::cluster().await;
    let params = [
        ("vmid", "200"),
        ("ostemplate", TEMPLATE),
        ("rootfs", "local-lvm:4"),
        ("hostname", "web"),
        ("memory", "256"),
        ("unprivileged", "1"),
        ("net0", "name=eth0,bridge=vmbr0,ip=192.0.2.60/24,gw=192.0.2.1"),
    ];
    assert_eq!(site.task("POST", "/nodes/pve1/lxc", &params).await, "OK");
    site
}

const CT: &str = "/nodes/pve1/lxc/200";

fn at(path: &str) -> String {
    format!("{CT}{path}")
}

#[tokio::test]
async fn a_container_gets_its_volume_its_type_and_its_address() {
    let site = container().await;
    let config = site.get(&at("/config")).await;
    assert_eq!(config["rootfs"], "local-lvm:vm-200-disk-0,size=4G");
    assert_eq!((&config["ostype"], &config["arch"]), (&json!("debian"), &json!("amd64")));
    assert_eq!((&config["memory"], &config["swap"]), (&json!(256), &json!(512)));
    let net = config["net0"].as_str().unwrap();
    assert!(net.contains("hwaddr=BC:24:11:") && net.ends_with("type=veth"), "{net}");
    assert_eq!(site.task("POST", &at("/status/start"), &[]).await, "OK");
    let interfaces = site.get(&at("/interfaces")).await;
    assert!(interfaces.to_string().contains("192.0.2.60"), "{interfaces}");
}

#[tokio::test]
async fn a_create_that_fails_leaves_nothing() {
    let site = Site::cluster().await;
    let before = site.export().await;
    let params = [
        ("vmid", "200"),
        ("ostemplate", TEMPLATE),
        ("rootfs", "local-lvm:4"),
        ("mp0", "local-lvm:900,mp=/data"),
    ];
    let exit = site.task("POST", "/nodes/pve1/lxc", &params).await;
    assert!(exit.starts_with("unable to create CT 200 - "), "{exit}");
    assert_eq!(site.export().await, before);
    let missing = [("vmid", "200"), ("ostemplate", "local:vztmpl/nope.tar.zst"), ("rootfs", "local-lvm:1")];
    let exit = site.task("POST", "/nodes/pve1/lxc", &missing).await;
    assert!(exit.contains("'local:vztmpl/nope.tar.zst' does not exist"), "{exit}");
    let image = [("vmid", "200"), ("ostemplate", TEMPLATE), ("rootfs", "local:4")];
    let refused = site.post("/nodes/pve1/lxc", &image).await;
    assert_eq!(refused.error("storage"), "storage 'local' does not support container directories");
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn changes_of_a_running_container_apply_or_wait() {
    let site = container().await;
    site.task("POST", &at("/status/start"), &[]).await;
    site.put(&at("/config"), &[("memory", "512"), ("features", "nesting=1")]).await.data();
    let config = site.get(&at("/config")).await;
    assert_eq!((&config["memory"], &config["features"]), (&json!(512), &json!("nesting=1")));
    let current = site.call("GET", &at("/config"), &[("current", "1")]).await;
    assert_eq!(current.data().get("features"), None);
    let pending = site.get(&at("/pending")).await;
    let features = pending.as_array().unwrap().iter().find(|row| row["key"] == "features").unwrap();
    assert_eq!(features, &json!({ "key": "features", "pending": "nesting=1" }));
    assert_eq!(site.task("POST", &at("/status/reboot"), &[]).await, "OK");
    let pending = site.get(&at("/pending")).await;
    let features = pending.as_array().unwrap().iter().find(|row| row["key"] == "features").unwrap();
    assert_eq!(features, &json!({ "key": "features", "value": "nesting=1" }));
}

#[tokio::test]
async fn a_detached_volume_is_unused_until_it_is_deleted() {
    let site = container().await;
    site.put(&at("/config"), &[("mp0", "local-lvm:1,mp=/data,backup=1")]).await.data();
    site.put(&at("/config"), &[("delete", "mp0")]).await.data();
    let config = site.get(&at("/config")).await;
    assert_eq!(config["unused0"], "local-lvm:vm-200-disk-1");
    site.put(&at("/config"), &[("delete", "unused0")]).await.data();
    assert!(!site.export().await["volumes"].to_string().contains("vm-200-disk-1"));
    let gone = site.put(&at("/config"), &[("digest", "00"), ("memory", "64")]).await;
    assert!(gone.status >= 400, "{gone:?}");
}

#[tokio::test]
async fn a_volume_grows_and_never_shrinks() {
    let site = container().await;
    assert_eq!(site.task("PUT", &at("/resize"), &[("disk", "rootfs"), ("size", "+1G")]).await, "OK");
    assert_eq!(site.get(&at("/config")).await["rootfs"], "local-lvm:vm-200-disk-0,size=5G");
    let smaller = site.put(&at("/resize"), &[("disk", "rootfs"), ("size", "2G")]).await;
    assert_eq!(smaller.reason, "unable to shrink disk size");
}

#[tokio::test]
async fn a_snapshot_brings_back_what_was() {
    let site = container().await;
    let snapshot = [("snapname", "before"), ("description", "as it was")];
    assert_eq!(site.task("POST", &at("/snapshot"), &snapshot).await, "OK");
    site.put(&at("/config"), &[("memory", "1024")]).await.data();
    let list = site.get(&at("/snapshot")).await;
    assert_eq!(list[0]["name"], "before");
    assert_eq!(list[1]["parent"], "before");
    let exit = site.task("POST", &at("/snapshot/before/rollback"), &[]).await;
    assert_eq!(exit, "OK");
    assert_eq!(site.get(&at("/config")).await["memory"], 256);
    assert_eq!(site.task("DELETE", &at("/snapshot/before"), &[]).await, "OK");
    assert_eq!(site.get(&at("/snapshot")).await.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_template_is_cloned_linked_and_stays_while_clones_need_it() {
    let site = container().await;
    site.post(&at("/template"), &[]).await.data();
    let config = site.get(&at("/config")).await;
    assert_eq!(
        (&config["template"], &config["rootfs"]),
        (&json!(1), &json!("local-lvm:base-200-disk-0,size=4G"))
    );
    let linked = [("newid", "201"), ("hostname", "copy")];
    assert_eq!(site.task("POST", &at("/clone"), &linked).await, "OK");
    let full = [("newid", "202"), ("full", "1"), ("storage", "tank")];
    assert_eq!(site.task("POST", &at("/clone"), &full).await, "OK");
    let copy = site.get("/nodes/pve1/lxc/201/config").await;
    assert_eq!(copy["hostname"], "copy");
    assert_ne!(copy["net0"], config["net0"]);
    assert_eq!(site.get("/nodes/pve1/lxc/202/config").await["rootfs"], "tank:202/vm-202-disk-0.raw,size=4G");
    assert_ne!(site.task("DELETE", CT, &[]).await, "OK");
    assert_eq!(site.task("DELETE", "/nodes/pve1/lxc/201", &[]).await, "OK");
    assert_eq!(site.task("DELETE", CT, &[]).await, "OK");
}

#[tokio::test]
async fn a_volume_moves_between_storages() {
    let site = container().await;
    let order = [("volume", "rootfs"), ("storage", "tank"), ("delete", "1")];
    assert_eq!(site.task("POST", &at("/move_volume"), &order).await, "OK");
    assert_eq!(site.get(&at("/config")).await["rootfs"], "tank:200/vm-200-disk-0.raw,size=4G");
    assert!(!site.export().await["volumes"].to_string().contains("local-lvm"));
}

#[tokio::test]
async fn a_container_migrates_and_restarts_there() {
    let site = container().await;
    site.task("POST", &at("/status/start"), &[]).await;
    let running = site.post(&at("/migrate"), &[("target", "pve2")]).await;
    assert_eq!(running.reason, "can't migrate running container without --online or --restart");
    let restart = [("target", "pve2"), ("restart", "1")];
    assert_eq!(site.task("POST", &at("/migrate"), &restart).await, "OK");
    let status = site.get("/nodes/pve2/lxc/200/status/current").await;
    assert_eq!(status["status"], "running");
    assert_eq!(site.call("GET", &at("/config"), &[]).await.status, 500);
}

#[tokio::test]
async fn a_protected_or_running_container_is_not_destroyed() {
    let site = container().await;
    site.put(&at("/config"), &[("protection", "1")]).await.data();
    let refused = site.delete(CT, &[]).await;
    assert_eq!(refused.reason, "can't remove CT 200 - protection mode enabled");
    site.put(&at("/config"), &[("protection", "0")]).await.data();
    site.task("POST", &at("/status/start"), &[]).await;
    assert_eq!(site.delete(CT, &[]).await.reason, "unable to destroy CT 200 - container is running");
    assert_eq!(site.task("DELETE", CT, &[("force", "1")]).await, "OK");
    assert!(!site.export().await.to_string().contains("vm-200-"));
}

#[tokio::test]
async fn a_restored_backup_has_the_configuration_it_was_made_with() {
    let site = container().await;
    let order = [("vmid", "200"), ("storage", "local"), ("compress", "zstd"), ("mode", "stop")];
    assert_eq!(site.task("POST", "/nodes/pve1/vzdump", &order).await, "OK");
    site.put(&at("/config"), &[("hostname", "changed")]).await.data();
    let list = site.call("GET", "/nodes/pve1/storage/local/content", &[("content", "backup")]).await;
    let archive = list.data()[0]["volid"].as_str().unwrap();
    let restore = [
        ("vmid", "200"),
        ("ostemplate", archive),
        ("restore", "1"),
        ("force", "1"),
        ("storage", "local-lvm"),
    ];
    assert_eq!(site.task("POST", "/nodes/pve1/lxc", &restore).await, "OK");
    let config = site.get(&at("/config")).await;
    assert_eq!(config["hostname"], "web");
    // The old volume goes when the new one is there.
    assert_eq!(config["rootfs"], "local-lvm:vm-200-disk-1,size=4G");
    assert!(!site.export().await["volumes"].to_string().contains("vm-200-disk-0"));
}
