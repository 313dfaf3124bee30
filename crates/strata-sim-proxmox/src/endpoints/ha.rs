//! High availability: which guests are managed, and rules about where they may be. `world/ha.rs` acts on it, rules aside.

use serde_json::{Value, json};

use super::index::listing;
use super::section::{self, Options, Props};
use crate::api::args::split_list;
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, no, post, put, text,
};
use crate::world::cluster::Section;
use crate::world::ha::{Command, RESOURCES};
use crate::world::{GuestKind, World};

const RULES: &str = "ha/rules";

pub fn routes() -> Vec<Route> {
    let audit = || on("/", &["Sys.Audit"]);
    let manage = || on("/", &["Sys.Console"]);
    let kind = || text("type").one_of(&["ct", "vm"]).opt();
    let edit = || vec![usual::delete().max_len(4096), usual::digest()];
    let moving = || vec![sid(), text("node").format(format::node)];
    vec![
        get("/cluster/ha", Perm::Anyone, vec![], |_| {
            listing("id", &["status", "resources", "groups", "rules"])
        }),
        get("/cluster/ha/status", audit(), vec![], |_| listing("name", &["current", "manager_status"])),
        get("/cluster/ha/status/current", audit(), vec![], status),
        get("/cluster/ha/status/manager_status", audit(), vec![], |_| {
            Ok(json!({ "manager_status": {}, "quorum": { "quorate": "1" }, "lrm_status": {} }).into())
        }),
        get("/cluster/ha/groups", audit(), vec![], |_| Err(migrated("cannot index groups"))),
        post("/cluster/ha/groups", manage(), group_params(true), |_| Err(migrated("cannot create group"))),
        get("/cluster/ha/groups/{group}", audit(), vec![group()], |_| Err(migrated("cannot read group"))),
        put("/cluster/ha/groups/{group}", manage(), [group_params(false), edit()].concat(), |_| {
            Err(migrated("cannot update group"))
        }),
        delete("/cluster/ha/groups/{group}", manage(), vec![group()], |_| {
            Err(migrated("cannot delete group"))
        }),
        get("/cluster/ha/resources", audit(), vec![kind()], list),
        post("/cluster/ha/resources", manage(), [resource_params(), vec![kind()]].concat(), create),
        get("/cluster/ha/resources/{sid}", audit(), vec![sid()], show),
        put("/cluster/ha/resources/{sid}", manage(), [resource_params(), edit()].concat(), update),
        delete("/cluster/ha/resources/{sid}", manage(), vec![sid(), flag("purge").opt()], remove),
        post("/cluster/ha/resources/{sid}/migrate", manage(), moving(), |call| request_move(call, true)),
        post("/cluster/ha/resources/{sid}/relocate", manage(), moving(), |call| request_move(call, false)),
        get("/cluster/ha/rules", audit(), vec![rule_type().opt(), text("resource").opt()], list_rules),
        post("/cluster/ha/rules", manage(), rule_params(true), create_rule),
        get("/cluster/ha/rules/{rule}", audit(), vec![rule()], show_rule),
        put("/cluster/ha/rules/{rule}", manage(), [rule_params(false), edit()].concat(), update_rule),
        delete("/cluster/ha/rules/{rule}", manage(), vec![rule()], |call| {
            let id = call.args.must("rule").to_owned();
            call.world.cluster.file_mut(RULES).shift_remove(&id);
            Ok(().into())
        }),
    ]
}

fn migrated(what: &str) -> Refusal {
    no(format!("{what}: ha groups have been migrated to rules"))
}

fn service_id(value: &str) -> Result<(), String> {
    let named = value.split_once(':').is_some_and(|(kind, name)| {
        !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_lowercase()) && !name.is_empty()
    });
    let ok = named && !value.contains(char::is_whitespace);
    if ok { Ok(()) } else { Err("value does not look like a valid ha resource id\n".to_owned()) }
}

fn service_or_vmid(value: &str) -> Result<(), String> {
    let number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    if number { Ok(()) } else { service_id(value) }
}

fn node_with_priority(value: &str) -> Result<(), String> {
    let (node, priority) = value.split_once(':').unwrap_or((value, "0"));
    let ok = format::node(node).is_ok() && priority.parse::<u32>().is_ok();
    if ok { Ok(()) } else { Err("value does not look like a valid ha node\n".to_owned()) }
}

fn sid() -> Param {
    text("sid").format(service_or_vmid)
}

fn rule() -> Param {
    text("rule").format(format::configid)
}

fn rule_type() -> Param {
    text("type").one_of(&["node-affinity", "resource-affinity"])
}

