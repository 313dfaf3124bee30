//! The nodes of fabrics.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{PART, check_digest, digest, fabric, file, id, protocol, rows, shown, views, write};
use crate::api::param::usual;
use crate::api::permission::{Check, on};
use crate::api::{
    Call, Param, Perm, Properties, Refusal, Reply, Route, array, delete, flag, format, get, int, no, post,
    put, text,
};
use crate::endpoints::sdn::{check_lock, lock_token};
use crate::endpoints::section;
use crate::world::cluster::Section;

pub fn routes() -> Vec<Route> {
    let of = "/cluster/sdn/fabrics/node/{fabric_id}";
    let one = "/cluster/sdn/fabrics/node/{fabric_id}/{node_id}";
    let change = || {
        Perm::Check(Check::And(vec![
            Check::All("/sdn/fabrics/{fabric_id}", &["SDN.Allocate"]),
            Check::All("/nodes/{node_id}", &["Sys.Modify"]),
        ]))
    };
    let look = Perm::Check(Check::And(vec![
        Check::Any("/sdn/fabrics/{fabric_id}", &["SDN.Audit", "SDN.Allocate"]),
        Check::Any("/nodes/{node_id}", &["Sys.Audit", "Sys.Modify"]),
    ]));
    let own = || vec![id("fabric_id"), node_id()];
    let settings = || [own(), vec![protocol()], fields(), vec![usual::digest(), lock_token()]].concat();
    let doomed = array("delete", text("delete").one_of(&["interfaces", "ip", "ip6"])).opt();
    vec![
        get("/cluster/sdn/fabrics/node", Perm::Anyone, views(), list_all),
        get(
            of,
            on("/sdn/fabrics/{fabric_id}", &["SDN.Audit"]),
            vec![id("fabric_id"), flag("pending").opt(), flag("running").opt()],
            list,
        ),
        post(of, change(), settings(), create),
        get(one, look, own(), show),
        put(one, change(), [settings(), vec![doomed]].concat(), update),
        delete(one, change(), own(), remove),
    ]
}

fn node_id() -> Param {
    text("node_id").format(format::node)
}

pub fn fields() -> Vec<Param> {
    vec![
        array("interfaces", text("interfaces").properties(|| &INTERFACE)).opt(),
        text("ip").format(format::ipv4).opt(),
        text("ip6").format(format::ipv6).opt(),
    ]
}

/// An interface of a node; the multiplier is there for OpenFabric only.
static INTERFACE: LazyLock<Properties> = LazyLock::new(|| {
    Properties::new([
        text("name").format(format::iface),
        int("hello_multiplier").min(2.0).max(100.0).opt(),
        text("ip").format(format::cidr4).opt(),
        text("ip6").format(format::cidr6).opt(),
    ])
});

/// The names of a node's interfaces.
pub fn interfaces(section: &Section) -> impl Iterator<Item = String> {
    let all = section.props.get("interfaces").map_or("", String::as_str).lines();
    all.filter_map(|line| INTERFACE.read(line).get("name").map(str::to_owned))
}

fn section_id(call: &Call<'_>) -> String {
    format!("{}_{}", call.args.must("fabric_id"), call.args.must("node_id"))
}

fn missing(call: &Call<'_>) -> Refusal {
    let (fabric, node) = (call.args.must("fabric_id"), call.args.must("node_id"));
    no(format!("node '{node}' does not exist in fabric '{fabric}'"))
}

fn list_all(call: &mut Call<'_>) -> Reply {
    Ok(Value::Array(rows(call, true, true)).into())
}

fn list(call: &mut Call<'_>) -> Reply {
    let own = call.args.must("fabric_id");
    fabric(call.world, own)?;
    let mut rows = rows(call, true, true);
    rows.retain(|row| row["fabric_id"] == own);
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    fabric(call.world, call.args.must("fabric_id"))?;
    let id = section_id(call);
    let section = call.world.cluster.section(&file(PART), &id).ok_or_else(|| missing(call))?;
    let mut row = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    row.insert("digest".into(), json!(digest(call.world)));
    Ok(Value::Object(shown(&id, row)).into())
}

/// What was given of a node. Interfaces are written with their keys in one order.
fn given(call: &Call<'_>) -> section::Props {
    let mut props = section::Props::new();
    for key in ["ip", "ip6"] {
        props.extend(call.args.owned(key).map(|value| (key.to_owned(), value)));
    }
    if call.args.has("interfaces") {
        let written = call.args.values("interfaces").into_iter().map(|text| {
            let read = INTERFACE.read(&text);
            let keys = ["name", "hello_multiplier", "ip", "ip6"];
            let parts = keys.iter().filter_map(|key| Some(format!("{key}={}", read.get(key)?)));
            parts.collect::<Vec<_>>().join(",")
        });
        props.insert("interfaces".to_owned(), written.collect::<Vec<_>>().join("\n"));
    }
    props
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "adding node failed";
    let fail = section::failed(WHAT);
    check_lock(call, WHAT)?;
    check_digest(call).map_err(&fail)?;
    let kind = call.args.must("protocol").to_owned();
    let own = call.args.must("fabric_id").to_owned();
    if fabric(call.world, &own).map_err(&fail)?.kind != kind {
        return Err(fail(no("node has a different protocol than the referenced fabric")));
    }
    let id = section_id(call);
    if call.world.cluster.section(&file(PART), &id).is_some() {
        let node = call.args.must("node_id");
        return Err(fail(no(format!("node '{node}' already exists in config for fabric {own}"))));
    }
    let props = given(call);
    write(call, |sections| drop(sections.insert(id, Section { kind, props }))).map_err(&fail)?;
    Ok(json!("").into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "updating node failed";
    let fail = section::failed(WHAT);
    check_lock(call, WHAT)?;
    check_digest(call).map_err(&fail)?;
    fabric(call.world, call.args.must("fabric_id")).map_err(&fail)?;
    let id = section_id(call);
    let found = call.world.cluster.section(&file(PART), &id).cloned();
    let mut section = found.ok_or_else(|| fail(missing(call)))?;
    if section.kind != call.args.must("protocol") {
        return Err(fail(no("node has a different protocol than the referenced fabric")));
    }
    section.props.extend(given(call));
    for key in call.args.values("delete") {
        section.props.shift_remove(&key);
    }
    write(call, |sections| drop(sections.insert(id, section))).map_err(&fail)?;
    Ok(json!("").into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "deleting node failed";
    let fail = section::failed(WHAT);
    check_lock(call, WHAT)?;
    fabric(call.world, call.args.must("fabric_id")).map_err(&fail)?;
    let id = section_id(call);
    if call.world.cluster.section(&file(PART), &id).is_none() {
        return Err(fail(missing(call)));
    }
    write(call, |sections| drop(sections.shift_remove(&id))).map_err(&fail)?;
    Ok(json!("").into())
}
