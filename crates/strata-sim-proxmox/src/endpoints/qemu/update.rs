//! Changing a VM's configuration, at once (PUT) or in a task (POST).

mod apply;

use std::collections::BTreeSet;

use apply::apply;

use super::create::options;
use super::drive::{self, Drive};
use super::{net, permit, schema};
use crate::api::param::usual;
use crate::api::permission::on_any;
use crate::api::{Call, Param, Refusal, Reply, Route, flag, format, int, no, post, put, text, wrong};
use crate::endpoints::guest::{check_bridge, check_lock, check_tags};
use crate::task::{LockKey, Step, work};
use crate::world::guest::{Config, Pending};
use crate::world::{GuestKind, World};

const OWN: &[&str] = &[
    "node",
    "vmid",
    "digest",
    "background_delay",
    "import-working-storage",
    "skiplock",
    "delete",
    "revert",
    "force",
];

const ANY_CONFIG: &[&str] = &[
    "VM.Config.Disk",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.HWType",
    "VM.Config.Options",
    "VM.Config.Cloudinit",
];

pub fn routes() -> Vec<Route> {
    let perm = || on_any("/vms/{vmid}", ANY_CONFIG);
    let later = [
        int("background_delay").min(1.0).max(30.0).opt(),
        text("import-working-storage").format(format::storage_id).opt(),
    ];
    let unlink =
        vec![usual::node(), usual::vmid(), text("idlist").each(format::configid), flag("force").opt()];
    let disk = crate::api::permission::on("/vms/{vmid}", &["VM.Config.Disk"]);
    vec![
        put("/nodes/{node}/qemu/{vmid}/config", perm(), params().collect(), update_now),
        post("/nodes/{node}/qemu/{vmid}/config", perm(), params().chain(later).collect(), update_later),
        put("/nodes/{node}/qemu/{vmid}/unlink", disk, unlink, unlink_disks),
    ]
}

fn params() -> impl Iterator<Item = Param> {
    let own = [
        usual::node(),
        usual::vmid(),
        flag("skiplock").opt(),
        usual::delete(),
        text("revert").each(format::configid).opt(),
        flag("force").needs("delete").opt(),
        text("digest").max_len(40).opt(),
    ];
    own.into_iter().chain(schema::params())
}

/// A change that passed every check that needs no lock.
#[derive(Debug, Clone)]
struct Change {
    node: String,
    vmid: u32,
    set: Config,
    drives: Vec<Drive>,
    delete: Vec<String>,
    revert: Vec<String>,
    force: bool,
    digest: Option<String>,
    skiplock: bool,
    /// For the task's log.
    text: String,
}

fn update_now(call: &mut Call<'_>) -> Reply {
    let change = prepare(call)?;
    check_state(call.world, &change)?;
    call.lock(LockKey::Qemu(change.vmid))?;
    apply(call.world, change, &mut Vec::new())?;
    Ok(().into())
}

/// In the background, and waited for: a change that ends in time is answered like one at once, and has its task all the same.
fn update_within(call: &mut Call<'_>, change: Change) -> Reply {
    let (node, vmid) = (change.node.clone(), change.vmid);
    call.lock(LockKey::Qemu(vmid))?;
    let mut log = vec![format!("update VM {vmid}: {}", change.text)];
    let done = apply(call.world, change, &mut log).map_err(String::from);
    let ended = done.clone();
    let work = work(move |world, job| {
        for line in log {
            job.log(world, line);
        }
        ended.map(|()| Step::Done)
    });
    call.spawn(&node, "qmconfig", vmid.to_string(), work);
    done.map_err(|why| no(format!("failed to update VM {vmid}: {why}")))?;
    Ok(().into())
}

fn update_later(call: &mut Call<'_>) -> Reply {
    let waits = call.args.has("background_delay");
    let change = prepare(call)?;
    check_state(call.world, &change)?;
    if waits {
        return update_within(call, change);
    }
    let (node, vmid) = (change.node.clone(), change.vmid);
    let work = work(move |_, _| {
        Ok(Step::lock(LockKey::Qemu(vmid), move |_, _| {
            Ok(Step::wait(0.5, move |world, job| {
                check_state(world, &change)?;
                job.log(world, format!("update VM {vmid}: {}", change.text));
                let mut log = Vec::new();
                let result = apply(world, change, &mut log);
                for line in log {
                    job.log(world, line);
                }
                result?;
                Ok(Step::Done)
            }))
        }))
    });
    Ok(call.spawn(&node, "qmconfig", vmid.to_string(), work).into())
}

fn unlink_disks(call: &mut Call<'_>) -> Reply {
    let list = call.args.take("idlist").unwrap_or_default();
    call.args.set("delete", list);
    update_now(call)
}

