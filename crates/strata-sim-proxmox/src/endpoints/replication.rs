//! Replication of guests to other nodes: jobs, and how they go.

use serde_json::{Map, Value, json};

use super::index::listing;
use super::section::{self, Options};
use super::{calendar, lxc, qemu};
use crate::api::param::usual;
use crate::api::{
    Answer, Call, Param, Perm, Refusal, Reply, Route, delete, flag, forbidden, format, get, int, no, number,
    post, put, text, wrong,
};
use crate::world::cluster::Section;
use crate::world::replication::FILE;

const OPTIONS: Options = Options {
    required: &["target"],
    optional: &["disable", "comment", "rate", "schedule", "remove_job", "source"],
};

pub fn routes() -> Vec<Route> {
    let one = "/cluster/replication/{id}";
    let on_node = || vec![usual::node(), id()];
    let place = || vec![text("target").format(format::node), text("type").one_of(&["local"])];
    let doomed = vec![id(), flag("force").opt(), flag("keep").opt()];
    let window = vec![int("limit").min(0.0).opt(), int("start").min(0.0).opt()];
    vec![
        get("/cluster/replication", Perm::Anyone, vec![], list),
        post("/cluster/replication", Perm::Anyone, [fields(), place()].concat(), create),
        get(one, Perm::Anyone, vec![id()], show),
        put(
            one,
            Perm::Anyone,
            [fields(), vec![usual::delete().max_len(4096), usual::digest()]].concat(),
            update,
        ),
        delete(one, Perm::Anyone, doomed, remove),
        get(
            "/nodes/{node}/replication",
            Perm::Anyone,
            vec![usual::node(), usual::vmid_as("guest").opt()],
            node_list,
        ),
        get("/nodes/{node}/replication/{id}", Perm::Anyone, on_node(), |_| {
            listing("name", &["schedule_now", "log", "status"])
        })
        .anywhere(),
        get("/nodes/{node}/replication/{id}/status", Perm::Anyone, on_node(), status),
        get("/nodes/{node}/replication/{id}/log", Perm::Anyone, [on_node(), window].concat(), log),
        post("/nodes/{node}/replication/{id}/schedule_now", Perm::Anyone, on_node(), run_now),
    ]
}

fn job_id(value: &str) -> Result<(), String> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let message = format!("invalid replication job id '{value}'");
    match value.split_once('-') {
        Some((guest, number)) if digits(guest) && digits(number) => match guest.parse::<u64>() {
            Ok(guest) if guest < 100 => Err(format!("{message} (guest IDs < 100 are reserved)\n")),
            _ => Ok(()),
        },
        _ => Err(format!("{message}\n")),
    }
}

fn id() -> Param {
    text("id").format(job_id)
}

fn fields() -> Vec<Param> {
    vec![
        id(),
        text("comment").max_len(4096).opt(),
        flag("disable").opt(),
        number("rate").min(1.0).opt(),
        text("remove_job").one_of(&["local", "full"]).opt(),
        text("schedule").format(calendar::event).max_len(128).opt(),
        text("source").format(format::node).opt(),
    ]
}

/// The guest that a job is of.
fn guest(id: &str) -> u32 {
    id.split('-').next().and_then(|guest| guest.parse().ok()).unwrap_or_default()
}

/// Whether this caller is told of a job.
pub fn may_see(call: &Call<'_>, id: &str) -> bool {
    call.may(&format!("/vms/{}", guest(id)), "VM.Audit")
}

fn missing(id: &str) -> Refusal {
    no(format!("no such replication job '{id}'"))
}

fn row(id: &str, section: &Section) -> Map<String, Value> {
    let mut row = section::typed_all(&fields(), &section.props);
    row.insert("id".into(), json!(id));
    row.insert("type".into(), json!(section.kind));
    row.insert("guest".into(), json!(guest(id)));
    let number = id.split('-').nth(1).and_then(|number| number.parse::<u64>().ok());
    row.insert("jobnum".into(), json!(number));
    row
}

