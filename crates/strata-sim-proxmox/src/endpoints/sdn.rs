//! Networks that software defines: zones, their networks and subnets. Changes wait until they are applied.

mod apply;
mod controllers;
mod dns;
mod fabrics;
pub mod ids;
mod ipams;
mod ips;
mod nodes;
mod subnets;
mod vnets;
mod zones;

use serde_json::{Map, Value, json};

use super::index::listing;
use super::section::{self, Props};
use crate::api::permission::on;
use crate::api::{Call, Param, Refusal, Route, flag, get, no, text};
use crate::fetch;
use crate::world::World;
use crate::world::cluster::Section;

/// The parts that are applied together.
const PARTS: [&str; 5] = ["zones", "vnets", "subnets", "controllers", "fabrics"];

pub fn routes() -> Vec<Route> {
    let index = get("/cluster/sdn", on("/sdn", &["SDN.Audit"]), vec![], |_| {
        listing("id", &["vnets", "zones", "controllers", "ipams", "dns", "fabrics"])
    });
    let families: [fn() -> Vec<Route>; 10] = [
        zones::routes,
        vnets::routes,
        subnets::routes,
        controllers::routes,
        ipams::routes,
        dns::routes,
        ips::routes,
        fabrics::routes,
        nodes::routes,
        apply::routes,
    ];
    std::iter::once(index).chain(families.into_iter().flat_map(|family| family())).collect()
}

fn lock_token() -> Param {
    text("lock-token").opt()
}

/// Which state is shown: the one to come, the running one, or the difference.
fn views() -> Vec<Param> {
    vec![flag("pending").opt(), flag("running").opt()]
}

fn file(part: &str) -> String {
    format!("sdn/{part}")
}

fn running(part: &str) -> String {
    format!("sdn/running/{part}")
}

/// Where the original's messages say they come from.
fn die_at(text: &str, source: &str, line: u32) -> Refusal {
    no(format!("{text} at /usr/share/perl5/PVE/Network/SDN{source}.pm line {line}."))
}

/// Refuses a change while someone else holds the lock.
fn check_lock(call: &Call<'_>, what: &'static str) -> Result<(), Refusal> {
    let held = call.world.cluster.section("sdn/lock", "token").and_then(|s| s.props.get("token"));
    match held {
        Some(token) if call.args.text("lock-token") != Some(token) => {
            Err(section::failed(what)(die_at("invalid lock token provided!", "", 291)))
        }
        _ => Ok(()),
    }
}

/// Asks a server of somebody else whether it is there. One on the loopback is asked, any other one answers.
fn reach(call: &Call<'_>, url: &str, complaint: &str) -> Result<(), Refusal> {
    let Some((host, port)) = fetch::loopback(url) else { return Ok(()) };
    let found = call.fetch(url, false)?;
    let why = match &found.failed {
        Some(_) => format!("500 Can't connect to {host}:{port} (Connection refused)"),
        None if !(200..300).contains(&found.status) => format!("{} {}", found.status, found.reason),
        None => return Ok(()),
    };
    Err(no(format!("{complaint}: Invalid response from server: {why}")))
}

/// The digest of a part.
fn digest(world: &World, part: &str) -> String {
    section::file_digest(world, &file(part))
}

/// All objects of a part in the state that was asked for, as the API shows them.
fn objects(call: &Call<'_>, part: &'static str, params: &[Param]) -> Vec<(String, Map<String, Value>)> {
    let cluster = &call.world.cluster;
    let plain = |section: &Section| {
        let mut row = section::typed_all(params, &section.props);
        row.insert("type".into(), json!(section.kind));
        row
    };
    let with_digest = |mut row: Map<String, Value>, digest: Value| {
        row.insert("digest".into(), digest);
        row
    };
    if call.args.is_set("pending") {
        let mut ids: Vec<String> = cluster.file(&running(part)).map(|(id, _)| id.to_owned()).collect();
        ids.extend(cluster.file(&file(part)).map(|(id, _)| id.to_owned()));
        ids.sort();
        ids.dedup();
        let row = |id: &str| {
            difference(cluster.section(&running(part), id), cluster.section(&file(part), id), params)
        };
        return ids.into_iter().map(|id| (id.clone(), with_digest(row(&id), Value::Null))).collect();
    }
    if call.args.is_set("running") {
        let name = running(part);
        let all = cluster.file(&name);
        return all.map(|(id, s)| (id.to_owned(), with_digest(plain(s), Value::Null))).collect();
    }
    let digest = json!(digest(call.world, part));
    cluster.file(&file(part)).map(|(id, s)| (id.to_owned(), with_digest(plain(s), digest.clone()))).collect()
}

/// An object with what will change about it.
fn difference(old: Option<&Section>, new: Option<&Section>, params: &[Param]) -> Map<String, Value> {
    let mut row = Map::new();
    let mut pending = Map::new();
    let empty = Props::new();
    let (before, after) = (old.map_or(&empty, |s| &s.props), new.map_or(&empty, |s| &s.props));
    for (key, value) in before {
        row.insert(key.clone(), section::typed(params, key, value));
    }
    let mut changed = false;
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        pending.insert(key.clone(), json!("deleted"));
        changed = true;
    }
    for (key, value) in after.iter().filter(|(key, value)| before.get(*key) != Some(*value)) {
        changed = true;
        // The network that a subnet is in is told at once.
        let place = if key == "vnet" { &mut row } else { &mut pending };
        place.insert(key.clone(), section::typed(params, key, value));
    }
    let kind = new.or(old).map_or("", |s| s.kind.as_str());
    row.insert("type".into(), json!(kind));
    let state = match (old, new) {
        (None, _) => Some("new"),
        (_, None) => Some("deleted"),
        _ if changed => Some("changed"),
        _ => None,
    };
    if let Some(state) = state {
        row.insert("state".into(), json!(state));
        let gone = state == "deleted";
        row.insert("pending".into(), Value::Object(if gone { Map::new() } else { pending }));
    }
    row
}