fn resource_params() -> Vec<Param> {
    vec![
        sid(),
        text("state").one_of(&["started", "stopped", "enabled", "disabled", "ignored"]).opt(),
        text("group").format(format::configid).opt(),
        flag("failback").opt(),
        int("max_restart").min(0.0).opt(),
        int("max_relocate").min(0.0).opt(),
        text("comment").max_len(4096).opt(),
    ]
}

fn rule_params(creating: bool) -> Vec<Param> {
    let resources = text("resources").each(service_id);
    vec![
        rule(),
        rule_type(),
        if creating { resources } else { resources.opt() },
        text("nodes").each(node_with_priority).opt(),
        text("affinity").one_of(&["positive", "negative"]).opt(),
        flag("strict").opt(),
        flag("disable").opt(),
        text("comment").max_len(4096).opt(),
    ]
}

fn group() -> Param {
    text("group").format(format::configid)
}

fn group_params(creating: bool) -> Vec<Param> {
    let nodes = text("nodes").each(node_with_priority);
    let mut params = vec![
        group(),
        if creating { nodes } else { nodes.opt() },
        text("comment").max_len(4096).opt(),
        flag("nofailback").opt(),
        flag("restricted").opt(),
    ];
    if creating {
        params.push(text("type").one_of(&["group"]).opt());
    }
    params
}

fn status(call: &mut Call<'_>) -> Reply {
    let node = call.world.nodes.keys().next().cloned().unwrap_or_default();
    let mut rows = vec![
        json!({ "id": "quorum", "type": "quorum", "node": node, "status": "OK", "quorate": 1 }),
        json!({
            "id": "fencing", "type": "fencing", "node": node, "armed-state": "standby",
            "status": "standby (CRM watchdog standby)",
        }),
    ];
    for (sid, section) in call.world.cluster.file(RESOURCES) {
        let vmid = sid.split(':').nth(1).and_then(|id| id.parse::<u32>().ok());
        let guest = vmid.and_then(|vmid| call.world.guests.get(&vmid));
        let state = section.props.get("state").map_or("started", String::as_str);
        let known = call.world.crm_state(sid).unwrap_or("queued");
        rows.push(json!({
            "id": format!("service:{sid}"), "type": "service", "sid": sid, "state": known,
            "request_state": state, "node": guest.map(|g| g.node.clone()),
            "status": format!("{sid} ({}, {known})", guest.map_or("-", |g| g.node.as_str())),
        }));
    }
    Ok(Value::Array(rows).into())
}

/// The full id of a service: a bare VMID stands for the guest that has it.
fn full_id(call: &Call<'_>) -> Result<String, Refusal> {
    let given = call.args.must("sid");
    if given.contains(':') {
        return Ok(given.to_owned());
    }
    let guest = given.parse::<u32>().ok().and_then(|vmid| call.world.guests.get(&vmid));
    match guest.map(|guest| guest.kind) {
        Some(GuestKind::Qemu) => Ok(format!("vm:{given}")),
        Some(GuestKind::Lxc) => Ok(format!("ct:{given}")),
        None => Err(no(format!("unable do detect SID from VMID - VM/CT {given} does not exist"))),
    }
}

fn view(call: &Call<'_>, sid: &str, section: &Section) -> Value {
    let mut row = section::typed_all(&resource_params(), &section.props);
    row.insert("sid".into(), json!(sid));
    row.insert("type".into(), json!(section.kind));
    row.insert("digest".into(), json!(section::file_digest(call.world, RESOURCES)));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let all = call.world.cluster.file(RESOURCES);
    let rows: Vec<Value> = all
        .filter(|(_, section)| wanted.is_none_or(|kind| section.kind == kind))
        .map(|(sid, section)| view(call, sid, section))
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let sid = full_id(call)?;
    match call.world.cluster.section(RESOURCES, &sid) {
        Some(section) => Ok(view(call, &sid, section).into()),
        None => Err(no(format!("no such resource '{sid}'"))),
    }
}

const RESOURCE: Options = Options {
    required: &[],
    optional: &["state", "group", "comment", "failback", "max_restart", "max_relocate"],
};

