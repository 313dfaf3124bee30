//! IP sets and what is in them.

use serde_json::{Value, json};

use super::{Scope, Site, digest_of, spec};
use crate::api::param::usual;
use crate::api::{Call, Param, Refusal, Reply, Route, delete, flag, get, no, post, put, text, wrong};
use crate::world::Firewall;
use crate::world::firewall::{Entry, IpSet};

pub fn routes(site: Site) -> Vec<Route> {
    let (all, one) = (site.path("/ipset"), site.path("/ipset/{name}"));
    let entry = site.path("/ipset/{name}/{cidr*}");
    let cidr = || text("cidr").format(spec::network_or_alias);
    let fields = || vec![name("name"), cidr(), flag("nomatch").opt(), text("comment").opt()];
    let create_params = vec![name("name"), name("rename").opt(), text("comment").opt(), usual::digest()];
    vec![
        get(all, site.look(), site.own(), list),
        post(all, site.change(), site.with(create_params), create),
        get(one, site.look(), site.with([name("name")]), entries),
        post(one, site.change(), site.with(fields()), add),
        delete(one, site.change(), site.with([name("name"), flag("force").opt()]), remove),
        get(entry, site.look(), site.with([name("name"), cidr()]), show),
        put(entry, site.change(), site.with(fields().into_iter().chain([usual::digest()])), update),
        delete(entry, site.change(), site.with([name("name"), cidr(), usual::digest()]), take_out),
    ]
}

fn name(key: &'static str) -> Param {
    text(key).min_len(2).max_len(64).pattern(spec::NAME)
}

fn list_digest(firewall: &Firewall) -> String {
    let names: Vec<(&String, &Option<String>)> =
        firewall.ipsets.iter().map(|(name, set)| (name, &set.comment)).collect();
    digest_of(&json!(names))
}

fn list(call: &mut Call<'_>) -> Reply {
    let firewall = call.world.firewall_of(&Scope::of(call));
    let digest = list_digest(&firewall);
    let rows: Vec<Value> = firewall
        .ipsets
        .iter()
        .map(|(name, set)| {
            let mut row = json!({ "name": name, "digest": digest });
            if let Some(comment) = &set.comment {
                row["comment"] = json!(comment);
            }
            row
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let scope = Scope::of(call);
    let mut firewall = call.world.firewall_of(&scope);
    // Its file is read with these names in lower case.
    let name = call.args.must("name").to_ascii_lowercase();
    let comment = call.args.owned("comment");
    if let Some(old) = call.args.filled("rename") {
        call.check_digest(&list_digest(&firewall))?;
        if !firewall.ipsets.contains_key(old) {
            return Err(wrong("name", format!("IPSet '{old}' does not exist")));
        }
        if old != name && firewall.ipsets.contains_key(&name) {
            return Err(wrong("name", format!("IPSet '{name}' does already exist")));
        }
        let mut set = firewall.ipsets.remove(old).unwrap_or_default();
        if let Some(comment) = comment {
            set.comment = Some(comment).filter(|c| !c.is_empty());
        }
        firewall.ipsets.insert(name, set);
    } else {
        if firewall.ipsets.contains_key(&name) {
            return Err(wrong("name", format!("IPSet '{name}' already exists")));
        }
        let set = IpSet { comment: comment.filter(|c| !c.is_empty()), ..IpSet::default() };
        firewall.ipsets.insert(name, set);
    }
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}

/// The set that is named, out of its firewall.
fn load(call: &Call<'_>) -> Result<(Scope, Firewall, IpSet), Refusal> {
    let scope = Scope::of(call);
    let firewall = call.world.firewall_of(&scope);
    let name = call.args.must("name");
    match firewall.ipsets.get(name).cloned() {
        Some(set) => Ok((scope, firewall, set)),
        None => Err(no(format!("no such IPSet '{name}'"))),
    }
}

fn save(call: &mut Call<'_>, scope: &Scope, mut firewall: Firewall, set: IpSet) {
    firewall.ipsets.insert(call.args.must("name").to_owned(), set);
    call.world.keep_firewall(scope, firewall);
}

fn digest(set: &IpSet) -> String {
    digest_of(&json!(set.entries))
}

fn view(entry: &Entry, digest: &str) -> Value {
    let mut row = json!({ "cidr": entry.cidr, "digest": digest });
    if entry.nomatch {
        row["nomatch"] = json!(1);
    }
    if let Some(comment) = &entry.comment {
        row["comment"] = json!(comment);
    }
    row
}

fn entries(call: &mut Call<'_>) -> Reply {
    let (_, _, set) = load(call)?;
    let digest = digest(&set);
    Ok(Value::Array(set.entries.iter().map(|entry| view(entry, &digest)).collect()).into())
}

fn add(call: &mut Call<'_>) -> Reply {
    let (scope, firewall, mut set) = load(call)?;
    let given = call.args.must("cidr");
    let (prefix, name) = spec::unscoped(given);
    let cidr = if spec::is_name(name) {
        let key = name.to_ascii_lowercase();
        let own = prefix != "dc/" && firewall.aliases.contains_key(&key);
        let cluster = call.world.firewall_of(&Scope::Cluster);
        if !own && (prefix == "guest/" || !cluster.aliases.contains_key(&key)) {
            return Err(no(format!("no such alias '{name}'")));
        }
        given.to_owned()
    } else {
        spec::clean(given)
    };
    if set.entries.iter().any(|entry| entry.cidr == cidr) {
        return Err(wrong("cidr", format!("address '{cidr}' already exists")));
    }
    if cidr.ends_with("/0") {
        return Err(wrong("cidr", "a zero prefix is not allowed in ipset entries"));
    }
    let comment = call.args.filled("comment").map(str::to_owned);
    set.entries.push(Entry { cidr, nomatch: call.args.is_set("nomatch"), comment });
    // The file has them in the order of their text.
    set.entries.sort_by(|one, other| one.cidr.cmp(&other.cidr));
    save(call, &scope, firewall, set);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let (scope, mut firewall, set) = load(call)?;
    let name = call.args.must("name");
    if !set.entries.is_empty() && !call.args.is_set("force") {
        return Err(no(format!("IPSet '{name}' is not empty")));
    }
    firewall.ipsets.remove(name);
    call.world.keep_firewall(&scope, firewall);
    Ok(().into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let (_, _, set) = load(call)?;
    let digest = digest(&set);
    let cidr = call.args.must("cidr");
    match set.entries.iter().find(|entry| entry.cidr == cidr) {
        Some(entry) => Ok(view(entry, &digest).into()),
        None => Err(wrong("cidr", "no such IP/Network")),
    }
}

fn update(call: &mut Call<'_>) -> Reply {
    let (scope, firewall, mut set) = load(call)?;
    call.check_digest(&digest(&set))?;
    let cidr = call.args.must("cidr");
    let Some(entry) = set.entries.iter_mut().find(|entry| entry.cidr == cidr) else {
        return Err(wrong("cidr", "no such IP/Network"));
    };
    // What is not given is taken away.
    entry.nomatch = call.args.is_set("nomatch");
    entry.comment = call.args.filled("comment").map(str::to_owned);
    save(call, &scope, firewall, set);
    Ok(().into())
}

fn take_out(call: &mut Call<'_>) -> Reply {
    let (scope, firewall, mut set) = load(call)?;
    call.check_digest(&digest(&set))?;
    let cidr = call.args.must("cidr");
    set.entries.retain(|entry| entry.cidr != cidr);
    save(call, &scope, firewall, set);
    Ok(().into())
}
