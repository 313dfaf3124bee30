//! Fabrics: networks below networks, between the nodes. Fabrics and their nodes are sections of one file, which must be sound as a
//! whole whenever it is written.

mod nodes;
mod sound;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{check_lock, die_at, difference, file, ids, lock_token, running, views};
use crate::api::param::usual;
use crate::api::permission::{on, on_any};
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, array, delete, format, get, no, number, post, put, text,
};
use crate::endpoints::index::subdirs;
use crate::endpoints::section;
use crate::world::World;
use crate::world::cluster::Section;

const PART: &str = "fabrics";
const PROTOCOLS: &[&str] = &["openfabric", "ospf"];

pub fn routes() -> Vec<Route> {
    let (all, one) = ("/cluster/sdn/fabrics/fabric", "/cluster/sdn/fabrics/fabric/{id}");
    let allocate = || on("/sdn/fabrics/{id}", &["SDN.Allocate"]);
    let edit = vec![array("delete", text("delete")).opt(), usual::digest(), lock_token()];
    let mut routes = vec![
        get("/cluster/sdn/fabrics", on("/sdn/fabrics", &["SDN.Audit"]), vec![], |_| {
            subdirs(&["fabric", "node", "all"])
        }),
        get("/cluster/sdn/fabrics/all", Perm::Anyone, views(), list_all),
        get(all, Perm::Anyone, views(), list),
        post(
            all,
            on("/sdn/fabrics", &["SDN.Allocate"]),
            [fields(), vec![usual::digest(), lock_token()]].concat(),
            create,
        ),
        get(one, on_any("/sdn/fabrics/{id}", &["SDN.Audit", "SDN.Allocate"]), vec![id("id")], show),
        put(one, allocate(), [fields(), edit].concat(), update),
        delete(one, allocate(), vec![id("id")], remove),
    ];
    routes.extend(nodes::routes());
    routes
}

fn id(name: &'static str) -> Param {
    ids::fabric(name).min_len(2).max_len(8)
}

fn protocol() -> Param {
    text("protocol").one_of(PROTOCOLS)
}

fn fields() -> Vec<Param> {
    let interval = |name: &'static str| number(name).min(1.0).max(600.0).opt();
    vec![
        id("id"),
        protocol(),
        text("area").opt(),
        interval("csnp_interval"),
        interval("hello_interval"),
        text("ip6_prefix").format(format::cidr).opt(),
        text("ip_prefix").format(format::cidr).opt(),
    ]
}

/// The options of a fabric with that protocol; others are ignored.
fn options(protocol: &str) -> &'static [&'static str] {
    match protocol {
        "openfabric" => &["ip_prefix", "ip6_prefix", "csnp_interval", "hello_interval"],
        _ => &["ip_prefix", "ip6_prefix", "area"],
    }
}

/// Sections of nodes are named after fabric and node.
fn is_node(id: &str) -> bool {
    id.contains('_')
}

fn digest(world: &World) -> String {
    let name = file(PART);
    let sections: Vec<_> = world.cluster.file(&name).collect();
    hex::encode(Sha256::digest(json!(sections).to_string()))
}

fn check_digest(call: &Call<'_>) -> Result<(), Refusal> {
    call.check_digest(&digest(call.world))
}

fn absent(id: &str) -> Refusal {
    no(format!("fabric '{id}' does not exist in configuration"))
}

fn fabric<'w>(world: &'w World, id: &str) -> Result<&'w Section, Refusal> {
    world.cluster.section(&file(PART), id).ok_or_else(|| absent(id))
}

/// A section as the API shows it: its protocol is what others call a type.
fn shown(id: &str, mut row: Map<String, Value>) -> Map<String, Value> {
    if let Some(kind) = row.remove("type") {
        row.insert("protocol".into(), kind);
    }
    match id.split_once('_') {
        Some((fabric, node)) => {
            row.insert("fabric_id".into(), json!(fabric));
            row.insert("node_id".into(), json!(node));
        }
        None => drop(row.insert("id".into(), json!(id))),
    }
    row
}

