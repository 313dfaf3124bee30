//! Backups of guests, and looking into them.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::json;

use super::guest::{check_volume, parse_name};
use super::storage::params::prune_backups;
use super::{lxc, qemu};
use crate::WorldKind;
use crate::api::format::parse_volume_id;
use crate::api::param::usual;
use crate::api::{
    Call, Param, Perm, Properties, Refusal, Reply, Route, array, flag, format, get, int, no, post, text,
    wrong,
};
use crate::task::{Job, LockKey, Step, work};
use crate::world::{Guest, GuestKind, Storage, Volume, World};

pub fn routes() -> Vec<Route> {
    vec![
        post("/nodes/{node}/vzdump", Perm::Anyone, params(), dump),
        get(
            "/nodes/{node}/vzdump/defaults",
            Perm::Anyone,
            vec![usual::node(), usual::storage().opt()],
            defaults,
        ),
        get(
            "/nodes/{node}/vzdump/extractconfig",
            Perm::Anyone,
            vec![usual::node(), text("volume")],
            extract_config,
        ),
    ]
}

static FLEECING: LazyLock<Properties> = LazyLock::new(|| {
    let keys = [flag("enabled").opt(), text("storage").format(format::storage_id).opt()];
    Properties::new(keys).default_key("enabled").validated(|values| {
        if values.is_set("enabled") && values.get("storage").is_none() {
            return Err("'storage' parameter is required when 'enabled' is set\n".to_owned());
        }
        Ok(())
    })
});
static PERFORMANCE: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([int("max-workers").min(1.0).max(256.0).opt(), int("pbs-entries-max").min(1.0).opt()])
});

/// What a backup and a backup job have in common.
pub fn settings() -> Vec<Param> {
    vec![
        text("vmid").each(format::vmid).opt(),
        flag("all").opt(),
        text("exclude").each(format::vmid).opt(),
        text("pool").opt(),
        text("storage").format(format::storage_id).opt(),
        text("mode").one_of(&["snapshot", "suspend", "stop"]).opt(),
        text("compress").one_of(&["0", "1", "gzip", "lzo", "zstd"]).opt(),
        int("bwlimit").min(0.0).opt(),
        text("dumpdir").opt(),
        array("exclude-path", text("exclude-path")).opt(),
        text("fleecing").properties(|| &FLEECING).opt(),
        int("ionice").min(0.0).max(8.0).opt(),
        int("lockwait").min(0.0).opt(),
        text("mailnotification").one_of(&["always", "failure"]).opt(),
        text("mailto").opt(),
        text("notes-template").max_len(1024).needs("storage").opt(),
        text("notification-mode").one_of(&["auto", "legacy-sendmail", "notification-system"]).opt(),
        text("pbs-change-detection-mode").one_of(&["legacy", "data", "metadata"]).opt(),
        text("performance").properties(|| &PERFORMANCE).opt(),
        int("pigz").opt(),
        flag("protected").needs("storage").opt(),
        prune_backups().opt(),
        flag("quiet").opt(),
        flag("remove").opt(),
        text("script").opt(),
        flag("stdexcludes").opt(),
        flag("stop").opt(),
        int("stopwait").min(0.0).opt(),
        text("tmpdir").opt(),
        int("zstd").opt(),
    ]
}

fn params() -> Vec<Param> {
    let mut params = settings();
    params.extend([usual::node(), flag("stdout").opt(), text("job-id").max_len(50).pattern(r"\S+").opt()]);
    params
}

/// What was asked for.
struct BackupRequest {
    node: String,
    vmids: Vec<u32>,
    storage: String,
    mode: String,
    compress: String,
    notes: Option<String>,
    protected: bool,
    command: String,
}

/// Some settings are for root alone, and no token is root: to set them, and to take them away.
pub fn check_root_only(call: &Call<'_>, unset: &[String]) -> Result<(), Refusal> {
    for key in ["dumpdir", "script", "tmpdir"] {
        if (call.args.has(key) || unset.iter().any(|doomed| doomed == key)) && !call.caller.is_root() {
            return Err(wrong(key, "Only root may set this option."));
        }
    }
    Ok(())
}

