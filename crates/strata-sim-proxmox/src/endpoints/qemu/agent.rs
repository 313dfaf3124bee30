//! The guest agent, for VMs that have an operating system and the agent switched on.

use serde_json::{Value, json};

use super::{hotplug, net, schema};
use crate::api::param::usual;
use crate::api::permission::on_any;
use crate::api::{Call, Refusal, Reply, Route, get, no, post};
use crate::world::{Guest, GuestKind};

pub fn routes() -> Vec<Route> {
    let own = || vec![usual::node(), usual::vmid()];
    let audit = || on_any("/vms/{vmid}", &["VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"]);
    vec![
        post("/nodes/{node}/qemu/{vmid}/agent/ping", audit(), own(), |call| answer(call, |_, _| json!({}))),
        get("/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", audit(), own(), |call| {
            answer(call, |_, guest| interfaces(guest))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-host-name", audit(), own(), |call| {
            answer(call, |_, guest| json!({ "host-name": super::status::name(guest) }))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-time", audit(), own(), |call| {
            answer(call, |call, _| json!(call.world.now_ms() * 1_000_000))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-timezone", audit(), own(), |call| {
            answer(call, |_, _| json!({ "zone": "UTC", "offset": 0 }))
        }),
        get("/nodes/{node}/qemu/{vmid}/agent/get-osinfo", audit(), own(), |call| {
            answer(call, |_, _| {
                json!({
                    "id": "linux", "name": "Simulated Linux", "pretty-name": "Simulated Linux 1", "version": "1",
                    "kernel-release": "6.12.0", "machine": "x86_64",
                })
            })
        }),
    ]
}

/// The agent's answer, if there is an agent to ask.
pub fn answer(call: &mut Call<'_>, say: fn(&Call<'_>, &Guest) -> Value) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    check(call, guest)?;
    Ok(json!({ "result": say(call, guest) }).into())
}

fn check(call: &Call<'_>, guest: &Guest) -> Result<(), Refusal> {
    if !super::status::agent_enabled(guest) {
        return Err(no("No QEMU guest agent configured"));
    }
    if !guest.power.running {
        return Err(no(format!("VM {} is not running", guest.vmid)));
    }
    if guest.power.paused || !hotplug::has_system(call.world, guest) {
        return Err(no("QEMU guest agent is not running"));
    }
    Ok(())
}

/// The loopback, a bridge that the system made for containers of its own, and every card, with the addresses that cloud-init or the
/// network gave it.
fn interfaces(guest: &Guest) -> Value {
    let v4 = |address: &str, prefix: u32| json!({ "ip-address": address, "ip-address-type": "ipv4", "prefix": prefix });
    let mut list = vec![
        json!({ "name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": [v4("127.0.0.1", 8)] }),
        json!({ "name": "docker0", "hardware-address": "02:42:ac:11:00:01", "ip-addresses": [v4("172.17.0.1", 16)] }),
    ];
    let cards = guest.config.iter().filter(|(key, _)| key.starts_with("net") && schema::exists(key));
    for (key, value) in cards {
        let number = key.trim_start_matches("net");
        let mac = net::parse(value).get("macaddr").unwrap_or_default().to_lowercase();
        let config = guest.get(&format!("ipconfig{number}")).map(schema::parse_ipconfig).unwrap_or_default();
        let local =
            json!({ "ip-address": format!("fe80::{}", guest.vmid), "ip-address-type": "ipv6", "prefix": 64 });
        let mut addresses = Vec::new();
        for (field, kind) in [("ip", "ipv4"), ("ip6", "ipv6")] {
            if let Some((address, bits)) = config.get(field).and_then(|cidr| cidr.split_once('/')) {
                let prefix: u32 = bits.parse().unwrap_or(24);
                addresses.push(json!({ "ip-address": address, "ip-address-type": kind, "prefix": prefix }));
            }
        }
        if addresses.is_empty() {
            addresses.push(v4(&lease(guest.vmid, number), 24));
        }
        addresses.insert(0, local);
        list.push(
            json!({ "name": format!("eth{number}"), "hardware-address": mac, "ip-addresses": addresses }),
        );
    }
    Value::Array(list)
}

/// A lease of the network's DHCP server, always the same for a guest.
pub fn lease(vmid: u32, card: &str) -> String {
    let network = if card == "0" { "192.0.2" } else { "198.51.100" };
    format!("{network}.{}", 100 + vmid % 100)
}
