//! Networks of nodes and of the datacenter.

use serde_json::json;

use crate::client::Site;

const NETWORK: &str = "/nodes/pve/network";

#[tokio::test]
async fn changes_of_a_nodes_network_wait_until_they_are_applied() {
    let site = Site::single().await;
    let before = site.export().await;
    let bridge = [("iface", "vmbr9"), ("type", "bridge"), ("cidr", "198.51.100.1/24"), ("autostart", "1")];
    site.post(NETWORK, &bridge).await.data();
    let list = site.call("GET", NETWORK, &[]).await;
    assert!(list.body["changes"].as_str().unwrap().contains("+iface vmbr9 inet static"), "{list:?}");
    let staged = site.get("/nodes/pve/network/vmbr9").await;
    assert_eq!((&staged["address"], &staged["netmask"]), (&json!("198.51.100.1"), &json!("24")));
    site.task("POST", "/nodes/pve/qemu", &[("vmid", "100"), ("net0", "virtio,bridge=vmbr9")]).await;
    let start = site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await;
    assert_eq!(start, "start failed: QEMU exited with code 1");

    assert_eq!(site.task("PUT", NETWORK, &[]).await, "OK");
    assert_eq!(site.call("GET", NETWORK, &[]).await.body.get("changes"), None);
    assert_eq!(site.task("POST", "/nodes/pve/qemu/100/status/start", &[]).await, "OK");
    site.task("POST", "/nodes/pve/qemu/100/status/stop", &[]).await;
    site.task("DELETE", "/nodes/pve/qemu/100", &[]).await;

    site.delete("/nodes/pve/network/vmbr9", &[]).await.data();
    assert_eq!(site.task("PUT", NETWORK, &[]).await, "OK");
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn staged_changes_can_be_dropped() {
    let site = Site::single().await;
    let before = site.export().await;
    site.put("/nodes/pve/network/vmbr0", &[("type", "bridge"), ("comments", "x")]).await.data();
    assert_ne!(site.call("GET", NETWORK, &[]).await.body.get("changes"), None);
    site.delete(NETWORK, &[]).await.data();
    assert_eq!(site.call("GET", NETWORK, &[]).await.body.get("changes"), None);
    assert_eq!(site.export().await, before);
}

#[tokio::test]
async fn an_interface_that_cannot_be_is_refused() {
    let site = Site::single().await;
    let taken = site.post(NETWORK, &[("iface", "vmbr0"), ("type", "bridge")]).await;
    assert_eq!(taken.error("iface"), "interface already exists");
    let gateway =
        [("iface", "vmbr8"), ("type", "bridge"), ("cidr", "198.51.100.1/24"), ("gateway", "198.51.100.2")];
    let second = site.post(NETWORK, &gateway).await;
    assert!(second.error("gateway").contains("Default gateway already exists"), "{second:?}");
    let slave = [("iface", "vmbr8"), ("type", "bridge"), ("bridge_ports", "eno1")];
    assert!(site.post(NETWORK, &slave).await.status >= 400);
}

#[tokio::test]
async fn a_network_of_the_datacenter_appears_when_it_is_applied() {
    let site = Site::cluster().await;
    let before = site.export().await;
    site.post("/cluster/sdn/zones", &[("zone", "lab"), ("type", "simple")]).await.data();
    site.post("/cluster/sdn/vnets", &[("vnet", "lab1"), ("zone", "lab"), ("alias", "the lab")]).await.data();
    let subnet = [("subnet", "10.66.0.0/24"), ("type", "subnet"), ("gateway", "10.66.0.1")];
    site.post("/cluster/sdn/vnets/lab1/subnets", &subnet).await.data();
    let bridges = async |node: &str| {
        let answer = site.call("GET", &format!("/nodes/{node}/network"), &[("type", "any_bridge")]).await;
        answer.data().to_string()
    };
    assert!(!bridges("pve2").await.contains("lab1"));
    let pending = site.call("GET", "/cluster/sdn/zones/lab", &[("pending", "1")]).await;
    assert_eq!(pending.data()["state"], "new");
    assert_eq!(site.task("PUT", "/cluster/sdn", &[]).await, "OK");
    assert!(bridges("pve2").await.contains("lab1"));
    assert!(site.delete("/cluster/sdn/zones/lab", &[]).await.status >= 400);

    site.delete("/cluster/sdn/vnets/lab1/subnets/lab-10.66.0.0-24", &[]).await.data();
    site.delete("/cluster/sdn/vnets/lab1", &[]).await.data();
    site.delete("/cluster/sdn/zones/lab", &[]).await.data();
    assert_eq!(site.task("PUT", "/cluster/sdn", &[]).await, "OK");
    assert!(!bridges("pve2").await.contains("lab1"));
    assert_eq!(site.export().await, before);
}
