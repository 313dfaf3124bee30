//! Networks in zones.

use serde_json::{Value, json};

use super::{check_lock, die_at, digest, file, ids, lock_token, objects, views};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, get, int, no, post, put, text, wrong,
};
use crate::endpoints::section::{self, Options};
use crate::world::cluster::Section;

pub fn routes() -> Vec<Route> {
    let one = "/cluster/sdn/vnets/{vnet}";
    let create_params =
        [fields(), vec![text("zone"), text("type").one_of(&["vnet"]).opt(), lock_token()]].concat();
    let edit = vec![text("zone").opt(), usual::delete().max_len(4096), usual::digest(), lock_token()];
    vec![
        get("/cluster/sdn/vnets", Perm::Anyone, views(), list),
        post("/cluster/sdn/vnets", on("/sdn/zones/{zone}", &["SDN.Allocate"]), create_params, create),
        get(one, Perm::Anyone, [vec![ids::vnet()], views()].concat(), show),
        put(one, Perm::Anyone, [fields(), edit].concat(), update),
        delete(one, Perm::Anyone, vec![ids::vnet(), lock_token()], remove),
    ]
}

fn fields() -> Vec<Param> {
    vec![
        ids::vnet(),
        text("alias").max_len(256).pattern(r"[()\-_.\w\d\s]{0,256}").opt(),
        flag("isolate-ports").opt(),
        int("tag").min(1.0).max(16_777_215.0).opt(),
        flag("vlanaware").opt(),
    ]
}

const OPTIONS: Options =
    Options { required: &["zone"], optional: &["tag", "alias", "vlanaware", "isolate-ports"] };

/// The network, for those who have one of these privileges on it.
pub fn check_access(call: &Call<'_>, privs: &[&str]) -> Result<(), Refusal> {
    let id = call.args.must("vnet");
    let Some(section) = call.world.cluster.section(&file("vnets"), id) else {
        return Err(no(format!("sdn vnet '{id}' does not exist")));
    };
    let zone = section.props.get("zone").map_or("", String::as_str);
    call.check_any(&format!("/sdn/zones/{zone}/{id}"), privs)
}