fn check_guest(call: &Call<'_>, sid: &str) -> Result<(), Refusal> {
    let (kind, name) = sid.split_once(':').unwrap_or_default();
    if !matches!(kind, "vm" | "ct") {
        return Err(no(format!("unknown section type '{kind}'")));
    }
    let vmid = name.parse::<u32>().map_err(|_| no("invalid VMID"))?;
    // Whether the guest is of that kind is not looked at.
    match call.world.guests.contains_key(&vmid) {
        true => Ok(()),
        false => Err(no(format!("resource '{sid}' does not exist in cluster"))),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let sid = full_id(call)?;
    let kind = sid.split(':').next().unwrap_or_default().to_owned();
    if call.args.text("type").is_some_and(|given| given != kind) {
        return Err(no("types does not match"));
    }
    if call.args.has("group") {
        return Err(migrated("invalid parameter 'group'"));
    }
    check_guest(call, &sid)?;
    let props = section::given(call, &["sid", "type"]);
    RESOURCE.check(&props, true)?;
    let resources = call.world.cluster.file_mut(RESOURCES);
    if resources.contains_key(&sid) {
        return Err(no(format!("create resource failed: resource ID '{sid}' already defined")));
    }
    resources.insert(sid, Section { kind, props });
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let fail = section::failed("update resources config failed");
    let sid = full_id(call)?;
    if call.args.has("group") {
        return Err(migrated("invalid parameter 'group'"));
    }
    check_error_state(call, &sid, call.args.text("state"))?;
    call.check_digest(&section::file_digest(call.world, RESOURCES)).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(RESOURCES, &sid).cloned() else {
        return Err(fail(no(format!("no such resource '{sid}'"))));
    };
    let set = section::given(call, &["sid", "delete", "digest"]);
    RESOURCE.check(&set, false).map_err(&fail)?;
    RESOURCE.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    call.world.cluster.file_mut(RESOURCES).insert(sid, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let sid = full_id(call)?;
    if call.world.cluster.file_mut(RESOURCES).shift_remove(&sid).is_none() {
        return Err(no(format!("cannot delete service '{sid}', not HA managed!")));
    }
    if call.args.flag("purge").unwrap_or(true) {
        forget_in_rules(call.world, &sid);
    }
    Ok(().into())
}

/// Rules forget a service, and those that are then about nothing go.
fn forget_in_rules(world: &mut World, sid: &str) {
    world.cluster.file_mut(RULES).retain(|_, rule| {
        let Some(list) = rule.props.get_mut("resources") else { return true };
        *list = split_list(list).filter(|id| *id != sid).collect::<Vec<_>>().join(",");
        !list.is_empty()
    });
}

/// Removes the resource of a guest that is deleted, with its part in rules. Says whether there was one.
pub fn purge(world: &mut World, sid: &str) -> bool {
    let known = world.cluster.file_mut(RESOURCES).shift_remove(sid).is_some();
    if known {
        forget_in_rules(world, sid);
    }
    known
}

fn request_move(call: &mut Call<'_>, online: bool) -> Reply {
    let sid = full_id(call)?;
    if call.world.cluster.section(RESOURCES, &sid).is_none() {
        return Err(no(format!("resource '{sid}' is not HA managed")));
    }
    check_error_state(call, &sid, None)?;
    let target = call.args.must("node").to_owned();
    call.world.command_ha(&sid, Command::Migrate { target: target.clone(), online });
    Ok(json!({ "sid": sid, "requested-node": target }).into())
}

/// A service that failed is asked for nothing until it was disabled.
fn check_error_state(call: &Call<'_>, sid: &str, request: Option<&str>) -> Result<(), Refusal> {
    let failed = call.world.ha_state(sid).as_deref() == Some("error");
    if failed && request != Some("disabled") {
        return Err(no(format!("service '{sid}' in error state, must be disabled and fixed first")));
    }
    Ok(())
}

fn rule_view(call: &Call<'_>, id: &str, section: &Section) -> Value {
    let mut row = section::typed_all(&rule_params(true), &section.props);
    let order = call.world.cluster.file(RULES).position(|(other, _)| other == id).unwrap_or_default() + 1;
    row.insert("rule".into(), json!(id));
    row.insert("type".into(), json!(section.kind));
    row.insert("order".into(), json!(order));
    if let Some(why) = infeasible(call.world, id, section) {
        row.insert("errors".into(), json!({ "resources": [why] }));
    }
    row.insert("digest".into(), json!(section::file_digest(call.world, RULES)));
    Value::Object(row)
}

fn list_rules(call: &mut Call<'_>) -> Reply {
    let (kind, resource) = (call.args.text("type"), call.args.text("resource"));
    let about = |section: &Section| {
        let list = section.props.get("resources").map_or("", String::as_str);
        resource.is_none_or(|sid| split_list(list).any(|id| id == sid))
    };
    let all = call.world.cluster.file(RULES);
    let rows: Vec<Value> = all
        .filter(|(_, section)| kind.is_none_or(|kind| section.kind == kind) && about(section))
        .map(|(id, section)| rule_view(call, id, section))
        .collect();
    Ok(Value::Array(rows).into())
}

fn show_rule(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("rule");
    match call.world.cluster.section(RULES, id) {
        Some(section) => Ok(rule_view(call, id, section).into()),
        None => Err(no(format!("no such ha rule '{id}'"))),
    }
}

fn rule_options(kind: &str) -> Options {
    match kind {
        "node-affinity" => {
            Options { required: &["resources", "nodes"], optional: &["strict", "disable", "comment"] }
        }
        _ => Options { required: &["resources", "affinity"], optional: &["disable", "comment"] },
    }
}

fn check_members(call: &Call<'_>, section: &Section) -> Result<(), Refusal> {
    let list = section.props.get("resources").map_or("", String::as_str);
    let unmanaged: Vec<&str> =
        split_list(list).filter(|sid| call.world.cluster.section(RESOURCES, sid).is_none()).collect();
    if !unmanaged.is_empty() {
        return Err(no(format!("cannot use unmanaged resource(s) {}.", unmanaged.join(", "))));
    }
    let nodes = section.props.get("nodes").map_or("", String::as_str);
    let unknown: Vec<&str> = split_list(nodes)
        .map(|node| node.split(':').next().unwrap_or(node))
        .filter(|node| !call.world.nodes.contains_key(*node))
        .collect();
    if !unknown.is_empty() {
        return Err(no(format!("cannot use non-existant node(s) {}.", unknown.join(", "))));
    }
    Ok(())
}

/// Members are kept in the order of their ids.
fn sort_members(props: &mut Props) {
    if let Some(list) = props.get_mut("resources") {
        let mut members: Vec<&str> = split_list(list).collect();
        members.sort_unstable();
        *list = members.join(",");
    }
}

/// What is wrong with the members of a rule, beside all other rules.
fn infeasible(world: &World, id: &str, section: &Section) -> Option<String> {
    let members = |section: &Section| -> Vec<String> {
        split_list(section.props.get("resources").map_or("", String::as_str)).map(str::to_owned).collect()
    };
    let own = members(section);
    if section.kind == "resource-affinity" {
        let apart = section.props.get("affinity").is_some_and(|affinity| affinity == "negative");
        return if own.len() < 2 {
            Some("rule is ineffective as there are less than two resources".to_owned())
        } else if apart && own.len() > world.nodes.len() {
            Some("rule defines more resources than available nodes".to_owned())
        } else {
            None
        };
    }
    let others = world.cluster.file(RULES).filter(|(other, rule)| *other != id && rule.kind == section.kind);
    let taken: Vec<String> = others.flat_map(|(_, rule)| members(rule)).collect();
    let twice = own.iter().find(|sid| taken.contains(sid))?;
    Some(format!("resource '{twice}' is already used in another node affinity rule"))
}

fn check_feasible(call: &Call<'_>, id: &str, section: &Section) -> Result<(), Refusal> {
    match infeasible(call.world, id, section) {
        Some(why) => Err(no(format!("400 Rule '{id}' is invalid.\nresources: {why}"))),
        None => Ok(()),
    }
}

fn create_rule(call: &mut Call<'_>) -> Reply {
    let fail = section::failed("create ha rule failed");
    let (id, kind) = (call.args.must("rule").to_owned(), call.args.must("type").to_owned());
    let mut props = section::given(call, &["rule", "type"]);
    if props.get("disable").is_some_and(|d| d == "0") {
        props.shift_remove("disable");
    }
    rule_options(&kind).check(&props, true)?;
    if call.world.cluster.section(RULES, &id).is_some() {
        return Err(fail(no(format!("HA rule '{id}' already defined"))));
    }
    sort_members(&mut props);
    let section = Section { kind, props };
    check_members(call, &section).map_err(&fail)?;
    check_feasible(call, &id, &section).map_err(&fail)?;
    call.world.cluster.file_mut(RULES).insert(id, section);
    Ok(().into())
}

fn update_rule(call: &mut Call<'_>) -> Reply {
    let fail = section::failed("update HA rules failed");
    let id = call.args.must("rule").to_owned();
    call.check_digest(&section::file_digest(call.world, RULES)).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(RULES, &id).cloned() else {
        return Err(fail(no(format!("HA rule '{id}' does not exist"))));
    };
    if call.args.must("type") != section.kind {
        return Err(fail(no("unexpected property 'type'")));
    }
    let set = section::given(call, &["rule", "type", "delete", "digest"]);
    let options = rule_options(&section.kind);
    options.check(&set, false).map_err(&fail)?;
    options.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    sort_members(&mut section.props);
    check_members(call, &section).map_err(&fail)?;
    check_feasible(call, &id, &section).map_err(&fail)?;
    call.world.cluster.file_mut(RULES).insert(id, section);
    Ok(().into())
}
