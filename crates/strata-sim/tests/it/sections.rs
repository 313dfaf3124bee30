//! What the datacenter keeps in its configuration files: mappings, high availability, jobs, metrics, notifications,
//! certificates, options.

use serde_json::json;

use crate::client::Site;

/// Makes an object, changes it, takes it away; nothing of it stays.
async fn round(
    site: &Site,
    list: &str,
    id: &str,
    create: &[(&str, &str)],
    change: &[(&str, &str)],
    seen: (&str, serde_json::Value),
) {
    let before = site.export().await;
    let one = format!("{list}/{id}");
    site.post(list, create).await.data();
    assert!(site.post(list, create).await.status >= 400, "{one} twice");
    site.put(&one, change).await.data();
    assert_eq!(site.get(&one).await[seen.0], seen.1, "{one}");
    assert_ne!(site.export().await, before, "{one} is not exported");
    site.delete(&one, &[]).await.data();
    assert!(site.call("GET", &one, &[]).await.status >= 400, "{one} after its end");
    assert_eq!(site.export().await, before, "{one} left something");
}

#[tokio::test]
async fn objects_of_the_datacenter_come_change_and_go() {
    let site = Site::cluster().await;
    site.task("POST", "/nodes/pve1/qemu", &[("vmid", "100"), ("scsi0", "tank:1")]).await;
    let pci = "node=pve1,path=0000:01:00.0,id=10de:1c03";
    round(
        &site,
        "/cluster/mapping/pci",
        "gpu",
        &[("id", "gpu"), ("map", pci)],
        &[("description", "card"), ("map", pci)],
        ("description", json!("card")),
    )
    .await;
    round(
        &site,
        "/cluster/ha/resources",
        "vm:100",
        &[("sid", "vm:100"), ("state", "stopped")],
        &[("max_restart", "3")],
        ("max_restart", json!(3)),
    )
    .await;
    round(
        &site,
        "/cluster/backup",
        "nightly",
        &[("id", "nightly"), ("schedule", "02:30"), ("storage", "local"), ("vmid", "100")],
        &[("schedule", "sun 01:00"), ("enabled", "0")],
        ("schedule", json!("sun 01:00")),
    )
    .await;
    round(
        &site,
        "/cluster/notifications/endpoints/gotify",
        "phone",
        &[("name", "phone"), ("server", "http://192.0.2.8"), ("token", "secret")],
        &[("comment", "ring")],
        ("comment", json!("ring")),
    )
    .await;
    round(
        &site,
        "/cluster/acme/plugins",
        "dns",
        &[("id", "dns"), ("type", "dns"), ("api", "cf")],
        &[("validation-delay", "60")],
        ("validation-delay", json!(60)),
    )
    .await;
}

#[tokio::test]
async fn a_metric_server_comes_and_goes() {
    let site = Site::single().await;
    let before = site.export().await;
    let server = "/cluster/metrics/server/graf";
    let params = [("type", "graphite"), ("server", "192.0.2.9"), ("port", "2003")];
    site.post(server, &params).await.data();
    assert_eq!(site.get(server).await["port"], 2003);
    site.delete(server, &[]).await.data();
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn options_of_the_datacenter_are_set_and_forgotten() {
    let site = Site::cluster().await;
    let before = site.export().await;
    let params = [("keyboard", "de"), ("description", "hello"), ("migration", "type=insecure")];
    site.put("/cluster/options", &params).await.data();
    let options = site.get("/cluster/options").await;
    assert_eq!((&options["keyboard"], &options["migration"]), (&json!("de"), &json!({ "type": "insecure" })));
    site.put("/cluster/options", &[("delete", "keyboard,description,migration")]).await.data();
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn a_guest_that_is_purged_leaves_its_jobs_and_its_availability() {
    let site = Site::cluster().await;
    for vmid in ["100", "101"] {
        site.task("POST", "/nodes/pve1/qemu", &[("vmid", vmid), ("scsi0", "tank:1")]).await;
    }
    site.post("/cluster/ha/resources", &[("sid", "vm:100"), ("state", "stopped")]).await.data();
    let job = [("id", "nightly"), ("schedule", "02:30"), ("storage", "local"), ("vmid", "100,101")];
    site.post("/cluster/backup", &job).await.data();
    let kept = site.delete("/nodes/pve1/qemu/100", &[]).await;
    assert!(kept.reason.contains("used in HA resources and purge parameter not set"), "{kept:?}");
    assert_eq!(site.task("DELETE", "/nodes/pve1/qemu/100", &[("purge", "1")]).await, "OK");
    assert_eq!(site.get("/cluster/ha/resources").await, json!([]));
    assert_eq!(site.get("/cluster/backup/nightly").await["vmid"], "101");
}
