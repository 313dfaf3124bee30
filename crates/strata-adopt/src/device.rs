//! Devices of the host, and the small devices that every VM has.

use serde_json::Value as Json;
use strata_source::machine::device::{Agent, Pci, Usb, Vga, VgaType};
use strata_yaml::Choice;

use crate::fields::{Fields, Object, Put, listed, short};

pub(crate) fn pci(left: &mut Fields) -> Json {
    let device = |(slot, mut device): (String, Fields)| {
        let mut yaml = Object::new();
        yaml.put(Pci::mapping, device.text("mapping"));
        yaml.put(Pci::device, device.text("device"));
        yaml.put(Pci::pcie, device.unless("pcie", false));
        yaml.put(Pci::rombar, device.unless("rombar", true));
        yaml.put(Pci::xvga, device.unless("xvga", false));
        yaml.put(Pci::mdev, device.text("mdev"));
        yaml.put_full(Pci::options, device.raw());
        (slot, short(yaml, Pci::mapping))
    };
    listed(left.slots("pci").into_iter().map(device).collect(), "hostpci")
}

pub(crate) fn usb(left: &mut Fields, notes: &mut Vec<String>) -> Json {
    let mut devices = Vec::new();
    for (slot, mut device) in left.slots("usb") {
        let mut yaml = Object::new();
        yaml.put(Usb::mapping, device.text("mapping"));
        yaml.put(Usb::device, device.text("device"));
        yaml.put(Usb::usb3, device.unless("usb3", false));
        device.told(&format!("usb.{slot}."), notes);
        devices.push((slot, short(yaml, Usb::mapping)));
    }
    listed(devices, "usb")
}

pub(crate) fn serial(left: &mut Fields) -> Json {
    let mut ports = left.map("serial").unwrap_or_default();
    let slots = ["serial0", "serial1", "serial2", "serial3"];
    let ports = slots.iter().filter_map(|slot| Some(((*slot).to_owned(), Json::from(ports.text(slot)?))));
    listed(ports.collect(), "serial")
}

pub(crate) fn vga(left: &mut Fields, notes: &mut Vec<String>) -> Option<Json> {
    let mut vga = left.map("vga")?;
    let mut yaml = Object::new();
    yaml.put(Vga::kind, vga.word("type", VgaType::WORDS));
    yaml.put(Vga::memory, vga.int("memory"));
    vga.told("vga.", notes);
    (!yaml.is_empty()).then(|| short(yaml, Vga::kind))
}

pub(crate) fn agent(left: &mut Fields) -> Option<Json> {
    let mut agent = left.map("agent")?;
    let mut yaml = Object::new();
    yaml.set(Agent::enabled, agent.bool("enabled").unwrap_or(false));
    yaml.put(Agent::trim, agent.unless("trim", false));
    yaml.put(Agent::freeze, agent.unless("freeze", true));
    yaml.put(Agent::kind, agent.text("type").filter(|kind| kind != "virtio"));
    Some(short(yaml, Agent::enabled))
}