fn dump(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    if call.args.is_set("stdout") {
        return Err(wrong("stdout", "option is only allowed on the command line interface."));
    }
    check_root_only(call, &[])?;
    for key in ["all", "exclude", "pool"] {
        if call.args.filled(key).is_some_and(|value| value != "0") && call.args.filled("vmid").is_some() {
            return Err(wrong(key, "option conflicts with option 'vmid'"));
        }
    }
    let selected = ["vmid", "all", "pool"].iter().any(|key| call.args.has(key)) || call.args.is_set("stop");
    if !selected {
        return Err(wrong("vmid", "property is missing"));
    }
    let vmids = selection(call, &node);
    if vmids.is_empty() && !call.args.is_set("all") {
        return Ok(json!("OK").into());
    }
    let storage = call.args.owned("storage").unwrap_or_else(|| "local".to_owned());
    call.check(&format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    for vmid in &vmids {
        call.check(&format!("/vms/{vmid}"), &["VM.Backup"])?;
    }
    let order = BackupRequest {
        command: command_line(call, &node, &vmids),
        node: node.clone(),
        storage,
        mode: call.args.text("mode").unwrap_or("snapshot").to_owned(),
        compress: call.args.text("compress").unwrap_or("0").to_owned(),
        notes: call.args.owned("notes-template"),
        protected: call.args.is_set("protected"),
        vmids,
    };
    let id = match order.vmids.as_slice() {
        [only] => only.to_string(),
        _ => String::new(),
    };
    Ok(call.spawn(&node, "vzdump", id, work(move |world, job| begin(world, job, order))).into())
}

/// The guests that are meant, on this node or gone.
fn selection(call: &Call<'_>, node: &str) -> Vec<u32> {
    let excluded = call.args.list("exclude");
    let here = |vmid: u32| call.world.guests.get(&vmid).is_none_or(|guest| guest.node == node);
    let all: Vec<u32> = if call.args.is_set("all") {
        call.world.guests.keys().copied().collect()
    } else if let Some(pool) = call.args.text("pool") {
        call.world.pools.get(pool).into_iter().flat_map(|pool| pool.vms.iter().copied()).collect()
    } else {
        call.args.list("vmid").iter().filter_map(|id| id.parse().ok()).collect()
    };
    all.into_iter().filter(|vmid| here(*vmid) && !excluded.contains(&vmid.to_string())).collect()
}

fn command_line(call: &Call<'_>, node: &str, vmids: &[u32]) -> String {
    let ids: Vec<String> = vmids.iter().map(u32::to_string).collect();
    let mut options: Vec<String> = call
        .args
        .texts()
        .filter(|(key, _)| !["vmid", "node"].contains(key))
        .map(|(key, value)| format!("--{key} {value}"))
        .collect();
    options.push(format!("--node {node}"));
    options.sort();
    format!("vzdump {} {}", ids.join(" "), options.join(" "))
}

fn begin(world: &mut World, job: &Job, order: BackupRequest) -> Result<Step, String> {
    job.log(world, format!("INFO: starting new backup job: {}", order.command));
    let storage = world.storage_on(&order.storage, &order.node).map_err(|why| {
        let (id, why) = (&order.storage, why.text());
        format!(
            "could not activate storage '{id}': {why} could not get storage information for '{id}': {why}"
        )
    })?;
    if !storage.holds("backup") {
        let id = &order.storage;
        return Err(format!(
            "could not get storage information for '{id}': can't use storage '{id}' for backups - wrong content type"
        ));
    }
    next(world, job, order, 0, false)
}

/// One guest after the other.
fn next(world: &mut World, job: &Job, order: BackupRequest, at: usize, failed: bool) -> Result<Step, String> {
    let Some(vmid) = order.vmids.get(at).copied() else {
        if failed {
            job.log(world, "INFO: Backup job finished with errors");
            return Err("job errors".to_owned());
        }
        job.log(world, "INFO: Backup job finished successfully");
        return Ok(Step::Done);
    };
    let Some(guest) = world.guests.get(&vmid) else {
        job.log(world, format!("ERROR: Backup of VM {vmid} failed - unable to find VM '{vmid}'"));
        return next(world, job, order, at + 1, true);
    };
    let kind = guest.kind;
    let state = if guest.power.running { "running" } else { "stopped" };
    job.log(world, format!("INFO: Starting Backup of VM {vmid} ({})", kind.name()));
    job.log(world, format!("INFO: Backup started at {}", stamp(world.now(), "%Y-%m-%d %H:%M:%S")));
    job.log(world, format!("INFO: status = {state}"));
    job.log(world, format!("INFO: backup mode: {}", order.mode));
    let key = match kind {
        GuestKind::Qemu => LockKey::Qemu(vmid),
        GuestKind::Lxc => LockKey::Lxc(vmid),
    };
    Ok(Step::lock(key.clone(), move |world, _| {
        if let Some(guest) = world.guests.get_mut(&vmid) {
            if guest.lock().is_some() {
                let text = format!("{} is locked ({})", guest.word(), guest.lock().unwrap_or_default());
                return Err(text);
            }
            guest.config.insert("lock".into(), "backup".into());
        }
        Ok(Step::wait(2.0, move |world, job| {
            unlock(world, vmid);
            let outcome = save(world, job, &order, vmid);
            world.tasks.unlock(&key, job.id);
            if let Err(refusal) = &outcome {
                let text = refusal.text();
                job.log(world, format!("ERROR: Backup of VM {vmid} failed - {text}"));
                job.log(world, format!("INFO: Failed at {}", stamp(world.now(), "%Y-%m-%d %H:%M:%S")));
            } else {
                job.log(world, format!("INFO: Finished Backup of VM {vmid} (00:00:02)"));
            }
            next(world, job, order, at + 1, failed || outcome.is_err())
        })
        .or_undo(move |world| unlock(world, vmid)))
    }))
}

fn unlock(world: &mut World, vmid: u32) {
    if let Some(guest) = world.guests.get_mut(&vmid) {
        guest.config.remove("lock");
    }
}

fn stamp(now: i64, pattern: &str) -> String {
    Timestamp::from_second(now).unwrap_or_default().strftime(pattern).to_string()
}

/// Writes the archive of one guest.
fn save(world: &mut World, job: &Job, order: &BackupRequest, vmid: u32) -> Result<(), Refusal> {
    let Some(guest) = world.guests.get(&vmid).cloned() else {
        return Err(no(format!("unable to find VM '{vmid}'")));
    };
    let storage = world.storage_on(&order.storage, &order.node)?.clone();
    let archive = if guest.kind == GuestKind::Qemu { "vma" } else { "tar" };
    let format = match order.compress.as_str() {
        "zstd" => format!("{archive}.zst"),
        "gzip" => format!("{archive}.gz"),
        "1" | "lzo" => format!("{archive}.lzo"),
        _ => archive.to_owned(),
    };
    // A second archive within the same second is named after the next one.
    let mut now = world.now();
    let name = loop {
        let date = stamp(now, "%Y_%m_%d-%H_%M_%S");
        let name = format!("backup/vzdump-{}-{vmid}-{date}.{format}", guest.kind.name());
        if world.volumes.get(&place(&storage, order, &name)).is_none() {
            break name;
        }
        now += 1;
    };
    job.log(world, format!("INFO: creating vzdump archive '{}'", storage.path(&name)));
    // The one node has a plain QEMU, without the backup job that Proxmox adds to it.
    if guest.kind == GuestKind::Qemu && world.kind == WorldKind::Single {
        return Err(no(
            "executing QMP command to start backup failed - The command backup has not been found",
        ));
    }
    let size = archive_size(world, &guest);
    if size > world.storage_free(&storage, &order.node) {
        return Err(no("vzdump: No space left on device"));
    }
    job.log(world, format!("INFO: archive file size: {}MB", size >> 20));
    let bare = Guest { pending: Default::default(), snapshots: Default::default(), ..guest.clone() };
    let volume = Volume {
        content: "backup".into(),
        format,
        size,
        vmid: Some(vmid),
        notes: order.notes.as_deref().map(|template| notes(template, &guest)),
        protected: order.protected,
        ctime: now,
        inner: Some(bare.text()),
        ..Volume::default()
    };
    if let Some(notes) = &volume.notes {
        job.log(world, format!("INFO: adding notes to backup: {notes}"));
    }
    world.volumes.insert(place(&storage, order, &name), volume);
    Ok(())
}

fn place(storage: &Storage, order: &BackupRequest, name: &str) -> crate::world::volume::VolumeKey {
    (storage.id.clone(), storage.scope(&order.node), name.to_owned())
}

/// Disks are mostly empty, and archives leave that out.
fn archive_size(world: &World, guest: &Guest) -> u64 {
    let disks = world.volumes.iter().filter(|(_, v)| v.vmid == Some(guest.vmid) && v.content != "backup");
    (1 << 20) + disks.map(|(_, volume)| volume.size / 1024).sum::<u64>()
}

/// Fills in what a template of notes may name.
fn notes(template: &str, guest: &Guest) -> String {
    let name = match guest.kind {
        GuestKind::Qemu => qemu::status::name(guest),
        GuestKind::Lxc => lxc::status::name(guest),
    };
    template
        .replace("{{guestname}}", &name)
        .replace("{{vmid}}", &guest.vmid.to_string())
        .replace("{{node}}", &guest.node)
        .replace("{{cluster}}", "standalone node")
        .replace("\\n", "\n")
}

fn defaults(call: &mut Call<'_>) -> Reply {
    let id = call.args.text("storage").unwrap_or("local");
    call.check_any(&format!("/storage/{id}"), &["Datastore.Audit", "Datastore.AllocateSpace"])?;
    let storage = call.world.storage(id)?;
    let keep = storage.prop("prune-backups").unwrap_or("keep-all=1");
    let folder = storage.prop("path").map(|path| format!("{path}/dump"));
    let mut data = json!({
        "storage": id, "prune-backups": keep, "all": 0, "bwlimit": 0, "compress": "0",
        "fleecing": { "enabled": 0 }, "ionice": 7, "lockwait": 180, "mailnotification": "always",
        "mode": "snapshot", "notification-mode": "auto",
        "performance": { "max-workers": 16, "pbs-entries-max": 1_048_576 }, "pigz": 0, "quiet": 0, "remove": 1,
        "stdexcludes": 1, "stop": 0, "stopwait": 10, "zstd": 1,
    });
    if let Some(folder) = folder {
        data["dumpdir"] = json!(folder);
    }
    Ok(data.into())
}

fn extract_config(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let volid = call.args.must("volume").to_owned();
    if let Some((storage, name)) = parse_volume_id(&volid) {
        let named = parse_name(call.world, storage, name)?;
        if named.content != "backup" {
            return Err(no(format!("unable to use volume {volid} - content type needs to be 'backup'")));
        }
        check_volume(call, None, &volid)?;
        let owner = named.vmid.unwrap_or_default();
        call.check(&format!("/vms/{owner}"), &["VM.Backup"])?;
    } else {
        check_volume(call, None, &volid)?;
    }
    let Some(volume) = call.world.volume(&volid, &node) else {
        return Err(no(format!("volume '{volid}' does not exist")));
    };
    match volume.inner.clone() {
        Some(text) => Ok(json!(text).into()),
        None => Err(no(format!("Could not find backup config in '{volid}'"))),
    }
}
