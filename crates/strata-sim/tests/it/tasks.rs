//! Tasks: status, logs, locks, stopping.

use std::time::Duration;

use strata_sim::Pace;

use crate::client::Site;

#[tokio::test]
async fn a_task_says_who_and_what_and_how_it_ended() {
    let site = Site::single().await;
    let upid = site.post("/nodes/pve/qemu", &[("vmid", "100")]).await.text().to_owned();
    assert!(upid.starts_with("UPID:pve:") && upid.ends_with(":qmcreate:100:root@pam!test:"), "{upid}");
    let status = site.get(&format!("/nodes/pve/tasks/{upid}/status")).await;
    assert_eq!((&status["user"], &status["tokenid"]), (&"root@pam".into(), &"test".into()));
    assert_eq!((&status["status"], &status["exitstatus"]), (&"stopped".into(), &"OK".into()));
    let log = site.get(&format!("/nodes/pve/tasks/{upid}/log")).await;
    assert_eq!(log, serde_json::json!([{ "n": 1, "t": "TASK OK" }]));
    let bad = site.call("GET", "/nodes/pve/tasks/foo/status", &[]).await;
    assert_eq!(bad.error("upid"), "unable to parse worker upid");
}

#[tokio::test]
async fn a_running_task_has_no_exit_status() {
    let site = Site::single_at(Pace::REAL).await;
    let upid = site.post("/nodes/pve/qemu", &[("vmid", "100")]).await.text().to_owned();
    let status = site.get(&format!("/nodes/pve/tasks/{upid}/status")).await;
    assert_eq!(status["status"], "running");
    assert!(status.get("exitstatus").is_none());
    let active = site.call("GET", "/nodes/pve/tasks", &[("source", "active")]).await;
    assert_eq!(active.data()[0]["upid"], upid.as_str());
}

#[tokio::test]
async fn a_task_that_holds_the_vm_keeps_others_waiting_until_they_give_up() {
    let site = Site::single_at("0.01".parse().unwrap()).await;
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &[("vmid", "100")]).await, "OK");
    site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    // An empty VM never reacts, so this holds the lock for longer than anyone waits.
    let long =
        site.post("/nodes/pve/qemu/100/status/shutdown", &[("timeout", "3000")]).await.text().to_owned();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let busy = site.put("/nodes/pve/qemu/100/config", &[("memory", "96")]).await;
    assert_eq!(busy.reason, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout");
    site.delete(&format!("/nodes/pve/tasks/{long}"), &[]).await;
    assert_eq!(site.wait(&long).await, "received interrupt");
    assert_eq!(site.put("/nodes/pve/qemu/100/config", &[("memory", "96")]).await.status, 200);
}

#[tokio::test]
async fn many_requests_at_once_each_get_their_own_answer() {
    let site = std::sync::Arc::new(Site::single_at(Pace::FAST).await);
    let calls = (100..140).map(|vmid| {
        let site = std::sync::Arc::clone(&site);
        tokio::spawn(async move {
            let id = vmid.to_string();
            let name = format!("vm{vmid}");
            let params = [("vmid", id.as_str()), ("name", name.as_str()), ("scsi0", "local:1")];
            assert_eq!(site.task("POST", "/nodes/pve/qemu", &params).await, "OK");
            let config = site.get(&format!("/nodes/pve/qemu/{vmid}/config")).await;
            assert_eq!(config["name"], name.as_str());
            assert_eq!(config["scsi0"], format!("local:{vmid}/vm-{vmid}-disk-0.raw,size=1G"));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(site.get("/nodes/pve/qemu").await.as_array().unwrap().len(), 40);
}
