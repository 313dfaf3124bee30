//! Network devices, with the addresses that they are given.

use serde_json::Value as Json;
use strata_source::machine::container::ContainerNic;
use strata_source::machine::network::{Nic, NicModel};
use strata_yaml::Choice;

use crate::fields::{Fields, Object, Put, listed, raw};

/// The bridge that the blueprint chooses.
const BRIDGE: &str = "vmbr0";

/// The devices of a VM; `addresses` are cloud-init's, by slot.
pub(crate) fn of_vm(left: &mut Fields, firewalled: bool, addresses: &mut Fields) -> Json {
    let slots = left.slots("networks").into_iter();
    let device = |(slot, mut nic): (String, Fields)| {
        let mut yaml = Object::new();
        yaml.put(Nic::bridge, nic.text("bridge").filter(|bridge| bridge != BRIDGE));
        let known = nic.word("model", NicModel::WORDS);
        yaml.put(Nic::model, known.filter(|model| model != "virtio"));
        yaml.put(Nic::mac, nic.text("mac"));
        yaml.put(Nic::vlan, nic.int("vlan"));
        yaml.put_full(Nic::trunks, trunks(&mut nic));
        yaml.put(Nic::mtu, nic.int("mtu"));
        yaml.put(Nic::queues, nic.int("queues"));
        yaml.put(Nic::firewall, filtered(&mut nic, firewalled));
        yaml.put(Nic::rate, nic.number("rate"));
        yaml.put(Nic::link_down, nic.unless("link_down", false));
        if let Some(mut given) = addresses.map(&slot.replace("net", "ipconfig")) {
            yaml.put(Nic::ip, given.text("ip"));
            yaml.put(Nic::gateway, given.text("gateway"));
            yaml.put(Nic::ip6, given.text("ip6"));
            yaml.put(Nic::gateway6, given.text("gateway6"));
        }
        yaml.put_full(Nic::options, nic.raw());
        (slot, Json::Object(yaml))
    };
    listed(slots.map(device).collect(), "net")
}

/// The devices of a container, which know their addresses themselves.
pub(crate) fn of_container(left: &mut Fields, firewalled: bool) -> Json {
    let slots = left.slots("networks").into_iter();
    let device = |(slot, mut nic): (String, Fields)| {
        let mut yaml = Object::new();
        yaml.put(ContainerNic::bridge, nic.text("bridge").filter(|bridge| bridge != BRIDGE));
        yaml.put(ContainerNic::name, nic.text("name").filter(|name| *name != slot.replace("net", "eth")));
        yaml.put(ContainerNic::mac, nic.text("mac"));
        yaml.put(ContainerNic::vlan, nic.int("vlan"));
        yaml.put_full(ContainerNic::trunks, trunks(&mut nic));
        yaml.put(ContainerNic::mtu, nic.int("mtu"));
        yaml.put(ContainerNic::firewall, filtered(&mut nic, firewalled));
        yaml.put(ContainerNic::rate, nic.number("rate"));
        yaml.put(ContainerNic::link_down, nic.unless("link_down", false));
        yaml.put(ContainerNic::ip, nic.text_if("ip", is_sayable));
        yaml.put(ContainerNic::gateway, nic.text("gateway"));
        yaml.put(ContainerNic::ip6, nic.text_if("ip6", is_sayable));
        yaml.put(ContainerNic::gateway6, nic.text("gateway6"));
        // Every device of a container is one.
        if nic.get("type").and_then(strata_resource::Value::as_text) == Some("veth") {
            nic.forget(&["type"]);
        }
        yaml.put_full(ContainerNic::options, nic.raw());
        (slot, Json::Object(yaml))
    };
    listed(slots.map(device).collect(), "net")
}

/// `manual` is a raw option: whoever is in the container sees to it.
fn is_sayable(address: &str) -> bool {
    address != "manual"
}

/// The blueprint has a guest's rules apply to its devices.
fn filtered(nic: &mut Fields, firewalled: bool) -> Option<bool> {
    let live = nic.bool("firewall").unwrap_or(false);
    (live != firewalled).then_some(live)
}

/// Single VLANs; ranges stay as they are.
fn trunks(nic: &mut Fields) -> Json {
    let single =
        |text: &str| text.split(';').map(|vlan| vlan.parse::<u16>().ok()).collect::<Option<Vec<u16>>>();
    let vlans = nic.get("trunks").and_then(raw).and_then(|trunks| match trunks {
        Json::String(text) => single(&text),
        Json::Number(number) => single(&number.to_string()),
        _ => None,
    });
    if vlans.is_some() {
        nic.forget(&["trunks"]);
    }
    vlans.unwrap_or_default().into()
}
