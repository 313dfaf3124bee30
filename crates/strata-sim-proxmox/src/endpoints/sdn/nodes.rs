//! What a node has of the networks that were applied.

use serde_json::{Value, json};

use super::vnets::check_access;
use super::{ids, running};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Perm, Refusal, Reply, Route, get, text, wrong};
use crate::endpoints::index::{listing, subdirs};
use crate::world::cluster::Section;

pub fn routes() -> Vec<Route> {
    let zone = || on("/sdn/zones/{zone}", &["SDN.Audit"]);
    let fabric = || on("/sdn/fabrics/{fabric}", &["SDN.Audit"]);
    let in_zone = || vec![usual::node(), ids::zone_of_node()];
    // These two take any name.
    let any_zone = || vec![usual::node(), text("zone")];
    let in_vnet = || vec![usual::node(), ids::vnet()];
    let in_fabric = || vec![usual::node(), ids::fabric("fabric").min_len(2).max_len(8)];
    let nothing = |call: &mut Call<'_>| fabric_routes(call);
    vec![
        get("/nodes/{node}/sdn", Perm::Anyone, vec![usual::node()], |_| {
            listing("name", &["fabrics", "vnets", "zones"])
        }),
        get("/nodes/{node}/sdn/zones", Perm::Anyone, vec![usual::node()], zones),
        get("/nodes/{node}/sdn/zones/{zone}", zone(), in_zone(), |_| {
            subdirs(&["content", "bridges", "ip-vrf"])
        })
        .anywhere(),
        get("/nodes/{node}/sdn/zones/{zone}/content", zone(), in_zone(), content),
        get("/nodes/{node}/sdn/zones/{zone}/bridges", zone(), any_zone(), bridges),
        get("/nodes/{node}/sdn/zones/{zone}/ip-vrf", zone(), any_zone(), zone_routes),
        get("/nodes/{node}/sdn/vnets/{vnet}", Perm::Anyone, in_vnet(), |call| {
            check_access(call, &["SDN.Audit"])?;
            subdirs(&["mac-vrf"])
        })
        .anywhere(),
        get("/nodes/{node}/sdn/vnets/{vnet}/mac-vrf", Perm::Anyone, in_vnet(), vnet_routes),
        get("/nodes/{node}/sdn/fabrics/{fabric}", fabric(), in_fabric(), |_| {
            subdirs(&["neighbors", "routes"])
        })
        .anywhere(),
        get("/nodes/{node}/sdn/fabrics/{fabric}/routes", fabric(), in_fabric(), nothing),
        get("/nodes/{node}/sdn/fabrics/{fabric}/neighbors", fabric(), in_fabric(), nothing),
        get("/nodes/{node}/sdn/fabrics/{fabric}/interfaces", fabric(), in_fabric(), nothing),
    ]
}

fn is_on(section: &Section, node: &str) -> bool {
    section.props.get("nodes").is_none_or(|nodes| nodes.split(',').any(|n| n == node))
}

fn zones(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let privs = &["SDN.Audit", "SDN.Use"];
    let rows: Vec<Value> = call
        .world
        .cluster
        .file(&running("zones"))
        .filter(|(id, _)| call.check_any(&format!("/sdn/zones/{id}"), privs).is_ok())
        .filter(|(_, zone)| is_on(zone, &node))
        .map(|(id, _)| json!({ "zone": id, "status": "available" }))
        .collect();
    Ok(Value::Array(rows).into())
}

/// The applied networks of a zone that this node is in.
fn vnets<'c>(call: &'c Call<'_>, zone: &str) -> Vec<&'c str> {
    let cluster = &call.world.cluster;
    let here =
        cluster.section(&running("zones"), zone).is_some_and(|zone| is_on(zone, call.args.must("node")));
    let all = cluster
        .file(&running("vnets"))
        .filter(|(_, vnet)| here && vnet.props.get("zone").is_some_and(|z| z == zone));
    all.map(|(id, _)| id).collect()
}

