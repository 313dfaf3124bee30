//! High availability acts by itself, some time after it was asked to; so does what starts a VM after a reboot.

use std::time::Duration;

use serde_json::{Value, json};
use strata_sim::{Pace, SimOptions};

use crate::client::{Site, TOKEN};

const VM: &str = "/nodes/pve1/qemu/100";

async fn site(pace: Pace) -> Site {
    let site = Site::start(SimOptions { token: Some(TOKEN.to_owned()), pace, ..SimOptions::default() }).await;
    let iso =
        json!({"volume": {"volid": "local:iso/a.iso", "node": "pve1", "size": 1_048_576, "content": "iso"}});
    site.control("POST", "/_sim/change", iso).await;
    let vm =
        [("vmid", "100"), ("scsi0", "tank:1"), ("ide2", "local:iso/a.iso,media=cdrom"), ("memory", "512")];
    assert_eq!(site.task("POST", "/nodes/pve1/qemu", &vm).await, "OK");
    site
}

/// Looks until something is so.
async fn until(site: &Site, path: &str, what: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..2000 {
        let answer = site.get(path).await;
        if what(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} never became so: {}", site.get(path).await);
}

/// Types and users of the tasks of a node, newest first.
async fn tasks(site: &Site, node: &str) -> Vec<String> {
    let rows = site.call("GET", &format!("/nodes/{node}/tasks"), &[("source", "all")]).await.data().clone();
    let row = |row: &Value| format!("{} {}", row["type"].as_str().unwrap(), row["user"].as_str().unwrap());
    rows.as_array().unwrap().iter().map(row).collect()
}

#[tokio::test]
async fn a_managed_vm_follows_what_was_asked_for() {
    let site = site(Pace::FAST).await;
    let current = format!("{VM}/status/current");
    assert_eq!(
        site.post("/cluster/ha/resources", &[("sid", "vm:100"), ("state", "stopped")]).await.status,
        200
    );
    until(&site, &current, |status| status["ha"]["state"] == "stopped").await;
    let started = site.post(&format!("{VM}/status/start"), &[]).await;
    assert!(started.text().contains(":hastart:100:"), "{started:?}");
    assert_eq!(site.wait(started.text()).await, "OK");
    assert_eq!(site.get("/cluster/ha/resources/vm:100").await["state"], "started");
    until(&site, &current, |status| status["status"] == "running").await;
    assert!(tasks(&site, "pve1").await.contains(&"qmstart root@pam".to_owned()));
    let refused = site.delete(VM, &[("purge", "1")]).await;
    assert_eq!(refused.reason, "VM 100 is running - destroy failed");
    // It moves when it is asked to, and only then is it elsewhere.
    let params = [("target", "pve2"), ("online", "1")];
    site.control(
        "POST",
        "/_sim/change",
        json!({"path": format!("{VM}/config"), "params": {"ide2": "none,media=cdrom"}}),
    )
    .await;
    let moved = site.post(&format!("{VM}/migrate"), &params).await;
    assert!(moved.text().contains(":hamigrate:100:"), "{moved:?}");
    assert_eq!(site.wait(moved.text()).await, "OK");
    let there = "/nodes/pve2/qemu/100/status/current";
    let guests = "/cluster/resources?type=vm";
    until(&site, guests, |rows| rows.as_array().unwrap().iter().any(|row| row["node"] == "pve2")).await;
    until(&site, there, |status| status["ha"]["state"] == "started" && status["status"] == "running").await;
    let stopped = site.post("/nodes/pve2/qemu/100/status/stop", &[]).await;
    assert!(stopped.text().contains(":hastop:100:"), "{stopped:?}");
    assert_eq!(site.wait(stopped.text()).await, "OK");
    until(&site, there, |status| status["status"] == "stopped" && status["ha"]["state"] == "stopped").await;
    assert_eq!(site.get("/cluster/ha/resources/vm:100").await["state"], "stopped");
    assert!(tasks(&site, "pve2").await.contains(&"qmstop root@pam".to_owned()));
}

#[tokio::test]
async fn a_managed_vm_that_does_not_start_is_given_up() {
    let site = site(Pace::FAST).await;
    let current = format!("{VM}/status/current");
    site.fault(json!({"kind": "fail-task", "path": "/tasks/qmstart/100", "count": 0, "text": "no way"}))
        .await;
    site.post("/cluster/ha/resources", &[("sid", "vm:100")]).await;
    until(&site, &current, |status| status["ha"]["state"] == "error").await;
    let again = site.put("/cluster/ha/resources/vm:100", &[("state", "started")]).await;
    assert_eq!(again.reason, "service 'vm:100' in error state, must be disabled and fixed first");
    assert_eq!(site.put("/cluster/ha/resources/vm:100", &[("state", "disabled")]).await.status, 200);
    until(&site, &current, |status| status["ha"]["state"] == "stopped").await;
}

#[tokio::test]
async fn a_reboot_ends_when_the_vm_is_off() {
    let site = site(Pace::INSTANT).await;
    let (current, reboot) = (format!("{VM}/status/current"), format!("{VM}/status/reboot"));
    assert_eq!(site.task("POST", &format!("{VM}/status/start"), &[]).await, "OK");
    let before = site.get(&current).await;
    site.put(&format!("{VM}/config"), &[("memory", "1024")]).await;
    assert_eq!(site.task("POST", &reboot, &[]).await, "OK");
    let after = until(&site, &current, |status| status["status"] == "running").await;
    assert_ne!(before["pid"], after["pid"]);
    assert_eq!(tasks(&site, "pve1").await[0], "qmstart root@pam");
    assert_eq!(site.get(&format!("{VM}/config")).await["memory"], "1024");
    // The start that follows may fail, and the reboot has ended well all the same.
    let text = "start failed: QEMU exited with code 1";
    site.fault(json!({"kind": "fail-task", "path": "/tasks/qmstart/*", "user": "root@pam", "text": text}))
        .await;
    assert_eq!(site.task("POST", &reboot, &[]).await, "OK");
    until(&site, &current, |status| status["status"] == "stopped").await;
}

#[tokio::test]
async fn a_stop_brings_pending_changes_into_effect() {
    let site = site(Pace::INSTANT).await;
    assert_eq!(site.task("POST", &format!("{VM}/status/start"), &[]).await, "OK");
    let config = format!("{VM}/config");
    site.control("POST", "/_sim/change", json!({"path": config, "params": {"ide2": "none,media=cdrom"}}))
        .await;
    site.put(&config, &[("scsihw", "virtio-scsi-single"), ("memory", "1024")]).await;
    let unplug = site.put(&config, &[("delete", "scsi0")]).await;
    assert!(matches!(unplug.status, 200 | 400), "{unplug:?}");
    assert_eq!(site.task("POST", &format!("{VM}/status/stop"), &[]).await, "OK");
    let now = site.get(&config).await;
    assert_eq!(now["memory"], "1024");
    assert!(now["scsi0"].is_null() && now["unused0"].is_string(), "{now}");
}

#[tokio::test]
async fn a_purge_takes_the_guest_out_of_jobs_and_rules() {
    let site = site(Pace::INSTANT).await;
    assert_eq!(site.task("POST", "/nodes/pve1/qemu", &[("vmid", "101")]).await, "OK");
    let job = |id, key, list| [("id", id), ("schedule", "03:00"), ("storage", "local"), (key, list)];
    site.post("/cluster/backup", &job("both", "vmid", "100,101")).await.data();
    site.post("/cluster/backup", &job("only", "vmid", "100")).await.data();
    let all = [("id", "all"), ("schedule", "03:00"), ("storage", "local"), ("all", "1"), ("exclude", "100")];
    site.post("/cluster/backup", &all).await.data();
    site.post("/cluster/ha/resources", &[("sid", "vm:100"), ("state", "stopped")]).await.data();
    let rule = [("rule", "here"), ("type", "node-affinity"), ("resources", "vm:100"), ("nodes", "pve1")];
    site.post("/cluster/ha/rules", &rule).await.data();
    let refused = site.delete(VM, &[]).await;
    assert_eq!(refused.reason, "unable to remove VM 100 - used in HA resources and purge parameter not set.");
    assert_eq!(site.task("DELETE", VM, &[("purge", "1")]).await, "OK");
    let jobs = site.get("/cluster/backup").await;
    let shown: Vec<(&str, &str)> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["id"].as_str().unwrap(), job["vmid"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(shown, [("both", "101"), ("all", "-")]);
    assert!(jobs[1]["exclude"].is_null(), "{jobs}");
    assert_eq!(site.get("/cluster/ha/resources").await, json!([]));
    assert_eq!(site.get("/cluster/ha/rules").await, json!([]));
}

#[tokio::test]
async fn a_missing_vm_is_named_where_only_its_process_is_looked_for() {
    let site = site(Pace::INSTANT).await;
    let text = "unable to find configuration file for VM 999 on node 'pve1'";
    for verb in ["stop", "shutdown"] {
        assert_eq!(site.task("POST", &format!("/nodes/pve1/qemu/999/status/{verb}"), &[]).await, text);
    }
    assert_eq!(site.post("/nodes/pve1/qemu/999/status/reboot", &[]).await.reason, text);
    assert_eq!(site.post("/nodes/pve1/qemu/999/clone", &[("newid", "200")]).await.reason, text);
}

#[tokio::test]
async fn a_machine_that_qemu_does_not_know_cannot_start() {
    let site = site(Pace::INSTANT).await;
    site.put(&format!("{VM}/config"), &[("machine", "pc-q35-99.0")]).await.data();
    let exit = site.task("POST", &format!("{VM}/status/start"), &[]).await;
    assert!(exit.contains("is too old to run machine type 'pc-q35-99.0'"), "{exit}");
}
