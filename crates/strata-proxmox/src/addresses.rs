//! The addresses that guests have and nobody wrote: what the agent of a VM or the interfaces of a container say about the network devices that
//! the guest was given. Interfaces that it made itself, such as the bridge of a container runtime, are none of these.

use std::collections::BTreeMap;
use std::net::IpAddr;

use futures::future::join_all;
use serde::Deserialize;
use serde::de::IgnoredAny;
use strata_engine::Reported;
use strata_resource::{Address, Spec, Value};
use strata_state::StateResource;

use crate::api::{ApiErrorKind, GuestRow};
use crate::client::{CallError, Client};
use crate::codec::GuestKind;
use crate::execute::Patience;
use crate::guest::{Guest, cluster_guests};

/// The fact that is one address: the first of the first device that has any.
pub(crate) const FIRST: &str = "address";
/// The fact that has the addresses of each network device, by its name.
pub(crate) const ALL: &str = "addresses";

/// Asks guests that were recorded, all at once and each of them once. Where they are is listed before: they may have moved.
pub(crate) async fn report(client: &Client, objects: &[(&Address, &StateResource)]) -> Vec<Reported> {
    if !objects.iter().any(|(address, record)| Asked::of(address, record).is_some()) {
        return vec![Reported::Nothing; objects.len()];
    }
    let rows: Result<BTreeMap<u32, GuestRow>, CallError> =
        cluster_guests(client).await.map(|rows| rows.into_iter().map(|row| (row.vmid, row)).collect());
    join_all(objects.iter().map(|(address, record)| async {
        let Some(asked) = Asked::of(address, record) else { return Reported::Nothing };
        match &rows {
            Ok(rows) => asked.ask(client, rows.get(&asked.vmid)).await,
            Err(error) => asked.no_answer(format!("its datacenter cannot be asked: {error}")),
        }
    }))
    .await
}

/// A guest with network devices.
struct Asked<'s> {
    kind: GuestKind,
    vmid: u32,
    spec: &'s Spec,
    /// Names and hardware addresses, in the order of the names.
    devices: Vec<(&'s str, String)>,
}

impl<'s> Asked<'s> {
    fn of(address: &Address, record: &'s StateResource) -> Option<Self> {
        let spec = &record.spec;
        let kind = GuestKind::of(address.kind())?;
        if spec.get("template").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let vmid = u32::try_from(spec.get("vmid")?.as_int()?).ok()?;
        let mac = |device: &Value| Some(device.as_map()?.get("mac")?.as_text()?.to_lowercase());
        let networks = spec.get("networks")?.as_map()?;
        let mut devices: Vec<(&str, String)> =
            networks.iter().filter_map(|(slot, device)| Some((slot.as_str(), mac(device)?))).collect();
        devices.sort_by_key(|(slot, _)| (slot.len(), *slot));
        (!devices.is_empty()).then_some(Self { kind, vmid, spec, devices })
    }

    /// It may answer later.
    fn no_answer(&self, why: String) -> Reported {
        Reported::NoAnswer { why, seconds: Patience::Start.of(self.spec).as_secs() }
    }

    async fn ask(&self, client: &Client, row: Option<&GuestRow>) -> Reported {
        let never = |why: &str| Reported::NoAnswer { why: why.to_owned(), seconds: 0 };
        let Some((row, node)) = row.and_then(|row| Some((row, row.node.as_deref()?))) else {
            return never("it is not there, or this login may not see it");
        };
        if row.status.as_deref() != Some("running") {
            return never("it does not run");
        }
        if self.kind == GuestKind::Qemu && !has_agent(self.spec) {
            return never("its guest agent is not switched on (`agent: true`)");
        }
        let guest = Guest { kind: self.kind, node: node.to_owned(), vmid: self.vmid };
        let interfaces: Result<Vec<Interface>, CallError> = match self.kind {
            GuestKind::Qemu => {
                let answer = client.get_once(&guest.path("/agent/network-get-interfaces")).await;
                answer.map(|answer: AgentAnswer| answer.result.into_iter().map(Interface::from).collect())
            }
            GuestKind::Lxc => {
                let answer = client.get_once(&guest.path("/interfaces")).await;
                answer.map(|rows: Option<Vec<OfContainer>>| {
                    rows.unwrap_or_default().into_iter().map(Interface::from).collect()
                })
            }
        };
        match interfaces {
            Ok(interfaces) => facts(&self.devices, &interfaces).map_or_else(
                || self.no_answer("none of its network devices has an address yet".to_owned()),
                Reported::Facts,
            ),
            Err(error) if matches!(error.kind(), Some(ApiErrorKind::Denied { .. })) => match self.kind {
                GuestKind::Qemu => never(
                    "this login may not ask its guest agent: that takes `VM.GuestAgent.Audit`, before Proxmox VE 9 `VM.Monitor`",
                ),
                GuestKind::Lxc => never("this login may not see its interfaces: that takes `VM.Audit`"),
            },
            Err(CallError::Api(_)) if self.kind == GuestKind::Qemu => {
                self.no_answer("its guest agent does not answer".to_owned())
            }
            Err(error) => self.no_answer(format!("it cannot be asked: {error}")),
        }
    }
}

