//! What rules can refer to.

use serde_json::{Value, json};

use super::{Scope, Site};
use crate::api::{Call, Reply, Route, get, text};
use crate::world::Firewall;

pub fn route(site: Site) -> Route {
    let params = site.with([text("type").one_of(&["alias", "ipset"]).opt()]);
    get(site.path("/refs"), site.look(), params, list)
}

fn list(call: &mut Call<'_>) -> Reply {
    let scope = Scope::of(call);
    let wanted = call.args.text("type");
    let mut rows = collect(&call.world.firewall_of(&Scope::Cluster), wanted, "dc");
    if scope != Scope::Cluster {
        rows.extend(collect(&call.world.firewall_of(&scope), wanted, "guest"));
    }
    Ok(Value::Array(rows).into())
}

fn collect(firewall: &Firewall, wanted: Option<&str>, scope: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut add = |kind: &str, name: &str, reference: String, comment: &Option<String>| {
        if wanted.is_some_and(|wanted| wanted != kind) {
            return;
        }
        let mut row = json!({ "type": kind, "name": name, "ref": reference, "scope": scope });
        if let Some(comment) = comment {
            row["comment"] = json!(comment);
        }
        rows.push(row);
    };
    for (name, set) in &firewall.ipsets {
        add("ipset", name, format!("+{name}"), &set.comment);
    }
    for (name, alias) in &firewall.aliases {
        add("alias", name, name.clone(), &alias.comment);
    }
    rows
}
