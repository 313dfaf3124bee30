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

fn check(what: &str, value: &str, extra: &str, most: usize) -> Result<(), String> {
    if !is_id(value, extra) {
        return Err(format!("{what} ID '{value}' contains illegal characters\n"));
    }
    if value.len() > most {
        return Err(format!("{what} ID '{value}' can't be more length than {most} characters\n"));
    }
    Ok(())
}

pub fn zone() -> Param {
    text("zone").min_len(2).max_len(8).format(|value| check("zone", value, "", 8))
}

pub fn vnet() -> Param {
    text("vnet").min_len(2).max_len(8).format(|value| check("vnet", value, "", 8))
}

pub fn controller() -> Param {
    text("controller").min_len(2).max_len(64).format(|value| check("controller", value, "-_", 64))
}

pub fn ipam() -> Param {
    text("ipam").min_len(2).format(|value| check("ipam", value, "", usize::MAX))
}

pub fn dns() -> Param {
    text("dns").min_len(2).format(|value| check("dns", value, "", usize::MAX))
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
