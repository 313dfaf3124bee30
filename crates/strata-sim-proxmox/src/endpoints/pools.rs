//! Pools: guests and storages that belong together.

use serde_json::{Value, json};

use super::resources;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, no, post, put, text};
use crate::world::{Pool, World};

pub fn routes() -> Vec<Route> {
    let allocate = || on("/pool/{poolid}", &["Pool.Allocate"]);
    let audit = || on("/pool/{poolid}", &["Pool.Audit"]);
    let kind = || text("type").one_of(&["qemu", "lxc", "storage"]);
    vec![
        get("/pools", Perm::Anyone, vec![poolid().opt(), kind().needs("poolid").opt()], list),
        post("/pools", allocate(), vec![poolid(), text("comment").opt()], create),
        put("/pools", allocate(), update_params(), update),
        delete("/pools", allocate(), vec![poolid()], remove),
        get("/pools/{poolid}", audit(), vec![poolid(), kind().opt()], |call| {
            let id = call.args.must("poolid").to_owned();
            Ok(view(call, &id)?.into())
        }),
        put("/pools/{poolid}", allocate(), update_params(), update),
        delete("/pools/{poolid}", allocate(), vec![poolid()], remove),
    ]
}

fn poolid() -> Param {
    text("poolid").format(format::pool_id)
}

fn update_params() -> Vec<Param> {
    vec![
        poolid(),
        text("comment").opt(),
        text("vms").each(format::vmid).opt(),
        text("storage").each(format::storage_id).opt(),
        flag("allow-move").opt(),
        flag("delete").opt(),
    ]
}

fn failed(what: &str, text: impl AsRef<str>) -> Refusal {
    no(format!("{what} failed: {}", text.as_ref()))
}

fn list(call: &mut Call<'_>) -> Reply {
    if let Some(id) = call.args.owned("poolid") {
        return Ok(json!([view(call, &id)?]).into());
    }
    let pools = call.world.pools.iter();
    let rows: Vec<Value> = pools
        .filter(|(id, _)| call.may(&format!("/pool/{id}"), "Pool.Audit"))
        .map(|(id, pool)| {
            let mut row = json!({ "poolid": id });
            if let Some(comment) = &pool.comment {
                row["comment"] = json!(comment);
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn view(call: &Call<'_>, id: &str) -> Result<Value, Refusal> {
    let Some(pool) = call.world.pools.get(id) else {
        return Err(no(format!("pool '{id}' does not exist")));
    };
    let wanted = call.args.text("type");
    let mut members: Vec<Value> = pool
        .vms
        .iter()
        .filter_map(|vmid| call.world.guests.get(vmid))
        .filter(|guest| wanted.is_none_or(|kind| kind == guest.kind.name()))
        .map(|guest| Value::Object(resources::guest(call.world, guest)))
        .collect();
    if wanted.is_none_or(|kind| kind == "storage") {
        let storages = pool.storage.iter().filter_map(|id| call.world.storages.get(id));
        members.extend(storages.map(|storage| {
            let mut nodes = call.world.nodes.keys();
            let node = nodes.find(|node| storage.is_on(node)).map(String::as_str).unwrap_or_default();
            Value::Object(resources::storage(call.world, storage, node))
        }));
    }
    let mut data = json!({ "poolid": id, "members": members });
    if let Some(comment) = &pool.comment {
        data["comment"] = json!(comment);
    }
    Ok(data)
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("poolid").to_owned();
    let fail = |text: String| failed("create pool", text);
    if call.world.pools.contains_key(&id) {
        return Err(fail(format!("pool '{id}' already exists")));
    }
    let leaf = match id.rsplit_once('/') {
        Some((parent, _)) if !call.world.pools.contains_key(parent) => {
            return Err(fail(format!("parent '{parent}' of pool '{id}' does not exist")));
        }
        Some((_, leaf)) => leaf,
        None => &id,
    };
    if !leaf.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(fail("pool name must start with a letter".to_owned()));
    }
    let pool = Pool { comment: call.args.filled("comment").map(str::to_owned), ..Pool::default() };
    call.world.pools.insert(id, pool);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("poolid").to_owned();
    let fail = |text: String| failed("update pools", text);
    let Some(mut pool) = call.world.pools.get(&id).cloned() else {
        return Err(fail(format!("pool '{id}' does not exist")));
    };
    if let Some(comment) = call.args.text("comment") {
        pool.comment = Some(comment.to_owned()).filter(|c| !c.is_empty());
    }
    let removing = call.args.is_set("delete");
    let mut moved = Vec::new();
    for text in call.args.list("vms") {
        check_modify(call, &format!("/vms/{text}"))?;
        let Ok(vmid) = text.parse::<u32>() else { continue };
        if removing {
            if !pool.vms.remove(&vmid) {
                return Err(fail(format!("VM {vmid} is not a pool member")));
            }
            continue;
        }
        if pool.vms.contains(&vmid) {
            return Err(fail(format!("VM {vmid} is already a pool member")));
        }
        if let Some(other) = call.world.pool_of(vmid).map(str::to_owned) {
            if !call.args.is_set("allow-move") {
                let text = format!("VM {vmid} belongs already to pool '{other}' and 'allow-move' is not set");
                return Err(fail(text));
            }
            call.check(&format!("/pool/{other}"), &["Pool.Allocate"])?;
            moved.push((other, vmid));
        }
        pool.vms.insert(vmid);
    }
    for storage in call.args.list("storage") {
        check_modify(call, &format!("/storage/{storage}"))?;
        if removing {
            if !pool.storage.remove(&storage) {
                return Err(fail(format!("Storage '{storage}' is not a pool member")));
            }
        } else if !pool.storage.insert(storage.clone()) {
            return Err(fail(format!("Storage '{storage}' is already a pool member")));
        }
    }
    for (other, vmid) in moved {
        if let Some(other) = call.world.pools.get_mut(&other) {
            other.vms.remove(&vmid);
        }
    }
    call.world.pools.insert(id, pool);
    Ok(().into())
}

fn check_modify(call: &Call<'_>, path: &str) -> Result<(), Refusal> {
    if call.caller.is_root() { Ok(()) } else { call.world.check_modify(call.user(), path) }
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("poolid").to_owned();
    let fail = |text: String| failed("delete pool", text);
    let Some(pool) = call.world.pools.get(&id) else {
        return Err(fail(format!("pool '{id}' does not exist")));
    };
    if let Some(inside) = contained(call.world, &id, pool) {
        return Err(fail(format!("pool '{id}' is not empty (contains {inside})")));
    }
    call.world.pools.remove(&id);
    call.world.access.acl.remove(&format!("/pool/{id}"));
    Ok(().into())
}

/// The first thing that keeps a pool from being deleted. What no longer exists does not count.
fn contained(world: &World, id: &str, pool: &Pool) -> Option<String> {
    let below = format!("{id}/");
    let child =
        world.pools.keys().find(|other| other.strip_prefix(&below).is_some_and(|rest| !rest.contains('/')));
    if let Some(child) = child {
        return Some(format!("pool '{child}'"));
    }
    if let Some(vmid) = pool.vms.iter().find(|vmid| world.guests.contains_key(vmid)) {
        return Some(format!("VM {vmid}"));
    }
    let storage = pool.storage.iter().find(|id| world.storages.contains_key(*id));
    storage.map(|id| format!("storage '{id}'"))
}
