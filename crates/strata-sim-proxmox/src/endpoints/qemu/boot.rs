//! The boot order, and the machine version that Windows is pinned to.

use super::drive::{self, Drive};
use super::{cpu, schema};
use crate::world::guest::Config;

/// The first disk, the first CD drive, the first network card.
pub fn default_order(config: &Config) -> String {
    let first = |cdrom: bool| {
        drive::SLOTS
            .iter()
            .filter(|slot| !slot.starts_with("efidisk") && !slot.starts_with("tpmstate"))
            .find(|slot| {
                let drive = config.get(slot.as_str()).and_then(|value| Drive::parse(slot, value));
                drive.is_some_and(|drive| drive.is_cdrom() == cdrom)
            })
            .cloned()
    };
    let net = (0..schema::NETS).map(|n| format!("net{n}")).find(|net| config.contains_key(net));
    print_order(first(false).into_iter().chain(first(true)).chain(net))
}

pub fn print_order(devices: impl IntoIterator<Item = String>) -> String {
    let list: Vec<String> = devices.into_iter().collect();
    if list.is_empty() { String::new() } else { format!("order={}", list.join(";")) }
}

/// The devices of an explicit order; empty for the legacy form.
pub fn order(boot: Option<&str>) -> Vec<String> {
    let boot = schema::parse_boot(boot.unwrap_or_default().trim());
    boot.get("order")
        .map(|o| crate::api::args::split_list(o).map(str::to_owned).collect())
        .unwrap_or_default()
}

/// The disk whose size the listings show.
pub fn boot_disk(config: &Config) -> Option<Drive> {
    let parsed = schema::parse_boot(config.get("boot").map_or("", |b| b.trim()));
    let legacy = !config.contains_key("boot") || parsed.get("legacy").is_some();
    let candidates: Vec<String> = if legacy {
        config.get("bootdisk").cloned().into_iter().collect()
    } else {
        order(config.get("boot").map(String::as_str))
    };
    candidates
        .iter()
        .filter(|slot| drive::is_slot(slot))
        .filter_map(|slot| config.get(slot).and_then(|value| Drive::parse(slot, value)))
        .find(|drive| !drive.is_cdrom())
}

/// Windows is confused by newer machines, so it keeps the one it was made with.
pub fn pinned_machine(machine: Option<&String>, ostype: Option<&String>) -> Option<String> {
    let windows = ostype.is_some_and(|os| os.starts_with('w'));
    if !windows {
        return None;
    }
    let mut parsed = schema::parse_machine(machine.map_or("", String::as_str));
    let newest = cpu::MACHINES[0];
    let pinned = match parsed.get("type") {
        None | Some("pc") => format!("pc-i440fx-{newest}"),
        Some("q35") => format!("pc-q35-{newest}"),
        Some(_) => return None,
    };
    parsed.set("type", pinned.clone());
    let rest: Vec<String> =
        parsed.0.iter().filter(|(k, _)| *k != "type").map(|(k, v)| format!(",{k}={v}")).collect();
    Some(pinned + &rest.concat())
}
