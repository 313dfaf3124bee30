//! Security groups: rules that others refer to by a name.

use serde_json::{Value, json};

use super::{Scope, Site, digest_of, rules, spec};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Reply, Route, delete, get, no, post, text, wrong};
use crate::world::Firewall;
use crate::world::firewall::{Group, Rule};

const PATH: &str = "/cluster/firewall/groups";
const ONE: &str = "/cluster/firewall/groups/{group}";
const RULE: &str = "/cluster/firewall/groups/{group}/{pos}";

pub fn routes() -> Vec<Route> {
    let modify = || on("/", &["Sys.Modify"]);
    let params = vec![name("group"), name("rename").opt(), text("comment").opt(), usual::digest()];
    let mut routes = vec![
        get(PATH, Perm::Anyone, vec![], list),
        post(PATH, modify(), params, create),
        delete(ONE, modify(), vec![name("group")], remove),
    ];
    routes.extend(rules::routes_at(Site::Cluster, ONE, RULE, Some(name("group"))));
    routes
}

fn name(key: &'static str) -> Param {
    text(key).min_len(2).max_len(18).pattern(spec::NAME)
}

fn digest(firewall: &Firewall) -> String {
    let names: Vec<(&String, &Option<String>)> =
        firewall.groups.iter().map(|(name, group)| (name, &group.comment)).collect();
    digest_of(&json!(names))
}

fn list(call: &mut Call<'_>) -> Reply {
    let firewall = call.world.firewall_of(&Scope::Cluster);
    let digest = digest(&firewall);
    let rows: Vec<Value> = firewall
        .groups
        .iter()
        .map(|(name, group)| {
            let mut row = json!({ "group": name, "digest": digest });
            if let Some(comment) = &group.comment {
                row["comment"] = json!(comment);
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let mut firewall = call.world.firewall_of(&Scope::Cluster);
    // Its file is read with these names in lower case.
    let name = call.args.must("group").to_ascii_lowercase();
    let comment = call.args.owned("comment");
    let Some(old) = call.args.filled("rename").map(str::to_owned) else {
        if firewall.groups.contains_key(&name) {
            return Err(wrong("group", format!("Security group '{name}' already exists")));
        }
        let group = Group { comment: comment.filter(|c| !c.is_empty()), ..Group::default() };
        firewall.groups.insert(name, group);
        call.world.keep_firewall(&Scope::Cluster, firewall);
        return Ok(().into());
    };
    call.check_digest(&digest(&firewall))?;
    if !firewall.groups.contains_key(&old) {
        return Err(wrong("group", format!("Security group '{old}' does not exist")));
    }
    if old != name && firewall.groups.contains_key(&name) {
        return Err(wrong("group", format!("Security group '{name}' does already exist")));
    }
    let mut group = firewall.groups.remove(&old).unwrap_or_default();
    if let Some(comment) = comment {
        group.comment = Some(comment).filter(|c| !c.is_empty());
    }
    firewall.groups.insert(name.clone(), group);
    call.world.keep_firewall(&Scope::Cluster, firewall);
    for firewall in call.world.firewall.values_mut() {
        rename(&mut firewall.rules, &old, &name);
    }
    Ok(().into())
}

/// Whoever refers to the group follows it.
fn rename(rules: &mut [Rule], old: &str, new: &str) {
    for rule in rules {
        let refers =
            rule.get("type").is_some_and(|t| t == "group") && rule.get("action").is_some_and(|a| a == old);
        if refers {
            rule.insert("action".into(), new.to_owned());
        }
    }
}

fn remove(call: &mut Call<'_>) -> Reply {
    let mut firewall = call.world.firewall_of(&Scope::Cluster);
    let name = call.args.must("group");
    match firewall.groups.get(name) {
        None => return Err(no(format!("no such security group '{name}'"))),
        Some(group) if !group.rules.is_empty() => {
            return Err(no(format!("Security group '{name}' is not empty")));
        }
        Some(_) => {}
    }
    firewall.groups.remove(name);
    call.world.keep_firewall(&Scope::Cluster, firewall);
    Ok(().into())
}