/// Whether the guest is said to run an agent.
pub fn has_agent(spec: &Spec) -> bool {
    spec.get("agent").and_then(|agent| agent.as_map()?.get("enabled")?.as_bool()) == Some(true)
}

/// An interface of a guest, as either kind of guest says it.
struct Interface {
    mac: String,
    addresses: Vec<IpAddr>,
}

#[derive(Deserialize)]
struct AgentAnswer {
    #[serde(default)]
    result: Vec<OfAgent>,
}

#[derive(Deserialize)]
struct OfAgent {
    #[serde(default, rename = "hardware-address")]
    mac: Option<String>,
    /// An interface without any leaves it out.
    #[serde(default, rename = "ip-addresses")]
    addresses: Option<Vec<OfInterface>>,
}

#[derive(Deserialize)]
struct OfInterface {
    #[serde(rename = "ip-address")]
    address: String,
    #[serde(default, rename = "prefix")]
    _prefix: Option<IgnoredAny>,
}

/// Before Proxmox VE 9 with one address of each family alone.
#[derive(Deserialize)]
struct OfContainer {
    #[serde(default)]
    hwaddr: Option<String>,
    #[serde(default)]
    inet: Option<String>,
    #[serde(default)]
    inet6: Option<String>,
    #[serde(default, rename = "ip-addresses")]
    addresses: Option<Vec<OfInterface>>,
}

/// With the length of its network, or with the name of an interface, or without.
fn read(text: &str) -> Option<IpAddr> {
    text.split(['/', '%']).next()?.parse().ok()
}

impl From<OfAgent> for Interface {
    fn from(said: OfAgent) -> Self {
        let addresses = said.addresses.unwrap_or_default();
        Self {
            mac: said.mac.unwrap_or_default().to_lowercase(),
            addresses: addresses.iter().filter_map(|one| read(&one.address)).collect(),
        }
    }
}

impl From<OfContainer> for Interface {
    fn from(said: OfContainer) -> Self {
        let single = said.inet.into_iter().chain(said.inet6);
        let all = said.addresses.unwrap_or_default().into_iter().map(|one| one.address);
        Self {
            mac: said.hwaddr.unwrap_or_default().to_lowercase(),
            addresses: single.chain(all).filter_map(|text| read(&text)).collect(),
        }
    }
}

/// One that others can reach it at. What every interface gives itself is none.
fn is_reachable(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !(v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unspecified() || v6.is_multicast())
        }
    }
}

