//! Talos machines seen from outside: a cluster from an ISO to etcd, and what can become of it.

mod api;
mod boots;
mod configs;
mod etcd;
mod factory;
mod faults;
mod kubernetes;
mod reboots;
mod wire;

use std::time::Duration;

use serde_json::{Value, json};
use strata_sim::{Pace, Sim, SimOptions};

use api::Talos;
use configs::{Pki, Wanted};

const SCHEMATIC: &str = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";
const NODE: &str = "pve1";

/// A simulator at which no time passes that is not waited for.
async fn simulator() -> Sim {
    Sim::start(SimOptions { pace: Pace::INSTANT, ..SimOptions::default() }).await.unwrap()
}

/// A call of Proxmox by root, which must succeed.
async fn proxmox(sim: &Sim, method: &str, path: &str, params: Value) {
    let done = sim.change(&json!({ "method": method, "path": path, "params": params })).await.unwrap();
    assert_eq!(done["status"], 200, "{done}");
    assert!(done["exitstatus"].is_null() || done["exitstatus"] == "OK", "{done}");
}

async fn change(sim: &Sim, change: Value) {
    sim.change(&json!({ "talos": change })).await.unwrap();
}

/// A VM with an empty disk, the ISO of that version in its drive, and its address on the address drive; switched on.
async fn machine(sim: &Sim, vmid: u32, address: &str, version: &str) {
    let file = format!("talos-{version}.iso");
    let known = sim.export()["volumes"].to_string().contains(&file);
    if !known {
        let url = format!("https://factory.talos.dev/image/{SCHEMATIC}/{version}/nocloud-amd64.iso");
        let params = json!({ "url": url, "filename": file, "content": "iso" });
        proxmox(sim, "POST", &format!("/nodes/{NODE}/storage/local/download-url"), params).await;
    }
    let params = json!({
        "vmid": vmid, "name": format!("vm-{vmid}"), "scsi0": "local-lvm:32", "ide2": format!("local:iso/{file},media=cdrom"),
        "ide0": "local-lvm:cloudinit", "ipconfig0": format!("ip={address}/24,gw=192.0.2.1"),
        "net0": "virtio,bridge=vmbr0", "boot": "order=scsi0;ide2",
    });
    proxmox(sim, "POST", &format!("/nodes/{NODE}/qemu"), params).await;
    power(sim, vmid, "start").await;
}

async fn power(sim: &Sim, vmid: u32, what: &str) {
    proxmox(sim, "POST", &format!("/nodes/{NODE}/qemu/{vmid}/status/{what}"), json!({})).await;
}

/// Machines of one cluster, with the keys to it.
struct Cluster {
    sim: Sim,
    pki: Pki,
    version: String,
}

impl Cluster {
    /// A simulator without machines yet.
    async fn new(version: &str) -> Self {
        Self { sim: simulator().await, pki: Pki::new(), version: version.to_owned() }
    }

    fn wanted(&self, name: &str, address: &str, control_plane: bool) -> Wanted {
        Wanted::new(name, address, control_plane, &self.version)
    }

    /// Boots a machine and gives it its configuration; it runs when this returns, and a worker if a control plane does.
    async fn add(&self, vmid: u32, name: &str, address: &str, control_plane: bool) -> Talos {
        machine(&self.sim, vmid, address, &self.version).await;
        let config = self.pki.config(&self.wanted(name, address, control_plane));
        Talos::insecure(&self.sim, address).await.unwrap().apply(&config, 1).await.unwrap();
        self.admin(address).await
    }

    /// The API at an address, once it answers.
    async fn admin(&self, address: &str) -> Talos {
        let client = self.pki.client("os:admin");
        eventually(async || Talos::connect(&self.sim, address, &client).await.ok()).await
    }

    /// A control plane that was bootstrapped.
    async fn bootstrapped(version: &str) -> Self {
        let cluster = Self::new(version).await;
        cluster.add(101, "cp-1", "192.0.2.41", true).await.bootstrap(false).await.unwrap();
        cluster
    }

    /// Three control planes, all of them voters.
    async fn of_three(version: &str) -> Self {
        let cluster = Self::bootstrapped(version).await;
        cluster.add(102, "cp-2", "192.0.2.42", true).await;
        cluster.voters(&["cp-1", "cp-2"]).await;
        cluster.add(103, "cp-3", "192.0.2.43", true).await;
        cluster.voters(&["cp-1", "cp-2", "cp-3"]).await;
        cluster
    }

    /// Waits until exactly these are voting members.
    async fn voters(&self, names: &[&str]) {
        eventually(async || {
            let seen = voters(&self.sim.talos());
            (seen == names).then_some(())
        })
        .await;
    }

    fn machine(&self, vmid: u32) -> Value {
        let key = format!("vm/{vmid}");
        let export = self.sim.talos();
        let machines = export["machines"].as_array().unwrap();
        machines.iter().find(|machine| machine["machine"] == *key).cloned().unwrap_or_default()
    }

    fn reboots(&self) -> Vec<(String, String)> {
        let export = self.sim.talos();
        let list = export["reboots"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        list.iter().map(|reboot| (text(&reboot["hostname"]), text(&reboot["cause"]))).collect()
    }
}

fn voters(export: &Value) -> Vec<String> {
    let clusters = export["etcd-clusters"].as_array().unwrap();
    let members = clusters.iter().flat_map(|cluster| cluster["members"].as_array().unwrap());
    members
        .filter(|member| member["learner"] == false)
        .map(|member| member["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Tries until there is a result; gives up after a time that is never reached unless something is wrong.
async fn eventually<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(result) = attempt().await {
            return result;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it never happened");
}
