//! Network cards of VMs.

use std::sync::LazyLock;

use crate::api::format::{bridge_id, mac};
use crate::api::{Properties, PropertyString, flag, int, number, text};
use crate::world::World;

pub const MODELS: &[&str] = &[
    "e1000",
    "e1000-82540em",
    "e1000-82544gc",
    "e1000-82545em",
    "e1000e",
    "i82551",
    "i82557b",
    "i82559er",
    "ne2k_isa",
    "ne2k_pci",
    "pcnet",
    "rtl8139",
    "virtio",
    "vmxnet3",
];

/// `1;5-7`.
pub const RANGES: &str = r"\d+(?:-\d+)?(?:;\d+(?:-\d+)?)*";

static SCHEMA: LazyLock<Properties> = LazyLock::new(|| {
    let mut schema = Properties::new([
        text("model").one_of(MODELS),
        text("macaddr").format(mac).opt(),
        text("bridge").format(bridge_id).opt(),
        int("queues").min(0.0).max(64.0).opt(),
        number("rate").min(0.0).opt(),
        int("tag").min(1.0).max(4094.0).opt(),
        text("trunks").pattern(RANGES).opt(),
        flag("firewall").opt(),
        flag("link_down").opt(),
        int("mtu").min(1.0).max(65520.0).opt(),
    ])
    .default_key("model");
    for model in MODELS {
        schema = schema.key_alias(model, "macaddr", "model");
    }
    schema
});

pub fn schema() -> &'static Properties {
    &SCHEMA
}

pub fn parse(value: &str) -> PropertyString {
    SCHEMA.read(value)
}

pub fn print(net: &PropertyString) -> String {
    SCHEMA.print(net)
}

/// The card with a MAC address, made up if it has none.
pub fn with_mac(world: &World, vmid: u32, slot: &str, user: &str, value: &str) -> String {
    let mut net = parse(value);
    if net.get("macaddr").is_none() {
        let mac = world.mac(&[&vmid.to_string(), slot, user]);
        net.set("macaddr", mac);
    }
    print(&net)
}
