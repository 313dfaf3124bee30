//! Backup jobs of the cluster. They are kept, and shown with their next run, but nothing runs them.

use serde_json::{Map, Value, json};

use super::section::{self, Props};
use super::{calendar, lxc, qemu, vzdump};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, no, post, put, text, wrong,
};
use crate::world::cluster::Section;
use crate::world::{Guest, GuestKind, World};

const FILE: &str = "backup";

pub fn routes() -> Vec<Route> {
    let audit = || on("/", &["Sys.Audit"]);
    let modify = || on("/", &["Sys.Modify"]);
    let one = "/cluster/backup/{id}";
    let new_id = text("id").format(format::configid).opt();
    let create_params = [fields(), vec![new_id]].concat();
    let update_params = [fields(), vec![id(), usual::delete()]].concat();
    vec![
        get("/cluster/backup", audit(), vec![], list),
        post("/cluster/backup", modify(), create_params, create),
        get(one, audit(), vec![id()], |call| {
            let id = call.args.must("id");
            match call.world.cluster.section(FILE, id) {
                Some(section) => Ok(Value::Object(view(id, section)).into()),
                None => Err(missing(id)),
            }
        }),
        put(one, modify(), update_params, update),
        delete(one, modify(), vec![id()], |call| {
            let id = call.args.must("id").to_owned();
            match call.world.cluster.file_mut(FILE).shift_remove(&id) {
                Some(_) => Ok(().into()),
                None => Err(job_layer("id", &format!("No such job '{id}'"))),
            }
        }),
        get("/cluster/backup/{id}/included_volumes", audit(), vec![id()], included),
        get("/cluster/backup-info", Perm::Root, vec![], |_| super::index::subdirs(&["not-backed-up"])),
        get("/cluster/backup-info/not-backed-up", audit(), vec![], not_backed_up),
    ]
}

fn id() -> Param {
    text("id").max_len(50).pattern(r"\S+")
}

fn missing(id: &str) -> Refusal {
    wrong("id", format!("No such job '{id}'"))
}

/// What the layer below the API refuses comes out as an error of the server.
fn job_layer(name: &str, text: &str) -> Refusal {
    no(format!("400 Parameter verification failed.\n{name}: {text}"))
}

fn fields() -> Vec<Param> {
    let mut fields = vzdump::settings();
    fields.extend([
        text("comment").max_len(512).opt(),
        text("dow").each(calendar::weekday).needs("starttime").opt(),
        flag("enabled").opt(),
        text("node").format(format::node).opt(),
        flag("repeat-missed").opt(),
        text("schedule").format(calendar::event).max_len(128).opt(),
        text("starttime").pattern(r"\d{1,2}:\d{1,2}").opt(),
    ]);
    fields
}

fn view(id: &str, section: &Section) -> Map<String, Value> {
    let mut row = section::typed_all(&fields(), &section.props);
    for (key, first) in [("fleecing", "enabled"), ("performance", ""), ("prune-backups", "")] {
        if let Some(text) = section.props.get(key) {
            row.insert(key.into(), taken_apart(text, first));
        }
    }
    row.insert("id".into(), json!(id));
    row.insert("type".into(), json!("vzdump"));
    row
}

/// A text of pairs as an object, unlike anywhere else; `first` is the key of a value that comes without one.
fn taken_apart(text: &str, first: &str) -> Value {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((first, part));
        let value = if matches!(key, "enabled" | "keep-all") { section::number(value) } else { json!(value) };
        (key.to_owned(), value)
    };
    text.split(',').map(pair).collect::<Map<_, _>>().into()
}