fn list(call: &mut Call<'_>) -> Reply {
    let mut jobs: Vec<(&str, &Section)> = call.world.cluster.file(FILE).collect();
    jobs.sort_by_key(|(id, _)| *id);
    jobs.retain(|(id, _)| may_see(call, id));
    Ok(Value::Array(jobs.into_iter().map(|(id, job)| Value::Object(row(id, job))).collect()).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    let Some(job) = call.world.cluster.section(FILE, id) else { return Err(missing(id)) };
    call.check(&format!("/vms/{}", guest(id)), &["VM.Audit"])?;
    let mut row = row(id, job);
    row.insert("digest".into(), json!(section::file_digest(call.world, FILE)));
    Ok(Value::Object(row).into())
}

/// Every disk that is replicated must be on a storage that can.
fn check_volumes(call: &Call<'_>, vmid: u32) -> Result<(), Refusal> {
    let Some(guest) = call.world.guests.get(&vmid) else { return Ok(()) };
    let mut found = false;
    for (_, value) in
        guest.config.iter().filter(|(key, _)| qemu::drive::is_slot(key) || lxc::schema::is_mount(key))
    {
        let mut parts = value.split(',');
        let volume = parts.next().unwrap_or_default().trim_start_matches("volume=");
        let Some((storage, _)) = volume.split_once(':') else { continue };
        let left_out = parts.any(|part| matches!(part, "replicate=0" | "media=cdrom"));
        let Some(storage) = call.world.storages.get(storage).filter(|_| !left_out) else { continue };
        if storage.kind != "zfspool" {
            return Err(no(format!("missing replicate feature on volume '{volume}'")));
        }
        found = true;
    }
    if found { Ok(()) } else { Err(no("No replicatable volumes found")) }
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    let vmid = guest(&id);
    call.check(&format!("/vms/{vmid}"), &["VM.Replicate"])?;
    let Some(source) = call.world.guests.get(&vmid).map(|guest| guest.node.clone()) else {
        return Err(no(format!("Guest '{vmid}' does not exist.")));
    };
    let target = call.args.must("target").to_owned();
    // A node that is in no cluster has no members.
    if call.world.cluster.name.is_empty() || !call.world.nodes.contains_key(&target) {
        return Err(no(format!("Target '{target}' does not exist.")));
    }
    if let Some(given) = call.args.text("source").filter(|given| *given != source) {
        let text = format!("Source '{given}' does not match current node of guest '{vmid}' ({source})");
        return Err(no(text));
    }
    if target == source {
        return Err(no("Source and target must not be identical"));
    }
    check_volumes(call, vmid)?;
    if call.world.cluster.section(FILE, &id).is_some() {
        return Err(no(format!("replication job '{id}' already exists")));
    }
    let mut props = section::given(call, &["id", "type"]);
    props.insert("source".into(), source);
    OPTIONS.check(&props, true)?;
    let twin =
        |(other, job): (&str, &Section)| guest(other) == vmid && job.props.get("target") == Some(&target);
    if call.world.cluster.file(FILE).any(twin) {
        let text = format!("replication job for guest '{vmid}' to target 'local/{target}' already exists");
        return Err(no(text));
    }
    call.world.cluster.file_mut(FILE).insert(id, Section { kind: "local".into(), props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    call.check(&format!("/vms/{}", guest(&id)), &["VM.Replicate"])?;
    call.check_digest(&section::file_digest(call.world, FILE))?;
    let Some(mut job) = call.world.cluster.section(FILE, &id).cloned() else {
        return Err(no(format!("no such job '{id}'")));
    };
    let set = section::given(call, &["id", "delete", "digest"]);
    OPTIONS.check(&set, false)?;
    job.props.extend(set);
    for key in call.args.list("delete") {
        if !OPTIONS.knows(&key) {
            return Err(no(format!("no such option '{key}'")));
        }
        if key == "target" {
            return Err(no(format!("unable to delete required option '{key}'")));
        }
        job.props.shift_remove(&key);
    }
    call.world.cluster.file_mut(FILE).insert(id, job);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    call.check(&format!("/vms/{}", guest(&id)), &["VM.Replicate"])?;
    let (force, keep) = (call.args.is_set("force"), call.args.is_set("keep"));
    if force {
        if keep {
            return Err(wrong("keep", "conflicts with parameter 'force'"));
        }
        call.world.cluster.file_mut(FILE).shift_remove(&id);
        return Ok(().into());
    }
    match call.world.cluster.file_mut(FILE).get_mut(&id) {
        // The scheduler removes it, and what it copied.
        Some(job) => drop(job.props.insert("remove_job".into(), if keep { "local" } else { "full" }.into())),
        None => return Err(no(format!("no such job '{id}'"))),
    }
    Ok(().into())
}

/// A job of a guest on this node, with how it goes.
fn progress(call: &Call<'_>, id: &str) -> Option<Map<String, Value>> {
    let job = call.world.cluster.section(FILE, id)?;
    let guest = call.world.guests.get(&guest(id)).filter(|guest| guest.node == call.args.must("node"))?;
    let mut row = row(id, job);
    row.insert("vmtype".into(), json!(guest.kind.name()));
    row.insert("next_sync".into(), json!(call.world.next_sync(id)));
    let known = call.world.daemons.replication.jobs.get(id).cloned().unwrap_or_default();
    row.insert("last_sync".into(), json!(known.last_sync));
    row.insert("last_try".into(), json!(known.last_try));
    row.insert("fail_count".into(), json!(0));
    if known.last_sync > 0 {
        row.insert("duration".into(), json!(known.duration));
    }
    Some(row)
}

fn node_list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.int("guest");
    let mut ids: Vec<&str> = call.world.cluster.file(FILE).map(|(id, _)| id).collect();
    ids.sort_unstable();
    let rows = ids
        .into_iter()
        .filter(|id| wanted.is_none_or(|wanted| i64::from(guest(id)) == wanted))
        .filter(|id| may_see(call, id))
        .filter_map(|id| progress(call, id).map(Value::Object));
    Ok(Value::Array(rows.collect()).into())
}

fn status(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    let row = progress(call, id).ok_or_else(|| missing(id))?;
    call.check(&format!("/vms/{}", guest(id)), &["VM.Audit"])?;
    Ok(Value::Object(row).into())
}

fn log(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    if call.world.cluster.section(FILE, id).is_none() {
        return Err(missing(id));
    }
    let may = may_see(call, id) || call.may(&format!("/nodes/{}", call.args.must("node")), "Sys.Audit");
    if !may {
        return Err(forbidden(""));
    }
    let lines =
        call.world.daemons.replication.jobs.get(id).map(|known| known.log.clone()).unwrap_or_default();
    let start = usize::try_from(call.args.int("start").unwrap_or(0)).unwrap_or_default();
    let limit = usize::try_from(call.args.int("limit").unwrap_or(50)).unwrap_or_default();
    let total = lines.len();
    let shown = lines.into_iter().enumerate().skip(start).take(if limit == 0 { usize::MAX } else { limit });
    let mut rows: Vec<Value> = shown.map(|(n, line)| json!({ "n": n + 1, "t": line })).collect();
    if rows.is_empty() {
        rows.push(json!({ "n": 1, "t": "no content" }));
    }
    Ok(Answer { data: Value::Array(rows), total: Some(total.max(1)), ..Answer::default() })
}

fn run_now(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id").to_owned();
    call.check(&format!("/vms/{}", guest(&id)), &["VM.Replicate"])?;
    if call.world.cluster.section(FILE, &id).is_none() {
        return Err(missing(&id));
    }
    if let Some(known) = call.world.daemons.replication.jobs.get_mut(&id) {
        known.last_try = 0;
    }
    Ok(().into())
}