/// The sections of the state that was asked for: fabrics, or nodes.
fn sections(call: &Call<'_>, of_nodes: bool) -> Vec<(String, Map<String, Value>)> {
    let cluster = &call.world.cluster;
    let params = [fields(), nodes::fields()].concat();
    let (new, old) = (file(PART), running(PART));
    let plain = |section: &Section| {
        let mut row = section::typed_all(&params, &section.props);
        row.insert("type".into(), json!(section.kind));
        row
    };
    let rows: Vec<(String, Map<String, Value>)> = if call.args.is_set("pending") {
        let mut ids: Vec<&str> = cluster.file(&old).chain(cluster.file(&new)).map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids.dedup();
        let row = |id: &str| difference(cluster.section(&old, id), cluster.section(&new, id), &params);
        ids.into_iter().map(|id| (id.to_owned(), row(id))).collect()
    } else {
        let name = if call.args.is_set("running") { old } else { new };
        cluster.file(&name).map(|(id, section)| (id.to_owned(), plain(section))).collect()
    };
    rows.into_iter()
        .filter(|(id, _)| is_node(id) == of_nodes)
        .map(|(id, row)| (id.clone(), shown(&id, row)))
        .collect()
}

fn may_see(call: &Call<'_>, id: &str) -> bool {
    let (fabric, node) = id.split_once('_').map_or((id, None), |(fabric, node)| (fabric, Some(node)));
    call.check_any(&format!("/sdn/fabrics/{fabric}"), &["SDN.Audit", "SDN.Allocate"]).is_ok()
        && node.is_none_or(|node| {
            call.check_any(&format!("/nodes/{node}"), &["Sys.Audit", "Sys.Modify"]).is_ok()
        })
}

/// With the digest of the file, unless it is the running state that is shown.
fn rows(call: &Call<'_>, of_nodes: bool, with_digest: bool) -> Vec<Value> {
    let digest = (with_digest && !call.args.is_set("running")).then(|| digest(call.world));
    sections(call, of_nodes)
        .into_iter()
        .filter(|(id, _)| may_see(call, id))
        .map(|(_, mut row)| {
            if let Some(digest) = &digest {
                row.insert("digest".into(), json!(digest));
            }
            Value::Object(row)
        })
        .collect()
}

fn list_all(call: &mut Call<'_>) -> Reply {
    Ok(json!({ "fabrics": rows(call, false, true), "nodes": rows(call, true, true) }).into())
}

/// This list has a digest only where it shows what is pending.
fn list(call: &mut Call<'_>) -> Reply {
    let pending = call.args.is_set("pending");
    Ok(Value::Array(rows(call, false, pending)).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("id");
    let section = fabric(call.world, id)?;
    let mut row = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    row.insert("digest".into(), json!(digest(call.world)));
    Ok(Value::Object(shown(id, row)).into())
}

/// Networks are kept without the bits of a host.
fn network(prefix: &str) -> String {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    let Some((ip, bits)) = prefix.split_once('/') else { return prefix.to_owned() };
    let shift = |all: u32| all.saturating_sub(bits.parse::<u32>().unwrap_or(all));
    match ip.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            let mask = u32::MAX.checked_shl(shift(32)).unwrap_or(0);
            format!("{}/{bits}", Ipv4Addr::from(u32::from(ip) & mask))
        }
        Ok(IpAddr::V6(ip)) => {
            let mask = u128::MAX.checked_shl(shift(128)).unwrap_or(0);
            format!("{}/{bits}", Ipv6Addr::from(u128::from(ip) & mask))
        }
        Err(_) => prefix.to_owned(),
    }
}