fn list(call: &mut Call<'_>) -> Reply {
    let now = call.world.now();
    let rows: Vec<Value> = call
        .world
        .cluster
        .file(FILE)
        .map(|(id, section)| {
            let mut row = view(id, section);
            let schedule = section.props.get("schedule").and_then(|text| calendar::Event::parse(text));
            if let Some(next) = schedule.and_then(|event| event.next(now)) {
                row.insert("next-run".into(), json!(next));
            }
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

/// The schedule of a request: given as such, or in the old way by a time and days.
fn schedule(props: &mut Props, required: bool) -> Result<(), Refusal> {
    let start = props.shift_remove("starttime");
    let days = props.shift_remove("dow");
    match (props.contains_key("schedule"), start) {
        (true, Some(_)) => Err(wrong("starttime", "'starttime' and 'schedule' cannot both be set")),
        (false, None) if required => Err(wrong("schedule", "neither 'starttime' nor 'schedule' were set")),
        (false, Some(start)) => {
            let schedule = days.map_or_else(|| start.clone(), |days| format!("{days} {start}"));
            props.insert("schedule".into(), schedule);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Which guests a job is about must be said, and only once.
fn check_selection(props: &Props, complete: bool) -> Result<(), Refusal> {
    let on = |key: &str| props.get(key).is_some_and(|value| !value.is_empty() && value != "0");
    for key in ["all", "exclude", "pool"] {
        if on(key) && on("vmid") {
            return Err(job_layer(key, "option conflicts with option 'vmid'"));
        }
    }
    let any = ["all", "stop", "pool", "vmid", "exclude"].iter().any(|key| on(key));
    if complete && !any { Err(job_layer("vmid", "property is missing")) } else { Ok(()) }
}

fn create(call: &mut Call<'_>) -> Reply {
    vzdump::check_root_only(call, &[])?;
    let mut props = section::given(call, &["id"]);
    if let Some(pool) = call.args.filled("pool") {
        call.check_pool(pool)?;
    }
    schedule(&mut props, true)?;
    props.entry("enabled".into()).or_insert_with(|| "1".into());
    let id = match call.args.owned("id") {
        Some(id) => id,
        None => {
            let count = call.world.cluster.file(FILE).count().to_string();
            format!("backup-{}", &call.world.uuid(&["backup-job", &count])[..13])
        }
    };
    if call.world.cluster.section(FILE, &id).is_some() {
        return Err(no(format!("Job '{id}' already exists")));
    }
    check_selection(&props, true)?;
    call.world.cluster.file_mut(FILE).insert(id, Section { kind: "vzdump".into(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    let mut set = section::given(call, &["id", "delete"]);
    schedule(&mut set, false)?;
    let unset = call.args.list("delete");
    vzdump::check_root_only(call, &unset)?;
    if set.is_empty() && unset.is_empty() {
        return Err(no("no options specified"));
    }
    check_selection(&set, false)?;
    let Some(mut section) = call.world.cluster.section(FILE, &id).cloned() else {
        return Err(no("no such vzdump job"));
    };
    let known = fields();
    for key in &unset {
        // A job has a schedule.
        if key == "schedule" || !known.iter().any(|p| p.name == key.as_str()) {
            return Err(job_layer("delete", &format!("unknown option '{key}'")));
        }
        section.props.shift_remove(key);
    }
    // What selects guests takes the place of what selected them before.
    let doomed: &[&str] = if set.contains_key("vmid") {
        &["all", "exclude", "pool"]
    } else if set.get("all").is_some_and(|all| all == "1") {
        &["vmid", "pool"]
    } else if set.contains_key("pool") {
        &["vmid", "all", "exclude"]
    } else {
        &[]
    };
    section.props.retain(|key, _| !doomed.contains(&key.as_str()));
    section.props.extend(set);
    check_selection(&section.props, true)?;
    call.world.cluster.file_mut(FILE).insert(id, section);
    Ok(().into())
}

/// Whether a job is about a guest.
fn covers(world: &World, job: &Section, vmid: u32) -> bool {
    let listed = |key: &str| {
        let list = job.props.get(key).map_or("", String::as_str);
        list.split(',').any(|id| id == vmid.to_string())
    };
    let pool = job.props.get("pool").and_then(|pool| world.pools.get(pool));
    let all = job.props.get("all").is_some_and(|all| all == "1");
    (all && !listed("exclude")) || listed("vmid") || pool.is_some_and(|p| p.vms.contains(&vmid))
}

/// Whether a volume of a guest is part of its backups, and why.
fn reason(guest: &Guest, key: &str, value: &str) -> (bool, &'static str) {
    let option = value.split(',').find_map(|part| part.strip_prefix("backup="));
    match guest.kind {
        GuestKind::Lxc if key == "rootfs" => (true, "rootfs"),
        GuestKind::Lxc if value.starts_with('/') => (false, "not a volume"),
        GuestKind::Lxc if option == Some("1") => (true, "enabled"),
        GuestKind::Lxc => (false, "disabled"),
        GuestKind::Qemu if key.starts_with("efidisk") && guest.get("bios") != Some("ovmf") => {
            (false, "efidisk but no OVMF BIOS")
        }
        // The original takes every mention of the option for a no.
        GuestKind::Qemu => (option != Some("0"), if option.is_some() { "backup=no" } else { "backup=yes" }),
    }
}

/// The volumes that a job saves, guest by guest.
fn included(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    let Some(job) = call.world.cluster.section(FILE, id) else { return Err(missing(id)) };
    let node = job.props.get("node");
    let named = job.props.get("vmid").map_or("", String::as_str);
    let gone = named.split(',').filter_map(|id| id.parse::<u32>().ok());
    let gone = gone.filter(|vmid| !call.world.guests.contains_key(vmid));
    let mut rows: Vec<(u32, Value)> =
        gone.map(|vmid| (vmid, json!({ "id": vmid, "type": "unknown", "leaf": 1 }))).collect();
    for guest in call.world.guests.values().filter(|guest| covers(call.world, job, guest.vmid)) {
        let vmid = guest.vmid;
        if node.is_some_and(|node| *node != guest.node) || !call.may(&format!("/vms/{vmid}"), "VM.Audit") {
            continue;
        }
        let slots = guest.config.iter().filter(|(key, value)| match guest.kind {
            GuestKind::Qemu => qemu::drive::is_slot(key) && !value.contains("media=cdrom"),
            GuestKind::Lxc => lxc::schema::is_mount(key),
        });
        let volumes: Vec<Value> = slots
            .map(|(key, value)| {
                let (included, why) = reason(guest, key, value);
                let name = value.split(',').next().unwrap_or_default().trim_start_matches("volume=");
                json!({
                    "id": format!("{vmid}:{key}"), "name": name, "included": u8::from(included), "reason": why,
                    "leaf": 1,
                })
            })
            .collect();
        let name = guest.get("name").or(guest.get("hostname"));
        let row = json!({
            "id": vmid, "type": guest.kind.name(), "name": name, "leaf": u8::from(volumes.is_empty()),
            "children": volumes,
        });
        rows.push((vmid, row));
    }
    rows.sort_by_key(|(vmid, _)| *vmid);
    Ok(json!({ "children": rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>() }).into())
}

fn not_backed_up(call: &mut Call<'_>) -> Reply {
    let jobs: Vec<&Section> = call.world.cluster.file(FILE).map(|(_, section)| section).collect();
    let covered = |vmid: u32| jobs.iter().any(|job| covers(call.world, job, vmid));
    let rows: Vec<Value> = call
        .world
        .guests
        .values()
        .filter(|guest| !covered(guest.vmid) && call.may(&format!("/vms/{}", guest.vmid), "VM.Audit"))
        .map(|guest| {
            let name = guest.get("name").or(guest.get("hostname"));
            json!({ "vmid": guest.vmid, "type": guest.kind.name(), "name": name })
        })
        .collect();
    Ok(Value::Array(rows).into())
}
