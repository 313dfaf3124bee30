//! Changing a container's configuration.

use std::collections::BTreeSet;

use super::mount::{self, Mount, Source};
use super::{apply, permit, schema};
use crate::api::args::split_list;
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::permission::on_any;
use crate::api::{Arg, Call, Param, Refusal, Reply, Route, format, no, put, text, wrong, wrong_many};
use crate::endpoints::guest::{check_lock, check_protection, unique_tags};
use crate::task::LockKey;
use crate::world::guest::{Config, Pending};
use crate::world::{Guest, GuestKind, World};

const ANY_CONFIG: &[&str] =
    &["VM.Config.Disk", "VM.Config.CPU", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options"];

/// The simulated hosts have the devices that every host has.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/fuse",
    "/dev/kvm",
    "/dev/net/tun",
    "/dev/null",
    "/dev/ppp",
    "/dev/ptmx",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/vhost-net",
    "/dev/zero",
];

pub fn routes() -> Vec<Route> {
    vec![put("/nodes/{node}/lxc/{vmid}/config", on_any("/vms/{vmid}", ANY_CONFIG), params(), update)]
}

fn params() -> Vec<Param> {
    let mut params = vec![
        usual::node(),
        usual::vmid(),
        usual::delete(),
        text("revert").each(format::configid).opt(),
        text("digest").max_len(40).opt(),
    ];
    params.extend(schema::params());
    params
}

/// The options among the parameters; `own` are those of the call itself.
pub fn options(call: &Call<'_>, own: &[&str]) -> Config {
    let given = call.args.0.iter().filter(|(key, _)| !own.contains(&key.as_str()));
    given.filter_map(|(key, arg)| Arg::as_text(arg).map(|text| (key.clone(), text.to_owned()))).collect()
}

fn update(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    let given = call.args.0.keys().filter(|key| !["node", "vmid", "digest"].contains(&key.as_str())).count();
    if given == 0 {
        return Err(no("no options specified"));
    }
    let mut set = options(call, &["node", "vmid", "digest", "delete", "revert"]);
    if let Some(units) = set.get_mut("cpuunits") {
        *units = clamp_units(units);
    }
    let (unset, revert) = (call.args.list("delete"), call.args.list("revert"));
    call.lock(LockKey::Lxc(vmid))?;
    let guest = call.world.guest(&node, vmid, GuestKind::Lxc)?.clone();
    check_lock(&guest)?;
    call.check_digest(&guest.digest())?;
    let subject = permit::Subject {
        vmid,
        pool: None,
        old: Some(&guest.config),
        unprivileged: guest.flag("unprivileged"),
    };
    permit::check(call, &subject, &Config::new(), &unset)?;
    permit::check(call, &subject, &Config::new(), &revert)?;
    check_lists(&set, &unset, &revert)?;
    permit::check(call, &subject, &set, &[])?;
    let mut changed = guest.clone();
    let selection = note(call.world, &mut changed, set, &unset, &revert)?;
    apply::forget_idle(&mut changed);
    // Volumes that the change makes are undone with it if any part of it fails.
    let touches = selection.iter().any(|key| schema::is_mount(key) || schema::is_unused(key));
    let before = touches.then(|| call.world.volumes.clone());
    let errors = if changed.power.running {
        apply::running(call.world, &mut changed, &selection)
    } else {
        apply::stopped(call.world, &mut changed, Some(&selection))
    };
    if !errors.is_empty() {
        if let Some(before) = before {
            call.world.volumes = before;
        }
        return Err(wrong_many(errors));
    }
    call.world.guests.insert(vmid, changed);
    Ok(().into())
}

/// Shares are limited by what the kernel's control groups take.
pub fn clamp_units(units: &str) -> String {
    units.parse::<u64>().map_or_else(|_| units.to_owned(), |n| n.clamp(1, 10_000).to_string())
}

