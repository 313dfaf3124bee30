//! Users, groups, roles, tokens, realms and permissions.

mod acl;
mod domains;
mod groups;
mod roles;
pub mod sync;
mod tokens;
mod users;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::index::subdirs;
use crate::api::permission::Check;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, flag, forbidden, format, fuse, get, no, post, put, text, wrong,
};
use crate::auth;
use crate::world::World;

pub fn routes() -> Vec<Route> {
    let mut routes = vec![
        get("/access", Perm::Anyone, vec![], |_| {
            subdirs(&["users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "password"])
        }),
        get("/access/openid", Perm::Anyone, vec![], |_| subdirs(&["login", "auth-url"])),
        // Second factors cannot be set up here, so nobody has one.
        get("/access/tfa", Perm::Anyone, vec![], |_| Ok(json!([]).into())),
        get("/access/tfa/{userid}", own_or(LOOK), vec![userid()], |_| Ok(json!([]).into())),
        get("/access/tfa/{userid}/{id}", own_or(LOOK), vec![userid(), text("id")], |call| {
            Err(fuse(404, format!("No such tfa entry '{}'", call.args.must("id"))))
        }),
        post("/access/tfa/{userid}", own_or(MODIFY), factor_params(), |_| {
            Err(no("second factors cannot be set up in the simulator"))
        })
        .ticket_only(),
        get("/access/users/{userid}/tfa", own_or(LOOK), vec![userid(), flag("multiple").opt()], |call| {
            Ok(if call.args.is_set("multiple") { json!({ "user": [] }) } else { json!({}) }.into())
        }),
        put("/access/users/{userid}/unlock-tfa", members(MODIFY), vec![userid()], |_| {
            // Nobody has a second factor, and the file with those knows no other users.
            Err(no("no such user"))
        }),
        get(
            "/access/permissions",
            Perm::Anyone,
            vec![text("userid").pattern(USER_OR_TOKEN).opt(), text("path").opt()],
            permissions,
        ),
        put("/access/password", Perm::Check(may_set_password()), password_params(), set_password)
            .ticket_only(),
    ];
    routes.extend(users::routes());
    routes.extend(tokens::routes());
    routes.extend(groups::routes());
    routes.extend(roles::routes());
    routes.extend(acl::routes());
    routes.extend(domains::routes());
    routes.extend(sync::routes());
    routes
}

const USER_OR_TOKEN: &str = r"[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+(?:![A-Za-z][A-Za-z0-9.\-_]+)?";
const LOOK: &[&str] = &["User.Modify", "Sys.Audit"];
const MODIFY: &[&str] = &["User.Modify"];

fn userid() -> Param {
    text("userid").format(format::user_id).max_len(64)
}

fn factor_params() -> Vec<Param> {
    vec![
        userid(),
        text("challenge").opt(),
        text("description").max_len(255).opt(),
        text("password").min_len(5).max_len(64).opt(),
        text("totp").opt(),
        text("type").one_of(&["totp", "u2f", "webauthn", "recovery", "yubico"]),
        text("value").opt(),
    ]
}

/// Someone who may do this to a group that the user is in.
fn members(privs: &'static [&'static str]) -> Perm {
    Perm::Check(Check::UserGroups { privs, creating: false, groups_param: false })
}

/// The user, or someone who may do this to a group of theirs.
fn own_or(privs: &'static [&'static str]) -> Perm {
    Perm::Check(Check::Or(vec![
        Check::UserSelf,
        Check::UserGroups { privs, creating: false, groups_param: false },
    ]))
}

/// What the original puts before an error while it holds the lock of the file.
fn failed(what: &str, text: impl AsRef<str>) -> Refusal {
    no(format!("{what} failed: {}", text.as_ref()))
}

fn permissions(call: &mut Call<'_>) -> Reply {
    let me = call.user();
    let who = call.args.text("userid").unwrap_or(me);
    let owned = who.split_once('!').is_some_and(|(user, _)| user == me);
    if who != me && !owned {
        call.check("/access", &["Sys.Audit"])?;
    }
    let mut data = Map::new();
    let paths = match call.args.filled("path") {
        Some(path) => BTreeSet::from([path.to_owned()]),
        None => known_paths(call.world),
    };
    let single = call.args.has("path");
    for path in paths {
        let privs = call.world.permissions(who, &path);
        if single || !privs.is_empty() {
            let privs: Map<String, Value> =
                privs.into_iter().map(|(p, below)| (p, json!(u8::from(below)))).collect();
            data.insert(path, Value::Object(privs));
        }
    }
    Ok(Value::Object(data).into())
}

/// The paths that anything is said about.
fn known_paths(world: &World) -> BTreeSet<String> {
    let top = ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];
    let mut paths: BTreeSet<String> = top.map(str::to_owned).into();
    for path in world.access.acl.keys() {
        // Every step on the way is a place in the tree, too.
        for (at, _) in path.match_indices('/').skip(1) {
            paths.insert(path[..at].to_owned());
        }
        paths.insert(path.clone());
    }
    for pool in world.pools.values() {
        paths.extend(pool.vms.iter().map(|vmid| format!("/vms/{vmid}")));
        paths.extend(pool.storage.iter().map(|id| format!("/storage/{id}")));
    }
    paths
}

fn may_set_password() -> Check {
    Check::Or(vec![
        Check::UserSelf,
        Check::And(vec![
            Check::UserRealm,
            Check::UserGroups { privs: MODIFY, creating: false, groups_param: false },
        ]),
    ])
}

fn password_params() -> Vec<Param> {
    vec![
        userid(),
        text("password").min_len(8).max_len(64),
        text("confirmation-password").min_len(5).max_len(64).opt(),
    ]
}

fn set_password(call: &mut Call<'_>) -> Reply {
    let userid = call.args.must("userid").to_owned();
    let me = call.user().to_owned();
    if !call.world.access.users.contains_key(&userid) {
        return Err(no(format!("no such user ('{userid}')")));
    }
    if me != "root@pam" {
        if userid == "root@pam" {
            return Err(forbidden(""));
        }
        let Some(own) = call.args.text("confirmation-password") else {
            return Err(wrong("confirmation-password", "password is required to modify user"));
        };
        if !auth::verify_password(call.world, &me, own) {
            return Err(no("invalid credentials"));
        }
        if me != userid && userid.ends_with("@pam") {
            return Err(forbidden(""));
        }
    }
    let password = call.args.must("password").to_owned();
    store_password(call.world, &userid, &password).map_err(no)?;
    Ok(().into())
}

/// Sets a password in the user's realm, if that is possible there.
fn store_password(world: &mut World, userid: &str, password: &str) -> Result<(), String> {
    let (name, realm) = userid.rsplit_once('@').unwrap_or((userid, ""));
    let kind = match world.access.domains.get(realm) {
        Some(domain) => domain.kind.clone(),
        None => return Err(format!("auth domain '{realm}' does not exist")),
    };
    match kind.as_str() {
        "pve" => {}
        // The only account that every node has.
        "pam" if name == "root" => {}
        "pam" => return Err(format!("change password failed: user '{name}' does not exist")),
        other => return Err(format!("can't set password on auth type '{other}'")),
    }
    if let Some(user) = world.access.users.get_mut(userid) {
        user.password = Some(password.to_owned());
    }
    Ok(())
}
