//! Groups of users.

use serde_json::{Value, json};

use super::failed;
use crate::api::permission::{on, on_any};
use crate::api::{Call, Param, Perm, Reply, Route, delete, format, get, no, post, put, text};
use crate::world::access::Group;

pub fn routes() -> Vec<Route> {
    let allocate = || on("/access/groups", &["Group.Allocate"]);
    let with_comment = || vec![groupid(), text("comment").opt()];
    vec![
        get("/access/groups", Perm::Anyone, vec![], list),
        post("/access/groups", allocate(), with_comment(), create),
        get(
            "/access/groups/{groupid}",
            on_any("/access/groups", &["Sys.Audit", "Group.Allocate"]),
            vec![groupid()],
            show,
        ),
        put("/access/groups/{groupid}", allocate(), with_comment(), update),
        delete("/access/groups/{groupid}", allocate(), vec![groupid()], remove),
    ]
}

fn groupid() -> Param {
    text("groupid").format(format::group_id)
}

fn list(call: &mut Call<'_>) -> Reply {
    let privs = &["User.Modify", "Sys.Audit", "Group.Allocate"];
    let groups = call.world.access.groups.iter();
    let rows: Vec<Value> = groups
        .filter(|(id, _)| call.check_any(&format!("/access/groups/{id}"), privs).is_ok())
        .map(|(id, group)| {
            let users: Vec<&str> = group.users.iter().map(String::as_str).collect();
            let mut row = json!({ "groupid": id, "users": users.join(",") });
            if let Some(comment) = &group.comment {
                row["comment"] = json!(comment);
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("groupid").to_owned();
    if call.world.access.groups.contains_key(&id) {
        return Err(failed("create group", format!("group '{id}' already exists")));
    }
    let group = Group { comment: call.args.filled("comment").map(str::to_owned), ..Group::default() };
    call.world.access.groups.insert(id, group);
    Ok(().into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("groupid");
    let Some(group) = call.world.access.groups.get(id) else {
        return Err(no(format!("group '{id}' does not exist")));
    };
    let mut data = json!({ "members": group.users });
    if let Some(comment) = &group.comment {
        data["comment"] = json!(comment);
    }
    Ok(data.into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("groupid").to_owned();
    let comment = call.args.owned("comment");
    let Some(group) = call.world.access.groups.get_mut(&id) else {
        return Err(failed("update group", format!("group '{id}' does not exist")));
    };
    if let Some(comment) = comment {
        group.comment = Some(comment).filter(|c| !c.is_empty());
    }
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("groupid").to_owned();
    if call.world.access.groups.remove(&id).is_none() {
        return Err(failed("delete group", format!("group '{id}' does not exist")));
    }
    call.world.access.forget(|acl| drop(acl.groups.remove(&id)));
    Ok(().into())
}