/// The addresses of the devices: IPv4 first, then IPv6, each in the order in which the guest says them. None if there is no address.
fn facts(devices: &[(&str, String)], interfaces: &[Interface]) -> Option<Spec> {
    let mut all = Spec::new();
    let mut first = None;
    for (slot, mac) in devices {
        let mut found: Vec<IpAddr> = Vec::new();
        // A bridge or a VLAN on top of a device has the same hardware address: then that has the address of the device.
        for interface in interfaces.iter().filter(|interface| interface.mac == *mac) {
            for address in interface.addresses.iter().filter(|address| is_reachable(address)) {
                if !found.contains(address) {
                    found.push(*address);
                }
            }
        }
        found.sort_by_key(IpAddr::is_ipv6);
        if let Some(address) = found.first() {
            first.get_or_insert_with(|| address.to_string());
            let list = found.iter().map(|address| Value::Text(address.to_string())).collect();
            all.insert((*slot).to_owned(), Value::List(list));
        }
    }
    Some(Spec::from([(FIRST.to_owned(), Value::Text(first?)), (ALL.to_owned(), Value::Map(all))]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    const NET0: &str = "bc:24:11:00:00:01";

    fn agent(interfaces: Json) -> Vec<Interface> {
        let answer: AgentAnswer = serde_json::from_value(json!({"result": interfaces})).unwrap();
        answer.result.into_iter().map(Interface::from).collect()
    }

    fn ip(address: &str) -> Json {
        let kind = if address.contains(':') { "ipv6" } else { "ipv4" };
        json!({"ip-address": address, "ip-address-type": kind, "prefix": 24})
    }

    fn known(devices: &[(&str, &str)], interfaces: &[Interface]) -> Option<Json> {
        let devices: Vec<(&str, String)> =
            devices.iter().map(|(slot, mac)| (*slot, (*mac).to_owned())).collect();
        Some(serde_json::to_value(facts(&devices, interfaces)?).unwrap())
    }

    #[test]
    fn an_address_is_that_of_the_device_and_not_of_a_bridge_inside() {
        let said = agent(json!([
            {"name": "lo", "hardware-address": "00:00:00:00:00:00", "ip-addresses": [ip("127.0.0.1"), ip("::1")]},
            {"name": "docker0", "hardware-address": "02:42:ac:11:00:01", "ip-addresses": [ip("172.17.0.1")]},
            {"name": "tun0"},
            {"name": "eth0", "hardware-address": "BC:24:11:00:00:01", "ip-addresses": [ip("192.0.2.31")]},
        ]));
        assert_eq!(
            known(&[("net0", NET0)], &said),
            Some(json!({"address": "192.0.2.31", "addresses": {"net0": ["192.0.2.31"]}}))
        );
        assert_eq!(known(&[("net0", "bc:24:11:00:00:09")], &said), None, "another guest has the VMID");
    }

    #[test]
    fn link_local_addresses_are_none_and_version_4_is_first() {
        let at = |addresses: &[&str]| {
            let addresses: Vec<Json> = addresses.iter().map(|address| ip(address)).collect();
            agent(json!([{"name": "eth0", "hardware-address": NET0, "ip-addresses": addresses}]))
        };
        let early = at(&["fe80::be24:11ff:fe00:1", "169.254.7.7"]);
        assert_eq!(known(&[("net0", NET0)], &early), None, "it has no lease yet");
        let both = at(&["fe80::be24:11ff:fe00:1", "2001:db8::31", "192.0.2.31", "192.0.2.5", "192.0.2.31"]);
        let found = known(&[("net0", NET0)], &both).unwrap();
        assert_eq!(found["address"], "192.0.2.31");
        assert_eq!(found["addresses"]["net0"], json!(["192.0.2.31", "192.0.2.5", "2001:db8::31"]));
        let only6 = known(&[("net0", NET0)], &at(&["fe80::1", "2001:db8::31"])).unwrap();
        assert_eq!(only6["address"], "2001:db8::31");
    }

    #[test]
    fn the_first_device_with_an_address_is_the_one_to_reach_it_at() {
        let other = "bc:24:11:00:00:02";
        let said = agent(json!([
            {"name": "eth1", "hardware-address": other, "ip-addresses": [ip("198.51.100.2")]},
            {"name": "eth0", "hardware-address": NET0, "ip-addresses": [ip("192.0.2.31")]},
        ]));
        assert_eq!(known(&[("net0", NET0), ("net1", other)], &said).unwrap()["address"], "192.0.2.31");
        assert_eq!(
            known(&[("net0", "bc:24:11:00:00:07"), ("net1", other)], &said).unwrap()["address"],
            "198.51.100.2"
        );
    }

    #[test]
    fn containers_of_either_version_are_read() {
        let of = |rows: Json| -> Vec<Interface> {
            let rows: Vec<OfContainer> = serde_json::from_value(rows).unwrap();
            rows.into_iter().map(Interface::from).collect()
        };
        let eight = of(json!([
            {"name": "lo", "hwaddr": "00:00:00:00:00:00", "inet": "127.0.0.1/8", "inet6": "::1/128"},
            {"name": "eth0", "hwaddr": NET0, "inet": "192.0.2.53/24", "inet6": "fe80::1/64"},
        ]));
        let nine =
            of(json!([{"name": "eth0", "hwaddr": NET0, "hardware-address": NET0, "inet": "192.0.2.53/24",
            "ip-addresses": [{"ip-address": "192.0.2.53", "ip-address-type": "inet", "prefix": "24"}]}]));
        for said in [eight, nine] {
            let found = known(&[("net0", NET0)], &said).unwrap();
            assert_eq!(found, json!({"address": "192.0.2.53", "addresses": {"net0": ["192.0.2.53"]}}));
        }
    }
}
