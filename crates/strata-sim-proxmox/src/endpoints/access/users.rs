//! Users.

use serde_json::{Map, Value, json};

use super::{LOOK, MODIFY, failed, members, store_password, userid};
use crate::api::permission::Check;
use crate::api::{Args, Call, Param, Perm, Reply, Route, delete, flag, format, get, int, post, put, text};
use crate::world::World;
use crate::world::access::User;

pub fn routes() -> Vec<Route> {
    let may_create = Check::And(vec![
        Check::UserRealm,
        Check::UserGroups { privs: MODIFY, creating: true, groups_param: true },
    ]);
    let may_update = Check::UserGroups { privs: MODIFY, creating: false, groups_param: true };
    let may_delete = Check::And(vec![
        Check::UserRealm,
        Check::UserGroups { privs: MODIFY, creating: false, groups_param: false },
    ]);
    let mut create_params = fields();
    create_params.push(text("password").min_len(8).max_len(64).opt());
    let mut update_params = fields();
    update_params.push(flag("append").needs("groups").opt());
    vec![
        get("/access/users", Perm::Anyone, vec![flag("enabled").opt(), flag("full").opt()], list),
        post("/access/users", Perm::Check(may_create), create_params, create),
        get("/access/users/{userid}", members(LOOK), vec![userid()], |call| {
            let id = call.args.must("userid").to_owned();
            let user = &call.world.access.users[&id];
            let mut row = basics(user);
            row.insert("groups".into(), json!(groups_of(call.world, &id)));
            row.insert("tokens".into(), tokens(user));
            Ok(Value::Object(row).into())
        }),
        put("/access/users/{userid}", Perm::Check(may_update), update_params, update),
        delete("/access/users/{userid}", Perm::Check(may_delete), vec![userid()], remove),
    ]
}

const TEXTS: &[&str] = &["firstname", "lastname", "email", "comment", "keys"];

fn fields() -> Vec<Param> {
    vec![
        userid(),
        text("groups").each(format::group_id).opt(),
        flag("enable").opt(),
        int("expire").min(0.0).opt(),
        text("firstname").max_len(1024).opt(),
        text("lastname").max_len(1024).opt(),
        text("email").unless_empty(format::email).max_len(254).opt(),
        text("comment").max_len(2048).opt(),
        text("keys").pattern("[0-9a-zA-Z!=]{0,4096}").opt(),
    ]
}

fn basics(user: &User) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("enable".into(), json!(u8::from(user.enable)));
    row.insert("expire".into(), json!(user.expire));
    for key in TEXTS {
        if let Some(value) = user.fields.get(*key) {
            row.insert((*key).to_owned(), json!(value));
        }
    }
    // A line of the file that goes on after it has an empty one.
    if ["comment", "keys"].iter().any(|key| user.fields.contains_key(*key)) {
        row.entry("email").or_insert(json!(""));
    }
    row
}

/// All tokens by name, or null for a user who never had one.
fn tokens(user: &User) -> Value {
    if user.tokens.is_empty() {
        return Value::Null;
    }
    let rows = user.tokens.iter().map(|(name, token)| (name.clone(), super::tokens::view(token)));
    Value::Object(rows.collect())
}

pub fn groups_of(world: &World, userid: &str) -> Vec<String> {
    let groups = world.access.groups.iter().filter(|(_, group)| group.users.contains(userid));
    groups.map(|(name, _)| name.clone()).collect()
}

fn list(call: &mut Call<'_>) -> Reply {
    let me = call.user();
    let all = call.check_any("/access/groups", LOOK).is_ok();
    let visible = |id: &str| {
        let in_group = |group: &String| call.check_any(&format!("/access/groups/{group}"), LOOK).is_ok();
        all || id == me || groups_of(call.world, id).iter().any(in_group)
    };
    let mut rows = Vec::new();
    for (id, user) in call.world.access.users.iter().filter(|(id, _)| visible(id)) {
        if call.args.flag("enabled").is_some_and(|wanted| wanted != user.enable) {
            continue;
        }
        let mut row = basics(user);
        if call.args.is_set("full") {
            row.insert("groups".into(), json!(groups_of(call.world, id).join(",")));
            let tokens: Vec<Value> = user
                .tokens
                .iter()
                .map(|(name, token)| {
                    let mut row = super::tokens::view(token);
                    row["tokenid"] = json!(name);
                    row
                })
                .collect();
            row.insert("tokens".into(), if tokens.is_empty() { Value::Null } else { json!(tokens) });
        }
        let realm = id.rsplit_once('@').map_or("", |(_, realm)| realm);
        if let Some(domain) = call.world.access.domains.get(realm) {
            row.insert("realm-type".into(), json!(domain.kind));
        }
        row.insert("userid".into(), json!(id));
        rows.push(Value::Object(row));
    }
    Ok(Value::Array(rows).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create user";
    let id = call.args.must("userid").to_owned();
    if call.world.access.users.contains_key(&id) {
        return Err(failed(WHAT, format!("user '{id}' already exists")));
    }
    let groups = call.args.list("groups");
    check_groups(call.world, &groups).map_err(|text| failed(WHAT, text))?;
    let user = User {
        enable: call.args.flag("enable").unwrap_or(true),
        expire: call.args.int("expire").unwrap_or_default(),
        ..User::default()
    };
    call.world.access.users.insert(id.clone(), user);
    if let Some(password) = call.args.owned("password")
        && let Err(text) = store_password(call.world, &id, &password)
    {
        call.world.access.users.remove(&id);
        return Err(failed(WHAT, text));
    }
    set_texts(call.world, &id, &call.args.clone());
    join(call.world, &id, &groups);
    Ok(().into())
}

fn check_groups(world: &World, groups: &[String]) -> Result<(), String> {
    match groups.iter().find(|group| !world.access.groups.contains_key(*group)) {
        Some(missing) => Err(format!("no such group '{missing}'")),
        None => Ok(()),
    }
}

fn join(world: &mut World, id: &str, groups: &[String]) {
    for group in groups {
        if let Some(group) = world.access.groups.get_mut(group) {
            group.users.insert(id.to_owned());
        }
    }
}

fn set_texts(world: &mut World, id: &str, args: &Args) {
    let Some(user) = world.access.users.get_mut(id) else { return };
    for key in TEXTS {
        match args.text(key) {
            Some("") => drop(user.fields.remove(*key)),
            Some(value) => drop(user.fields.insert((*key).to_owned(), value.to_owned())),
            None => {}
        }
    }
}

fn update(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("userid").to_owned();
    let groups = call.args.list("groups");
    check_groups(call.world, &groups).map_err(|text| failed("update user", text))?;
    if call.args.has("groups") && !call.args.is_set("append") {
        for group in call.world.access.groups.values_mut() {
            group.users.remove(&id);
        }
    }
    join(call.world, &id, &groups);
    let args = call.args.clone();
    set_texts(call.world, &id, &args);
    if let Some(user) = call.world.access.users.get_mut(&id) {
        user.enable = args.flag("enable").unwrap_or(user.enable);
        user.expire = args.int("expire").unwrap_or(user.expire);
    }
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("userid").to_owned();
    let access = &mut call.world.access;
    access.users.remove(&id);
    for group in access.groups.values_mut() {
        group.users.remove(&id);
    }
    access.forget(|acl| {
        acl.users.remove(&id);
        acl.tokens.retain(|token, _| token.split('!').next() != Some(id.as_str()));
    });
    Ok(().into())
}
