//! What VMs and containers have in common: locks, protection, tags, access to bridges.

use std::collections::BTreeSet;

use crate::api::args::split_list;
use crate::api::{Call, PropertyString, Refusal, forbidden, no};
use crate::world::{Guest, World};

/// 500 `VM is locked (…)`.
pub fn check_lock(guest: &Guest) -> Result<(), Refusal> {
    match guest.lock() {
        Some(lock) => Err(no(format!("{} is locked ({lock})", guest.word()))),
        None => Ok(()),
    }
}

/// 500 if the guest is protected; `what` says what cannot be done.
pub fn check_protection(guest: &Guest, what: &str) -> Result<(), Refusal> {
    if guest.flag("protection") { Err(no(format!("{what} - protection mode enabled"))) } else { Ok(()) }
}

/// 500 if the VMID is taken by any guest anywhere.
pub fn check_unused(world: &World, vmid: u32) -> Result<(), Refusal> {
    match world.guests.get(&vmid) {
        Some(guest) => Err(no(format!("{} {vmid} already exists on node '{}'", guest.word(), guest.node))),
        None => Ok(()),
    }
}

/// Tags as they are kept: lower case, sorted, each once, joined by semicolons.
pub fn unique_tags(world: &World, tags: &str) -> String {
    let style = world.cluster.options.get("tag-style").map_or("", String::as_str);
    let case_sensitive = style.split(',').any(|part| part == "case-sensitive=1");
    let keep_order = style.split(',').any(|part| part == "ordering=config");
    let mut list: Vec<String> = Vec::new();
    for tag in split_list(tags) {
        let tag = if case_sensitive { tag.to_owned() } else { tag.to_lowercase() };
        if !list.contains(&tag) {
            list.push(tag);
        }
    }
    if !keep_order {
        list.sort();
    }
    list.join(";")
}

/// Whether the caller may change a guest's tags from one list to another.
pub fn check_tags(
    call: &Call<'_>,
    vmid: u32,
    pool: Option<&str>,
    old: &str,
    new: &str,
) -> Result<(), Refusal> {
    call.check_vm(vmid, pool, &["VM.Config.Options"])?;
    if call.may("/", "Sys.Modify") {
        return Ok(());
    }
    let old: BTreeSet<&str> = split_list(old).collect();
    let new: BTreeSet<&str> = split_list(new).collect();
    let registered = call.world.cluster.options.get("registered-tags").map_or("", String::as_str);
    let access = call.world.cluster.options.get("user-tag-access").map_or("", String::as_str);
    let mode = access.split(',').find_map(|p| p.strip_prefix("user-allow=")).unwrap_or("free");
    let listed = access.split(',').find_map(|p| p.strip_prefix("user-allow-list=")).unwrap_or_default();
    for tag in old.symmetric_difference(&new) {
        let in_list = split_list(listed).any(|t| t == *tag);
        let allowed = match mode {
            "none" => false,
            "list" => in_list,
            "existing" => in_list || call.world.guests.values().any(|g| has_tag(g, tag)),
            _ => true,
        };
        if !allowed || split_list(registered).any(|t| t == *tag) {
            return Err(forbidden(format!("/, Sys.Modify for modifying tag '{tag}'")));
        }
    }
    Ok(())
}

fn has_tag(guest: &Guest, tag: &str) -> bool {
    guest.get("tags").is_some_and(|tags| split_list(tags).any(|t| t == tag))
}

/// Whether the caller may plug into the bridge of a network card, with its VLANs.
pub fn check_bridge(call: &Call<'_>, net: &PropertyString) -> Result<(), Refusal> {
    if call.caller.is_root() {
        return Ok(());
    }
    let Some(bridge) = net.get("bridge") else { return Ok(()) };
    let zone = call
        .world
        .cluster
        .section("sdn/vnets", bridge)
        .and_then(|vnet| vnet.props.get("zone"))
        .map_or("localnetwork", String::as_str);
    let base = format!("/sdn/zones/{zone}/{bridge}");
    let (tag, trunks) = (net.get("tag"), net.get("trunks"));
    if let Some(tag) = tag {
        call.check(&format!("{base}/{tag}"), &["SDN.Use"])?;
    }
    for range in trunks.unwrap_or_default().split(';').filter(|r| !r.is_empty()) {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().unwrap_or(1), to.parse().unwrap_or(1));
        for tag in from..=to.min(4094) {
            call.check(&format!("{base}/{tag}"), &["SDN.Use"])?;
        }
    }
    if tag.is_none() && trunks.is_none() {
        call.check(&base, &["SDN.Use"])?;
    }
    Ok(())
}