fn content(call: &mut Call<'_>) -> Reply {
    let rows = vnets(call, call.args.must("zone")).into_iter();
    let rows = rows.map(|id| json!({ "vnet": id, "status": "available", "statusmsg": null }));
    Ok(Value::Array(rows.collect()).into())
}

fn applied<'c>(call: &'c Call<'_>) -> Result<&'c Section, Refusal> {
    let zone = call.world.cluster.section(&running("zones"), call.args.must("zone"));
    zone.ok_or_else(|| wrong("zone", "zone does not exist"))
}

/// Bridges with the guests that are plugged into them.
fn bridges(call: &mut Call<'_>) -> Reply {
    let zone = call.args.must("zone");
    let node = &call.world.nodes[call.args.must("node")];
    let names: Vec<&str> = if zone == "localnetwork" {
        node.ifaces
            .iter()
            .filter(|(_, iface)| iface.kind == "bridge")
            .map(|(name, _)| name.as_str())
            .collect()
    } else {
        applied(call)?;
        vnets(call, zone)
    };
    let privs = &["SDN.Audit", "SDN.Allocate"];
    let rows = names
        .into_iter()
        .filter(|name| call.check_any(&format!("/sdn/zones/{zone}/{name}"), privs).is_ok())
        .map(|name| json!({ "name": name, "vlan_filtering": null, "ports": ports(call, name) }));
    Ok(Value::Array(rows.collect()).into())
}

/// The cards of running guests on a bridge of this node.
fn ports(call: &Call<'_>, bridge: &str) -> Vec<Value> {
    let node = call.args.must("node");
    let mut ports = Vec::new();
    for guest in call.world.guests.values().filter(|guest| guest.node == node && guest.power.running) {
        for (key, card) in guest.config.iter().filter(|(key, _)| key.starts_with("net")) {
            let plugged = card.split(',').any(|part| part.strip_prefix("bridge=") == Some(bridge));
            let Some(index) = key.strip_prefix("net").filter(|_| plugged) else { continue };
            let kind = match guest.kind {
                crate::world::GuestKind::Qemu => "tap",
                crate::world::GuestKind::Lxc => "veth",
            };
            let name = format!("{kind}{}i{index}", guest.vmid);
            ports.push(json!({ "name": name, "vmid": guest.vmid.to_string(), "index": key }));
        }
    }
    ports
}

/// No simulated node learns a route.
fn zone_routes(call: &mut Call<'_>) -> Reply {
    let zone = applied(call)?;
    if zone.kind != "evpn" {
        return Err(wrong("zone", "zone is not an EVPN zone"));
    }
    let node = call.args.must("node");
    if !is_on(zone, node) {
        return Err(wrong("zone", format!("zone does not exist on node {node}")));
    }
    Ok(json!([]).into())
}

fn vnet_routes(call: &mut Call<'_>) -> Reply {
    check_access(call, &["SDN.Audit"])?;
    let id = call.args.must("vnet");
    let cluster = &call.world.cluster;
    let Some(vnet) = cluster.section(&running("vnets"), id) else {
        return Err(wrong("vnet", "vnet does not exist"));
    };
    let zone_id = vnet.props.get("zone").map_or("", String::as_str);
    let Some(zone) = cluster.section(&running("zones"), zone_id) else {
        return Err(wrong("zone", format!("zone {zone_id} does not exist")));
    };
    if zone.kind != "evpn" {
        return Err(wrong("zone", format!("zone {zone_id} is not an EVPN zone.")));
    }
    let node = call.args.must("node");
    if !is_on(zone, node) {
        let text = format!("zone {zone_id} of vnet {id} does not exist on node {node}");
        return Err(wrong("zone", text));
    }
    Ok(json!([]).into())
}

fn fabric_routes(_: &mut Call<'_>) -> Reply {
    Ok(json!([]).into())
}