fn check_lists(set: &Config, unset: &[String], revert: &[String]) -> Result<(), Refusal> {
    for key in revert {
        if !schema::exists(key) {
            return Err(wrong("revert", format!("unknown option '{key}'")));
        }
        if set.contains_key(key) {
            let text = format!("you can't use '-{key}' and '-revert {key}' at the same time");
            return Err(wrong("revert", text));
        }
    }
    for key in unset {
        if !schema::exists(key) {
            return Err(wrong("delete", format!("unknown option '{key}'")));
        }
        if set.contains_key(key) {
            let text = format!("you can't use '-{key}' and -delete {key}' at the same time");
            return Err(wrong("delete", text));
        }
        if revert.contains(key) {
            let text = format!("you can't use '-delete {key}' and '-revert {key}' at the same time");
            return Err(wrong("delete", text));
        }
    }
    Ok(())
}

/// Writes a change to the pending values; gives the options it is about.
pub fn note(
    world: &World,
    guest: &mut Guest,
    set: Config,
    unset: &[String],
    revert: &[String],
) -> Result<BTreeSet<String>, Refusal> {
    let vmid = guest.vmid;
    let mut selection = BTreeSet::new();
    for key in revert {
        guest.pending.remove(key);
    }
    for key in unset {
        let pending = matches!(guest.pending.get(key), Some(Pending::Set(_)));
        if !guest.config.contains_key(key) && !pending {
            continue;
        }
        selection.insert(key.clone());
        match key.as_str() {
            "memory" | "rootfs" | "ostype" => {
                return Err(no(format!("unable to delete required option '{key}'")));
            }
            "unprivileged" => return Err(no(format!("unable to delete read-only option: '{key}'"))),
            _ if schema::is_unused(key) || schema::is_mount(key) => {
                check_protection(guest, &format!("can't remove CT {vmid} drive '{key}'"))?;
            }
            _ => {}
        }
        guest.pending.insert(key.clone(), Pending::Delete { force: false });
    }
    for (key, value) in set {
        selection.insert(key.clone());
        let value = checked(world, guest, &key, value)?;
        guest.pending.insert(key, Pending::Set(value));
    }
    Ok(selection)
}

/// A value as it is noted, or why it cannot be.
fn checked(world: &World, guest: &Guest, key: &str, value: String) -> Result<String, Refusal> {
    match key {
        "unprivileged" => Err(no(format!("unable to modify read-only option: '{key}'"))),
        "nameserver" | "searchdomain" => Ok(split_list(&value).collect::<Vec<_>>().join(" ")),
        "tags" => Ok(unique_tags(world, &value)),
        "hookscript" => {
            let (storage, name) = parse_volume_id(&value).unwrap_or_default();
            world.storage(storage)?;
            if !name.starts_with("snippets/") {
                return Err(no("hook script is not a snippet"));
            }
            match world.volume(&value, &guest.node) {
                Some(_) => Ok(value),
                None => Err(no(format!("script '{value}' does not exist"))),
            }
        }
        _ if schema::is_mount(key) => {
            check_protection(guest, &format!("can't update CT {} drive '{key}'", guest.vmid))?;
            let new = Mount::parse(key, &value);
            if new.source() == Source::Volume {
                let storage = new.volume().split(':').next().unwrap_or_default();
                mount::check_rootdir(world.storage(storage)?)?;
            }
            Ok(value)
        }
        _ if schema::is_net(key) => {
            let net = schema::parse_net(&value);
            let number = |text: Option<&str>| text.and_then(|t| t.parse::<u32>().ok());
            let bridge = net.get("bridge").unwrap_or_default();
            let iface = world.nodes.get(&guest.node).and_then(|node| node.ifaces.get(bridge));
            let most = number(iface.and_then(|i| i.props.get("mtu")).map(String::as_str)).unwrap_or(1500);
            match number(net.get("mtu")) {
                Some(mtu) if mtu > most && iface.is_some() => {
                    Err(no(format!("{key}: MTU size '{mtu}' is bigger than bridge MTU '{most}'")))
                }
                _ => Ok(value),
            }
        }
        _ if schema::is_device(key) => {
            let device = schema::device().read(&value);
            match device.get("path") {
                None => Err(no(format!("Path is not defined for passthrough device {key}"))),
                Some(path) if !DEVICES.contains(&path) => Err(no(format!("Device {path} does not exist"))),
                Some(_) => Ok(value),
            }
        }
        _ => Ok(value),
    }
}