/// What was given of a fabric with that protocol. It is read by its types, which have words of their own.
fn given(call: &Call<'_>, protocol: &str) -> Result<section::Props, Refusal> {
    let mut props = section::Props::new();
    for key in options(protocol) {
        let Some(value) = call.args.text(key) else { continue };
        let value = if key.ends_with("prefix") { network(value) } else { value.to_owned() };
        props.insert((*key).to_owned(), value);
    }
    if let Some(area) = props.get("area")
        && sound::area(area).is_none()
    {
        return Err(no("error: Area is not a number, nor an ip address"));
    }
    Ok(props)
}

/// Writes the file with a section changed, added or (without one) taken away, if it is sound then.
fn write(call: &mut Call<'_>, change: impl FnOnce(&mut section_file::File)) -> Result<(), Refusal> {
    let mut sections = call.world.cluster.files.get(&file(PART)).cloned().unwrap_or_default();
    change(&mut sections);
    sections.sort_keys();
    sound::check(&sections).map_err(no)?;
    *call.world.cluster.file_mut(&file(PART)) = sections;
    Ok(())
}

mod section_file {
    /// The sections of a file by their names.
    pub type File = indexmap::IndexMap<String, crate::world::cluster::Section>;
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "adding fabric failed";
    let fail = section::failed(WHAT);
    let (id, kind) = (call.args.must("id").to_owned(), call.args.must("protocol").to_owned());
    check_lock(call, WHAT)?;
    check_digest(call).map_err(&fail)?;
    let props = given(call, &kind).map_err(&fail)?;
    if kind == "ospf" && !props.contains_key("area") {
        return Err(fail(no("error: missing field `area`")));
    }
    if fabric(call.world, &id).is_ok() {
        return Err(fail(no(format!("fabric '{id}' already exists in config"))));
    }
    write(call, |sections| drop(sections.insert(id, Section { kind, props }))).map_err(&fail)?;
    Ok(json!("").into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "updating fabric failed";
    let fail = section::failed(WHAT);
    let (id, kind) = (call.args.must("id").to_owned(), call.args.must("protocol").to_owned());
    check_lock(call, WHAT)?;
    check_digest(call).map_err(&fail)?;
    let set = given(call, &kind).map_err(&fail)?;
    let mut section = fabric(call.world, &id).map_err(&fail)?.clone();
    if section.kind != kind {
        return Err(fail(no("node has a different protocol than the referenced fabric")));
    }
    section.props.extend(set);
    for key in call.args.values("delete") {
        section.props.shift_remove(&key);
    }
    write(call, |sections| drop(sections.insert(id, section))).map_err(&fail)?;
    Ok(json!("").into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "deleting fabric failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("id").to_owned();
    check_lock(call, WHAT)?;
    fabric(call.world, &id).map_err(&fail)?;
    let prefix = format!("{id}_");
    let name = file(PART);
    for (own, _) in call.world.cluster.file(&name).filter(|(own, _)| own.starts_with(&prefix)) {
        let node = &own[prefix.len()..];
        if call.check(&format!("/nodes/{node}"), &["Sys.Modify"]).is_err() {
            let text = format!("permission check failed: missing 'Sys.Modify' on node {node}");
            return Err(fail(die_at(&text, "/Fabrics/Fabric", 230)));
        }
    }
    for (part, kind, what) in [("controllers", "evpn", "EVPN controller"), ("zones", "vxlan", "VXLAN zone")] {
        let name = file(part);
        let mut users = call.world.cluster.file(&name);
        if let Some((user, _)) = users.find(|(_, s)| s.kind == kind && s.props.get("fabric") == Some(&id)) {
            let text = format!("this fabric is still used in the {what} \"{user}\"");
            return Err(fail(die_at(&text, "/Fabrics/Fabric", 243)));
        }
    }
    write(call, |sections| sections.retain(|own, _| *own != id && !own.starts_with(&prefix)))
        .map_err(&fail)?;
    Ok(json!("").into())
}
