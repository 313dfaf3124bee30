//! Power: who reacts, who has to be stopped, and what that takes.

use crate::client::Site;

async fn vm(params: &[(&str, &str)]) -> Site {
    let site = Site::single().await;
    let all: Vec<(&str, &str)> = [("vmid", "100")].into_iter().chain(params.iter().copied()).collect();
    assert_eq!(site.task("POST", "/nodes/pve/qemu", &all).await, "OK");
    site
}

async fn power(site: &Site, verb: &str, params: &[(&str, &str)]) -> String {
    site.task("POST", &format!("/nodes/pve/qemu/100/status/{verb}"), params).await
}

#[tokio::test]
async fn starting_twice_and_stopping_twice() {
    let site = vm(&[]).await;
    assert_eq!(power(&site, "start", &[]).await, "OK");
    assert_eq!(power(&site, "start", &[]).await, "VM 100 already running");
    assert_eq!(site.get("/nodes/pve/qemu/100/status/current").await["status"], "running");
    assert_eq!(site.delete("/nodes/pve/qemu/100", &[]).await.reason, "VM 100 is running - destroy failed");
    assert_eq!(power(&site, "stop", &[]).await, "OK");
    assert_eq!(power(&site, "stop", &[]).await, "OK");
    let reset = site.post("/nodes/pve/qemu/100/status/reset", &[]).await;
    assert_eq!(reset.reason, "VM 100 not running");
}

#[tokio::test]
async fn only_a_vm_with_a_system_shuts_down_when_asked() {
    let empty = vm(&[("scsi0", "local:1")]).await;
    power(&empty, "start", &[]).await;
    let timeout = power(&empty, "shutdown", &[("timeout", "2")]).await;
    assert_eq!(timeout, "VM quit/powerdown failed - got timeout");
    assert_eq!(power(&empty, "shutdown", &[("timeout", "2"), ("forceStop", "1")]).await, "OK");
    let booted = vm(&[("ide2", "local:iso/test.iso,media=cdrom")]).await;
    power(&booted, "start", &[]).await;
    assert_eq!(power(&booted, "shutdown", &[("timeout", "2")]).await, "OK");
    assert_eq!(booted.get("/nodes/pve/qemu/100/status/current").await["status"], "stopped");
}

#[tokio::test]
async fn starting_fails_in_the_task_for_what_is_missing() {
    let site = vm(&[("net0", "virtio,bridge=vmbr9")]).await;
    assert_eq!(power(&site, "start", &[]).await, "start failed: QEMU exited with code 1");
    let unknown = site.task("POST", "/nodes/pve/qemu/999/status/start", &[]).await;
    assert_eq!(unknown, "Configuration file 'nodes/pve/qemu-server/999.conf' does not exist");
}

#[tokio::test]
async fn the_agent_answers_for_a_running_vm_with_a_system() {
    let iso = ("ide2", "local:iso/test.iso,media=cdrom");
    let site =
        vm(&[iso, ("agent", "1"), ("net0", "virtio,bridge=vmbr0"), ("ipconfig0", "ip=192.0.2.50/24")]).await;
    let interfaces = "/nodes/pve/qemu/100/agent/network-get-interfaces";
    assert_eq!(site.call("GET", interfaces, &[]).await.reason, "VM 100 is not running");
    power(&site, "start", &[]).await;
    let list = site.get(interfaces).await["result"].clone();
    assert_eq!(list[2]["ip-addresses"][1]["ip-address"], "192.0.2.50", "after the bridge inside: {list}");
}
