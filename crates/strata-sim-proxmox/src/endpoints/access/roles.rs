//! Roles: named sets of privileges.

use serde_json::{Map, Value, json};

use super::failed;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Reply, Route, delete, flag, format, get, no, post, put, text, wrong};
use crate::world::access::Role;
use crate::world::privileges;

pub fn routes() -> Vec<Route> {
    let modify = || on("/access", &["Sys.Modify"]);
    let privs = || text("privs").each(privilege).opt();
    vec![
        get("/access/roles", Perm::Anyone, vec![], list),
        post("/access/roles", modify(), vec![roleid(), privs()], create),
        get("/access/roles/{roleid}", Perm::Anyone, vec![roleid()], show),
        put(
            "/access/roles/{roleid}",
            modify(),
            vec![roleid(), privs(), flag("append").needs("privs").opt()],
            update,
        ),
        delete("/access/roles/{roleid}", modify(), vec![roleid()], remove),
    ]
}

fn roleid() -> Param {
    text("roleid").format(format::role_id)
}

fn privilege(value: &str) -> Result<(), String> {
    if privileges::exists(value) { Ok(()) } else { Err(format!("invalid privilege '{value}'\n")) }
}

fn list(call: &mut Call<'_>) -> Reply {
    let roles = call.world.access.roles.iter();
    let rows: Vec<Value> = roles
        .map(|(id, role)| {
            let privs: Vec<&str> = role.privs.iter().map(String::as_str).collect();
            json!({ "roleid": id, "privs": privs.join(","), "special": u8::from(role.special) })
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("roleid");
    let Some(role) = call.world.access.roles.get(id) else {
        return Err(no(format!("role '{id}' does not exist")));
    };
    let privs: Map<String, Value> = role.privs.iter().map(|p| (p.clone(), json!(1))).collect();
    Ok(Value::Object(privs).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("roleid").to_owned();
    if id.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("pve")) {
        let text = "cannot use role ID starting with the (case-insensitive) 'PVE' namespace";
        return Err(wrong("roleid", text));
    }
    if call.world.access.roles.contains_key(&id) {
        return Err(failed("create role", format!("role '{id}' already exists")));
    }
    let privs = call.args.list("privs").into_iter().collect();
    call.world.access.roles.insert(id, Role { privs, special: false });
    Ok(().into())
}

fn is_special(call: &Call<'_>, id: &str) -> bool {
    call.world.access.roles.get(id).is_some_and(|role| role.special)
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("roleid").to_owned();
    if is_special(call, &id) {
        return Err(no(format!("auto-generated role '{id}' cannot be modified")));
    }
    let (append, privs) = (call.args.is_set("append"), call.args.list("privs"));
    let Some(role) = call.world.access.roles.get_mut(&id) else {
        return Err(failed("update role", format!("role '{id}' does not exist")));
    };
    if !append {
        role.privs.clear();
    }
    role.privs.extend(privs);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("roleid").to_owned();
    if is_special(call, &id) {
        return Err(no(format!("auto-generated role '{id}' cannot be deleted")));
    }
    if call.world.access.roles.remove(&id).is_none() {
        return Err(failed("delete role", format!("role '{id}' does not exist")));
    }
    // Entries that name it are dropped when the file is next read.
    call.world.access.forget(|acl| {
        for list in [&mut acl.users, &mut acl.groups, &mut acl.tokens] {
            for granted in list.values_mut() {
                granted.remove(&id);
            }
        }
    });
    Ok(().into())
}