/// Checks everything that does not depend on the VM's current state.
fn prepare(call: &mut Call<'_>) -> Result<Change, Refusal> {
    let (node, vmid) = (call.node(), call.vmid());
    let words: BTreeSet<String> = call
        .args
        .0
        .iter()
        .filter(|(key, _)| !["node", "vmid", "digest", "background_delay"].contains(&key.as_str()))
        .map(|(key, arg)| {
            let value = if key == "cipassword" { "<hidden>" } else { arg.as_text().unwrap_or_default() };
            format!("-{key} {value}")
        })
        .collect();
    let skiplock = call.args.is_set("skiplock");
    if skiplock && !call.caller.is_root() {
        return Err(wrong("skiplock", "Only root may use this option."));
    }
    if let Some(keys) = call.args.text("sshkeys") {
        permit::check_ssh_keys(keys)?;
    }
    let mut set = options(call, OWN)?;
    let (delete, revert) = (call.args.list("delete"), call.args.list("revert"));
    if delete.is_empty() && revert.is_empty() && set.is_empty() {
        return Err(no("no options specified"));
    }
    let delete: Vec<String> =
        delete.into_iter().map(|key| if key == "cdrom" { "ide2".to_owned() } else { key }).collect();
    check_lists(&set, &delete, &revert)?;
    let drives = permit::parse_drives(call, &set)?;
    let user = call.user().to_owned();
    for (key, value) in &mut set {
        if key.starts_with("net") && schema::exists(key) {
            *value = net::with_mac(call.world, vmid, key, &user, value);
        } else if key == "vmgenid" && value == "1" {
            *value = call.world.uuid(&["vmgenid", &vmid.to_string(), &user]);
        }
    }
    permit::check_keys(call, vmid, None, delete.iter().map(String::as_str))?;
    permit::check_keys(call, vmid, None, set.keys().map(String::as_str))?;
    permit::check_storages(call, vmid, &drives, &set, None)?;
    permit::check_devices(call, vmid, None, &set)?;
    let change = Change {
        node,
        vmid,
        set,
        drives,
        delete,
        revert,
        force: call.args.is_set("force"),
        digest: call.args.owned("digest"),
        skiplock,
        text: words.into_iter().collect::<Vec<_>>().join(" "),
    };
    check_values(call, &change)?;
    Ok(change)
}

fn check_lists(set: &Config, delete: &[String], revert: &[String]) -> Result<(), Refusal> {
    for key in revert {
        if !schema::exists(key) {
            return Err(wrong("revert", format!("unknown option '{key}'")));
        }
        if set.contains_key(key) {
            return Err(wrong(
                "delete",
                format!("you can't use '-{key}' and -revert {key}' at the same time"),
            ));
        }
    }
    for key in delete {
        if set.contains_key(key) {
            return Err(wrong(
                "delete",
                format!("you can't use '-{key}' and -delete {key}' at the same time"),
            ));
        }
        if revert.contains(key) {
            let text = format!("you can't use '-delete {key}' and -revert {key}' at the same time");
            return Err(wrong("revert", text));
        }
        if !schema::exists(key) {
            return Err(wrong("delete", format!("unknown option '{key}'")));
        }
    }
    Ok(())
}

/// Permissions that depend on what is there now.
fn check_values(call: &Call<'_>, change: &Change) -> Result<(), Refusal> {
    let vmid = change.vmid;
    let Ok(guest) = call.world.guest(&change.node, vmid, GuestKind::Qemu) else { return Ok(()) };
    for drive in &change.drives {
        permit::check_drive(call, vmid, drive)?;
    }
    for key in change.delete.iter().chain(change.set.keys()) {
        let Some(old) = guest.get(key) else { continue };
        if let Some(drive) = Drive::parse(key, old).filter(|_| drive::is_slot(key)) {
            permit::check_drive(call, vmid, &drive)?;
        } else if drive::is_unused(key) {
            call.check_vm(vmid, None, &["VM.Config.Disk"])?;
        } else if key.starts_with("net") && schema::exists(key) {
            check_bridge(call, &net::parse(old))?;
        } else {
            permit::check_device(call, vmid, None, key, old)?;
        }
    }
    let old = guest.get("tags").unwrap_or_default();
    if let Some(tags) = change.set.get("tags") {
        check_tags(call, vmid, None, old, tags)?;
    }
    if change.delete.iter().any(|key| key == "tags") {
        check_tags(call, vmid, None, old, "")?;
    }
    Ok(())
}

/// Checks against the VM as it is: made before the lock is taken, and again under it.
fn check_state(world: &World, change: &Change) -> Result<(), Refusal> {
    let guest = world.guest(&change.node, change.vmid, GuestKind::Qemu)?;
    if change.digest.as_ref().is_some_and(|digest| *digest != guest.digest()) {
        return Err(no("checksum mismatch (file change by other user?)"));
    }
    if !change.skiplock {
        check_lock(guest)?;
    }
    let pending = |key: &str| match guest.pending.get(key) {
        Some(Pending::Set(value)) => Some(value.as_str()),
        _ => None,
    };
    if change.set.contains_key("memory") || change.set.contains_key("balloon") {
        let memory =
            change.set.get("memory").map(String::as_str).or(pending("memory")).or(guest.get("memory"));
        let balloon =
            change.set.get("balloon").map(String::as_str).or(pending("balloon")).or(guest.get("balloon"));
        let balloon: u64 = balloon.and_then(|b| b.parse().ok()).unwrap_or_default();
        if balloon > schema::parse_memory(memory) {
            return Err(no("balloon value too large (must be smaller than assigned memory)"));
        }
    }
    Ok(())
}
