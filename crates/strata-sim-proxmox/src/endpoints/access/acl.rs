//! Access lists: who has which role where.

use serde_json::{Map, Value, json};

use super::failed;
use crate::api::permission::Check;
use crate::api::{Call, Perm, Refusal, Reply, Route, flag, format, get, put, text, wrong, wrong_many};
use crate::world::Access;
use crate::world::access::{Acl, Granted, normal_path};

pub fn routes() -> Vec<Route> {
    let params = vec![
        text("path"),
        text("roles").each(format::role_id),
        text("users").each(format::user_id).opt(),
        text("groups").each(format::group_id).opt(),
        text("tokens").each(format::token_id).opt(),
        flag("propagate").opt(),
        flag("delete").opt(),
    ];
    vec![
        get("/access/acl", Perm::Anyone, vec![], list),
        put("/access/acl", Perm::Check(Check::Modify("{path}")), params, update),
    ]
}

impl Access {
    /// Takes something out of every access list, and lists that say nothing any more.
    pub fn forget(&mut self, mut change: impl FnMut(&mut Acl)) {
        for acl in self.acl.values_mut() {
            change(acl);
            for list in [&mut acl.users, &mut acl.groups, &mut acl.tokens] {
                list.retain(|_, granted| !granted.is_empty());
            }
        }
        self.acl.retain(|_, acl| !acl.is_empty());
    }
}

fn list(call: &mut Call<'_>) -> Reply {
    let audit = call.may("/access", "Sys.Audit");
    let mut rows = Vec::new();
    for (path, acl) in &call.world.access.acl {
        let mine = audit || call.caller.is_root() || call.world.check_modify(call.user(), path).is_ok();
        if !mine {
            continue;
        }
        for (kind, list) in [("user", &acl.users), ("group", &acl.groups), ("token", &acl.tokens)] {
            for (id, granted) in list {
                rows.extend(granted.iter().map(|(role, below)| {
                    json!({
                        "path": path, "type": kind, "ugid": id, "roleid": role, "propagate": u8::from(*below),
                    })
                }));
            }
        }
    }
    Ok(Value::Array(rows).into())
}

/// Paths that access lists may be about.
fn is_known(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).filter(|p| !p.is_empty()).collect();
    let number = |s: &str, len: std::ops::RangeInclusive<usize>| {
        len.contains(&s.len()) && !s.starts_with('0') && s.bytes().all(|b| b.is_ascii_digit())
    };
    match parts.as_slice() {
        [] | ["access"] | ["sdn"] => true,
        ["access", "groups" | "realm"] | ["access", "groups" | "realm", _] => true,
        ["nodes" | "storage"] | ["nodes" | "storage", _] => true,
        ["pool"] | ["pool", _] | ["pool", _, _] | ["pool", _, _, _] => true,
        ["sdn", "controllers" | "dns" | "fabrics" | "ipams" | "zones"] => true,
        ["sdn", "controllers" | "dns" | "fabrics" | "ipams" | "zones", _] => true,
        ["sdn", "zones", _, _] => true,
        ["sdn", "zones", _, _, tag] => number(tag, 1..=4),
        ["vms"] => true,
        ["vms", id] => number(id, 3..=usize::MAX),
        ["mapping"] | ["mapping", _] | ["mapping", _, _] => true,
        _ => false,
    }
}

fn update(call: &mut Call<'_>) -> Reply {
    if ["users", "groups", "tokens"].iter().all(|key| call.args.filled(key).is_none()) {
        let text = "either 'users', 'groups' or 'tokens' is required.";
        let errors: Map<String, Value> =
            ["users", "groups", "tokens"].iter().map(|key| ((*key).to_owned(), json!(text))).collect();
        return Err(wrong_many(errors));
    }
    let given = call.args.must("path");
    let removing = call.args.is_set("delete");
    let path = normal_path(given)
        .filter(|path| removing || is_known(path))
        .ok_or_else(|| wrong("path", format!("invalid ACL path '{given}'")))?;
    let below = call.args.flag("propagate").unwrap_or(true);
    let mut acl = call.world.access.acl.get(&path).cloned().unwrap_or_default();
    for role in call.args.list("roles") {
        if !call.world.access.roles.contains_key(&role) {
            return Err(failed("ACL update", format!("role '{role}' does not exist")));
        }
        check_handing_out(call, &path, &role, below, removing)?;
        let change = |list: &mut std::collections::BTreeMap<String, Granted>, id: String| {
            let granted = list.entry(id).or_default();
            if removing {
                granted.remove(&role);
            } else {
                granted.insert(role.clone(), below);
            }
        };
        for group in call.args.list("groups") {
            if !call.world.access.groups.contains_key(&group) {
                return Err(failed("ACL update", format!("group '{group}' does not exist")));
            }
            change(&mut acl.groups, group);
        }
        for user in call.args.list("users") {
            if !call.world.access.users.contains_key(&user) {
                return Err(failed("ACL update", format!("user '{user}' does not exist")));
            }
            change(&mut acl.users, user);
        }
        for token in call.args.list("tokens") {
            let (user, name) = token.split_once('!').unwrap_or((&token, ""));
            if !call.world.access.users.contains_key(user) {
                return Err(failed("ACL update", format!("no such user ('{user}')")));
            }
            if call.world.access.token(user, name).is_none() {
                let text = format!("no such token '{name}' for user '{user}'");
                return Err(failed("ACL update", text));
            }
            change(&mut acl.tokens, token);
        }
    }
    call.world.access.acl.insert(path, acl);
    call.world.access.forget(|_| {});
    Ok(().into())
}

/// Who may not change permissions in general may only hand out what they have.
fn check_handing_out(
    call: &Call<'_>,
    path: &str,
    role: &str,
    below: bool,
    removing: bool,
) -> Result<(), Refusal> {
    let mine = call.world.permissions(call.user(), path);
    if mine.contains_key("Permissions.Modify") {
        return Ok(());
    }
    let verb = if removing { "remove" } else { "add" };
    for privilege in &call.world.access.roles[role].privs {
        match mine.get(privilege) {
            None => {
                let text = format!(
                    "Cannot {verb} role '{role}' - requires 'Permissions.Modify' or superset of privileges."
                );
                return Err(wrong("role", text));
            }
            Some(false) if below && !removing => {
                let text = format!(
                    "Cannot {verb} role '{role}' with propagation - requires 'Permissions.Modify' or propagated superset of privileges."
                );
                return Err(wrong("role", text));
            }
            Some(_) => {}
        }
    }
    if role == "NoAccess" {
        let text = format!("Cannot {verb} role '{role}' - requires 'Permissions.Modify'");
        return Err(wrong("role", text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_places_have_lists() {
        for path in ["/", "/vms", "/vms/110", "/pool/a/b/c", "/sdn/zones/z/vnet/7", "/access/realm/pam"] {
            assert!(is_known(path), "{path}");
        }
        for path in ["/nope", "/vms/99", "/storage/a/b", "/sdn/zones/z/vnet/07", "/pool/a/b/c/d"] {
            assert!(!is_known(path), "{path}");
        }
    }
}