/// Whether a caller may use a volume: its owner, who may allocate on the storage, or who may read it.
pub fn check_volume(call: &Call<'_>, vmid: Option<u32>, volid: &str) -> Result<(), Refusal> {
    use crate::api::format::parse_volume_id;
    let Some((storage, name)) = parse_volume_id(volid) else {
        if call.caller.is_root() {
            return Ok(());
        }
        let text =
            "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.";
        return Err(no(text));
    };
    let kind = parse_name(call.world, storage, name)?;
    let at = format!("/storage/{storage}");
    if call.may(&at, "Datastore.Allocate") {
        return Ok(());
    }
    match (kind.content, kind.vmid) {
        ("iso" | "vztmpl" | "import", _) => {
            call.check_any(&at, &["Datastore.AllocateSpace", "Datastore.Audit"])
        }
        (_, Some(owner)) if Some(owner) == vmid => Ok(()),
        ("backup", Some(owner)) => {
            call.check(&at, &["Datastore.AllocateSpace"])?;
            call.check(&format!("/vms/{owner}"), &["VM.Backup"])
        }
        ("images", Some(owner)) => {
            call.check(&at, &["Datastore.Audit"])?;
            call.check(&format!("/vms/{owner}"), &["VM.Config.Disk"])
        }
        _ => Err(no(format!("missing privileges to access {volid}"))),
    }
}

/// What a volume's name says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub content: &'static str,
    pub vmid: Option<u32>,
    /// Of an image or import.
    pub format: String,
    pub is_base: bool,
}

/// Reads a volume name of a storage that must exist.
pub fn parse_name(world: &World, storage: &str, name: &str) -> Result<Named, Refusal> {
    let storage = world.storage(storage)?;
    let extension = |n: &str| n.rsplit_once('.').map(|(_, e)| e.to_lowercase()).unwrap_or_default();
    if !storage.is_file_based() {
        let own = name.rsplit('/').next().unwrap_or(name);
        let vmid = own
            .strip_prefix("vm-")
            .or_else(|| own.strip_prefix("base-"))
            .or_else(|| own.strip_prefix("subvol-"))
            .or_else(|| own.strip_prefix("basevol-"))
            .and_then(|rest| rest.split('-').next())
            .and_then(|id| id.parse().ok());
        return match vmid {
            Some(vmid) => Ok(Named {
                content: "images",
                vmid: Some(vmid),
                format: "raw".to_owned(),
                is_base: own.starts_with("base-") || own.starts_with("basevol-"),
            }),
            None => Err(no(format!("unable to parse {} volume name '{name}'", storage.kind))),
        };
    }
    let parts: Vec<&str> = name.split('/').collect();
    let number = |s: &str| s.parse::<u32>().ok().filter(|_| s.bytes().all(|b| b.is_ascii_digit()));
    let image = match parts.as_slice() {
        [vmid, file] | [_, _, vmid, file] => number(vmid).map(|vmid| (vmid, *file)),
        _ => None,
    };
    if let Some((vmid, file)) = image {
        let format = extension(file);
        if !matches!(format.as_str(), "raw" | "qcow2" | "vmdk" | "subvol") {
            return Err(no(format!("unable to parse volume filename '{file}'")));
        }
        return Ok(Named { content: "images", vmid: Some(vmid), format, is_base: file.starts_with("base-") });
    }
    let named =
        |content, vmid, format: &str| Named { content, vmid, format: format.to_owned(), is_base: false };
    match parts.as_slice() {
        ["iso", file] if matches!(extension(file).as_str(), "iso" | "img") => Ok(named("iso", None, "raw")),
        ["vztmpl", file] if is_archive(file) => Ok(named("vztmpl", None, "raw")),
        ["snippets", _] => Ok(named("snippets", None, "raw")),
        ["backup", file] if file.starts_with("vzdump-") => {
            let vmid = file.split('-').nth(2).and_then(number);
            Ok(named("backup", vmid, "raw"))
        }
        ["import", file] if matches!(extension(file).as_str(), "raw" | "qcow2" | "vmdk" | "ova" | "ovf") => {
            Ok(named("import", None, &extension(file)))
        }
        _ => Err(no(format!("unable to parse directory volume name '{name}'"))),
    }
}

/// Container templates are archives of these kinds.
pub fn is_archive(file: &str) -> bool {
    [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.zst", ".tar.bz2"].iter().any(|e| file.ends_with(e))
}
