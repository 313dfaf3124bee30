//! Aliases: names of addresses and networks.

use serde_json::{Value, json};

use super::{Scope, Site, digest_of, spec};
use crate::api::param::usual;
use crate::api::{Call, Param, Reply, Route, delete, get, post, put, text, wrong};
use crate::world::Firewall;
use crate::world::firewall::Alias;

pub fn routes(site: Site) -> Vec<Route> {
    let (all, one) = (site.path("/aliases"), site.path("/aliases/{name}"));
    let fields = || vec![name("name"), text("cidr").format(spec::network), text("comment").opt()];
    let update_params = site.with(fields().into_iter().chain([name("rename").opt(), usual::digest()]));
    vec![
        get(all, site.look(), site.own(), list),
        post(all, site.change(), site.with(fields()), create),
        get(one, site.look(), site.with([name("name")]), show),
        put(one, site.change(), update_params, update),
        delete(one, site.change(), site.with([name("name"), usual::digest()]), remove),
    ]
}

fn name(key: &'static str) -> Param {
    text(key).min_len(2).max_len(64).pattern(spec::NAME)
}

fn view(alias: &Alias) -> Value {
    let mut row =
        json!({ "name": alias.name, "cidr": alias.cidr, "ipversion": spec::ip_version(&alias.cidr) });
    if let Some(comment) = &alias.comment {
        row["comment"] = json!(comment);
    }
    row
}

fn digest(firewall: &Firewall) -> String {
    digest_of(&json!(firewall.aliases))
}

fn list(call: &mut Call<'_>) -> Reply {
    let firewall = call.world.firewall_of(&Scope::of(call));
    let digest = digest(&firewall);
    let rows: Vec<Value> = firewall
        .aliases
        .values()
        .map(|alias| {
            let mut row = view(alias);
            row["digest"] = json!(digest);
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let firewall = call.world.firewall_of(&Scope::of(call));
    match firewall.aliases.get(&call.args.must("name").to_ascii_lowercase()) {
        Some(alias) => Ok(view(alias).into()),
        None => Err(wrong("name", "no such alias")),
    }
}

fn given(call: &Call<'_>, name: &str) -> Alias {
    let cidr = call.args.must("cidr");
    // A prefix that says nothing is dropped; other bits stay as they are.
    let cidr = if cidr.contains(':') { cidr.trim_end_matches("/128") } else { cidr.trim_end_matches("/32") };
    Alias {
        name: name.to_owned(),
        cidr: cidr.to_owned(),
        comment: call.args.filled("comment").map(str::to_owned),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    let name = call.args.must("name");
    let key = name.to_ascii_lowercase();
    if firewall.aliases.contains_key(&key) {
        return Err(wrong("name", format!("alias '{name}' already exists")));
    }
    firewall.aliases.insert(key, given(call, name));
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    call.check_digest(&digest(&firewall))?;
    let name = call.args.must("name");
    let key = name.to_ascii_lowercase();
    if !firewall.aliases.contains_key(&key) {
        return Err(wrong("name", "no such alias"));
    }
    let new_name = call.args.filled("rename").unwrap_or(name);
    let new_key = new_name.to_ascii_lowercase();
    if new_key != key && firewall.aliases.contains_key(&new_key) {
        return Err(wrong("name", format!("alias '{new_name}' already exists")));
    }
    firewall.aliases.remove(&key);
    // Only another name counts as renaming; other letters do not.
    let kept = if new_key == key { name } else { new_name };
    firewall.aliases.insert(new_key, given(call, kept));
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    call.check_digest(&digest(&firewall))?;
    firewall.aliases.remove(&call.args.must("name").to_ascii_lowercase());
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}