fn list(call: &mut Call<'_>) -> Reply {
    let rows: Vec<Value> = objects(call, "vnets", &fields())
        .into_iter()
        .filter(|(id, row)| {
            let zone = row.get("zone").or_else(|| row.get("pending")?.get("zone"));
            let path = format!("/sdn/zones/{}/{id}", zone.and_then(Value::as_str).unwrap_or_default());
            call.check_any(&path, &["SDN.Audit", "SDN.Allocate"]).is_ok()
        })
        .map(|(id, mut row)| {
            row.insert("vnet".into(), json!(id));
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    check_access(call, &["SDN.Audit", "SDN.Allocate"])?;
    let id = call.args.must("vnet");
    let found = objects(call, "vnets", &fields()).into_iter().find(|(own, _)| own == id);
    let Some((_, mut row)) = found else { return Err(no(format!("sdn vnet '{id}' does not exist"))) };
    row.insert("vnet".into(), json!(id));
    Ok(Value::Object(row).into())
}

/// What the zone says about its networks.
fn check_tag(call: &Call<'_>, id: &str, section: &Section) -> Result<(), Refusal> {
    let zone_id = section.props.get("zone").map_or("", String::as_str);
    let Some(zone) = call.world.cluster.section(&file("zones"), zone_id) else {
        return Err(die_at("cannot lookup undefined type!", "/Vnets", 326));
    };
    let tag = section.props.get("tag").and_then(|tag| tag.parse::<u32>().ok());
    let name = file("vnets");
    let others = || call.world.cluster.file(&name).filter(|(other, _)| *other != id);
    let tag_of = |vnet: &Section| vnet.props.get("tag").and_then(|tag| tag.parse::<u32>().ok());
    let here = |vnet: &Section| vnet.props.get("zone").is_some_and(|z| z == zone_id);
    match (zone.kind.as_str(), tag) {
        ("simple", Some(_)) => Err(wrong("tag", "vlan tag is not allowed on simple zone")),
        ("vlan", None) => Err(wrong("tag", "missing vlan tag")),
        ("vlan", Some(tag)) if tag > 4096 => Err(wrong("tag", "vlan tag max value is 4096")),
        ("vlan", Some(tag)) => match others().find(|(_, v)| here(v) && tag_of(v) == Some(tag)) {
            Some((other, _)) => Err(wrong("tag", format!("tag {tag} already exist in vnet {other}"))),
            None => Ok(()),
        },
        ("qinq", Some(tag)) if tag > 4096 => Err(wrong("tag", "VLAN tag maximal value is 4096")),
        ("qinq", tag) => match (others().find(|(_, v)| here(v) && tag_of(v) == tag), tag) {
            (Some((other, _)), Some(tag)) => {
                Err(wrong("tag", format!("tag {tag} already exist in zone {zone_id} vnet {other}")))
            }
            (Some((other, _)), None) => {
                Err(wrong("tag", format!("tag-less vnet already exists in zone {zone_id} vnet {other}")))
            }
            (None, _) => Ok(()),
        },
        ("vxlan" | "evpn", None) => Err(wrong("tag", "missing vxlan tag")),
        (kind @ ("vxlan" | "evpn"), Some(tag)) => {
            if kind == "evpn" && section.props.get("vlanaware").is_some_and(|v| v == "1") {
                return Err(wrong("vlan-aware", "vlan-aware option can't be enabled with evpn"));
            }
            // Such tags are unique in the whole datacenter.
            let tunnelled = |vnet: &Section| {
                let zone =
                    vnet.props.get("zone").and_then(|id| call.world.cluster.section(&file("zones"), id));
                zone.is_some_and(|zone| matches!(zone.kind.as_str(), "vxlan" | "evpn"))
            };
            match others().find(|(_, v)| tunnelled(v) && tag_of(v) == Some(tag)) {
                Some((other, v)) => {
                    let zone = v.props.get("zone").map_or("", String::as_str);
                    let text = format!("vxlan tag {tag} already exist in vnet {other} in zone {zone} ");
                    Err(wrong("tag", text))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn has_subnets(call: &Call<'_>, id: &str) -> bool {
    call.world.cluster.file(&file("subnets")).any(|(_, s)| s.props.get("vnet").is_some_and(|v| v == id))
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn vnet object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("vnet").to_owned();
    check_lock(call, WHAT)?;
    let props = section::given(call, &["vnet", "type", "lock-token"]);
    OPTIONS.check(&props, true).map_err(&fail)?;
    if call.world.cluster.section(&file("vnets"), &id).is_some() {
        return Err(fail(no(format!("sdn vnet object ID '{id}' already defined"))));
    }
    let section = Section { kind: "vnet".into(), props };
    check_tag(call, &id, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file("vnets")).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn vnet object failed";
    let fail = section::failed(WHAT);
    check_access(call, &["SDN.Allocate"])?;
    let id = call.args.must("vnet").to_owned();
    check_lock(call, WHAT)?;
    call.check_digest(&digest(call.world, "vnets")).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(&file("vnets"), &id).cloned() else {
        return Err(fail(no(format!("sdn vnet '{id}' does not exist"))));
    };
    let set = section::given(call, &["vnet", "delete", "digest", "lock-token"]);
    OPTIONS.check(&set, false).map_err(&fail)?;
    let zone = section.props.get("zone").cloned();
    OPTIONS.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    if section.props.get("zone") != zone.as_ref() && has_subnets(call, &id) {
        return Err(fail(wrong("zone", "can't change zone if subnets exist")));
    }
    check_tag(call, &id, &section).map_err(&fail)?;
    if section.props.get("vlanaware").is_some_and(|v| v == "1") && has_subnets(call, &id) {
        return Err(fail(wrong("vlanaware", "vlanaware vnet is not compatible with subnets")));
    }
    call.world.cluster.file_mut(&file("vnets")).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "delete sdn vnet object failed";
    check_access(call, &["SDN.Allocate"])?;
    let id = call.args.must("vnet").to_owned();
    check_lock(call, WHAT)?;
    if has_subnets(call, &id) {
        return Err(section::failed(WHAT)(wrong("vnet", "Can't delete vnet if subnets exists")));
    }
    call.world.cluster.file_mut(&file("vnets")).shift_remove(&id);
    Ok(().into())
}
