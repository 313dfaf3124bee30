//! Controllers: what speaks BGP or IS-IS for zones.

use serde_json::{Value, json};

use super::{check_lock, die_at, digest, file, ids, lock_token, objects, views};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, no, post, put, text,
};
use crate::endpoints::section::{self, Options};
use crate::world::cluster::Section;

const KINDS: &[&str] = &["bgp", "evpn", "faucet", "isis"];
const PART: &str = "controllers";

pub fn routes() -> Vec<Route> {
    let (all, one) = ("/cluster/sdn/controllers", "/cluster/sdn/controllers/{controller}");
    let allocate = || on("/sdn/controllers", &["SDN.Allocate"]);
    let own = on("/sdn/controllers/{controller}", &["SDN.Allocate"]);
    let kind = || text("type").one_of(KINDS).format(format::configid);
    let edit = vec![usual::delete().max_len(4096), usual::digest(), lock_token()];
    vec![
        get(all, Perm::Anyone, [vec![text("type").one_of(KINDS).opt()], views()].concat(), list),
        post(all, allocate(), [fields(), vec![kind(), lock_token()]].concat(), create),
        get(one, own, [vec![ids::controller()], views()].concat(), show),
        put(one, allocate(), [fields(), edit].concat(), update),
        delete(one, allocate(), vec![ids::controller(), lock_token()], remove),
    ]
}

fn isis_net(value: &str) -> Result<(), String> {
    let hex =
        |part: &&str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<&str> = value.split('.').collect();
    let ok = (5..=11).contains(&parts.len())
        && hex(&parts[0], 2)
        && hex(&parts[parts.len() - 1], 2)
        && parts[1..parts.len() - 1].iter().all(|part| hex(part, 4));
    if ok { Ok(()) } else { Err("value does not look like a valid isis net\n".to_owned()) }
}

fn fields() -> Vec<Param> {
    vec![
        ids::controller(),
        int("asn").min(0.0).max(4_294_967_295.0).opt(),
        flag("bgp-multipath-as-path-relax").opt(),
        flag("ebgp").opt(),
        int("ebgp-multihop").opt(),
        ids::fabric("fabric").opt(),
        text("isis-domain").opt(),
        text("isis-ifaces").each(format::iface).opt(),
        text("isis-net").format(isis_net).min_len(20).max_len(50).opt(),
        text("loopback").opt(),
        text("node").format(format::node).opt(),
        text("peers").each(format::ip).opt(),
    ]
}

fn options(kind: &str) -> Options {
    match kind {
        "evpn" => Options { required: &["asn"], optional: &["peers", "fabric"] },
        "bgp" => Options {
            required: &["node", "asn", "peers"],
            optional: &["bgp-multipath-as-path-relax", "ebgp", "ebgp-multihop", "loopback"],
        },
        "isis" => {
            Options { required: &["isis-domain", "isis-net", "isis-ifaces", "node"], optional: &["loopback"] }
        }
        _ => Options { required: &[], optional: &[] },
    }
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let privs = &["SDN.Audit", "SDN.Allocate"];
    let rows: Vec<Value> = objects(call, PART, &fields())
        .into_iter()
        .filter(|(id, _)| call.check_any(&format!("/sdn/controllers/{id}"), privs).is_ok())
        .filter(|(_, row)| wanted.is_none_or(|kind| row["type"] == kind))
        .map(|(id, mut row)| {
            row.insert("controller".into(), json!(id));
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn missing(id: &str) -> Refusal {
    no(format!("sdn '{id}' does not exist"))
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("controller");
    let found = objects(call, PART, &fields()).into_iter().find(|(own, _)| own == id);
    let Some((_, mut row)) = found else { return Err(missing(id)) };
    row.insert("controller".into(), json!(id));
    Ok(Value::Object(row).into())
}

/// There is one controller for EVPN, and two at the most for each other protocol on a node.
fn check(call: &Call<'_>, id: &str, section: &Section) -> Result<(), Refusal> {
    let others = || {
        let name = file(PART);
        let all = call.world.cluster.file(&name).collect::<Vec<_>>();
        all.into_iter().filter(|(own, other)| *own != id && other.kind == section.kind)
    };
    let local = call.world.nodes.keys().next();
    let here = || others().filter(|(_, other)| other.props.get("node") == local).count();
    match section.kind.as_str() {
        "evpn" => {
            if others().next().is_some() {
                let text = "only 1 global evpn controller can be defined";
                return Err(die_at(text, "/Controllers/EvpnPlugin", 497));
            }
            let (peers, fabric) = (section.props.contains_key("peers"), section.props.contains_key("fabric"));
            if peers == fabric {
                let text = "must have exactly one of peers / fabric defined";
                return Err(die_at(text, "/Controllers/EvpnPlugin", 503));
            }
            Ok(())
        }
        "bgp" if here() > 1 => {
            Err(die_at("only 1 bgp controller can be defined", "/Controllers/BgpPlugin", 177))
        }
        "isis" if here() > 1 => {
            Err(die_at("only 1 bgp or isis controller can be defined", "/Controllers/IsisPlugin", 137))
        }
        _ => Ok(()),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn controller object failed";
    let fail = section::failed(WHAT);
    let (id, kind) = (call.args.must("controller").to_owned(), call.args.must("type").to_owned());
    let props = section::given(call, &["controller", "type", "lock-token"]);
    options(&kind).check(&props, true)?;
    check_lock(call, WHAT)?;
    if call.world.cluster.section(&file(PART), &id).is_some() {
        return Err(fail(no(format!("sdn controller object ID '{id}' already defined"))));
    }
    let section = Section { kind, props };
    check(call, &id, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn controller object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("controller").to_owned();
    check_lock(call, WHAT)?;
    call.check_digest(&digest(call.world, PART)).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(&file(PART), &id).cloned() else {
        return Err(fail(missing(&id)));
    };
    let set = section::given(call, &["controller", "delete", "digest", "lock-token"]);
    let options = options(&section.kind);
    options.check(&set, false).map_err(&fail)?;
    options.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    check(call, &id, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "delete sdn controller object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("controller").to_owned();
    check_lock(call, WHAT)?;
    let Some(section) = call.world.cluster.section(&file(PART), &id) else { return Err(fail(missing(&id))) };
    let user = call.world.cluster.file(&file("zones")).find(|(_, z)| z.props.get("controller") == Some(&id));
    if let Some((zone, _)) = user.filter(|_| matches!(section.kind.as_str(), "evpn" | "bgp")) {
        let text = format!("controller {id} is used by {zone}");
        return Err(fail(die_at(&text, "/Controllers/EvpnPlugin", 482)));
    }
    call.world.cluster.file_mut(&file(PART)).shift_remove(&id);
    Ok(().into())
}
