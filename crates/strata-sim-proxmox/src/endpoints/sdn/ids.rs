//! How the parts of a network are named. What is no name is refused in the words of the server that was recorded: the published
//! schema has the same limits as patterns.

use crate::api::format::only;
use crate::api::{Param, text};

fn is_id(value: &str, extra: &str) -> bool {
    value.len() >= 2
        && value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
        && only(value, extra)
}

fn letters(what: &str, value: &str, extra: &str) -> Result<(), String> {
    if is_id(value, extra) {
        Ok(())
    } else {
        Err(format!("{what} ID '{value}' contains illegal characters\n"))
    }
}

pub fn zone() -> Param {
    text("zone").min_len(2).max_len(8).format(|value| letters("zone", value, ""))
}

/// Below a node the length is part of the format, as was recorded there; the datacenter's own calls have it as a limit.
pub fn zone_of_node() -> Param {
    text("zone").min_len(2).max_len(8).format(|value| {
        letters("zone", value, "")?;
        if value.len() > 8 {
            return Err(format!("zone ID '{value}' can't be more length than 8 characters\n"));
        }
        Ok(())
    })
}

pub fn vnet() -> Param {
    text("vnet").min_len(2).max_len(8).format(|value| letters("vnet", value, ""))
}

pub fn controller() -> Param {
    text("controller").min_len(2).max_len(64).format(|value| letters("controller", value, "-_"))
}

pub fn ipam() -> Param {
    text("ipam").min_len(2).format(|value| letters("ipam", value, ""))
}

pub fn dns() -> Param {
    text("dns").min_len(2).format(|value| letters("dns", value, ""))
}

/// A fabric's name makes the name of a network device, so it is short.
pub fn fabric_id(value: &str) -> Result<(), String> {
    let ok = (1..=8).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && only(value, "-")
        && (value.len() < 8 || value.ends_with(|c: char| c.is_ascii_alphanumeric()));
    if ok { Ok(()) } else { Err(format!("Fabric ID '{value}' contains illegal characters\n")) }
}

pub fn fabric(name: &'static str) -> Param {
    text(name).format(fabric_id)
}

pub fn fingerprint() -> Param {
    text("fingerprint").pattern("([A-Fa-f0-9]{2}:){31}[A-Fa-f0-9]{2}").opt()
}
