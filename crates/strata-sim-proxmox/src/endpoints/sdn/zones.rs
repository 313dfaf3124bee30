//! Zones.

use serde_json::{Value, json};

use super::{check_lock, die_at, digest, file, ids, ipams, lock_token, objects, views};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, no, post, put, text, wrong,
    wrong_many,
};
use crate::endpoints::section::{self, Options, Props};
use crate::world::cluster::Section;

const KINDS: &[&str] = &["evpn", "faucet", "qinq", "simple", "vlan", "vxlan"];

pub fn routes() -> Vec<Route> {
    let one = "/cluster/sdn/zones/{zone}";
    let own = || on("/sdn/zones/{zone}", &["SDN.Allocate"]);
    let kind = || text("type").one_of(KINDS);
    let create_params = [fields(), vec![kind(), lock_token()]].concat();
    let edit = vec![usual::delete().max_len(4096), usual::digest(), lock_token()];
    vec![
        get("/cluster/sdn/zones", Perm::Anyone, [views(), vec![kind().opt()]].concat(), list),
        post("/cluster/sdn/zones", on("/sdn/zones", &["SDN.Allocate"]), create_params, create),
        get(one, own(), [vec![ids::zone()], views()].concat(), show),
        put(one, own(), [fields(), edit].concat(), update),
        delete(one, own(), vec![ids::zone(), lock_token()], remove),
    ]
}

fn fields() -> Vec<Param> {
    vec![
        ids::zone(),
        flag("advertise-subnets").opt(),
        text("bridge").opt(),
        flag("bridge-disable-mac-learning").opt(),
        text("controller").opt(),
        text("dhcp").one_of(&["dnsmasq"]).opt(),
        flag("disable-arp-nd-suppression").opt(),
        text("dns").opt(),
        text("dnszone").format(format::dns_name).opt(),
        int("dp-id").opt(),
        text("exitnodes").each(format::node).opt(),
        flag("exitnodes-local-routing").opt(),
        text("exitnodes-primary").format(format::node).opt(),
        ids::fabric("fabric").opt(),
        text("ipam").opt(),
        text("mac").format(format::mac).opt(),
        int("mtu").opt(),
        text("nodes").each(format::node).opt(),
        text("peers").each(format::ip).opt(),
        text("reversedns").opt(),
        text("rt-import").each(route_target).opt(),
        int("tag").min(0.0).opt(),
        text("vlan-protocol").one_of(&["802.1q", "802.1ad"]).opt(),
        int("vrf-vxlan").min(1.0).max(16_777_215.0).opt(),
        int("vxlan-port").min(1.0).max(65_536.0).opt(),
    ]
}

fn options(kind: &str) -> Options {
    match kind {
        "simple" => Options {
            required: &[],
            optional: &["nodes", "mtu", "dns", "reversedns", "dnszone", "ipam", "dhcp"],
        },
        "vlan" => Options {
            required: &["bridge"],
            optional: &[
                "nodes",
                "bridge-disable-mac-learning",
                "mtu",
                "dns",
                "reversedns",
                "dnszone",
                "ipam",
            ],
        },
        "qinq" => Options {
            required: &["tag", "bridge"],
            optional: &[
                "nodes",
                "bridge-disable-mac-learning",
                "mtu",
                "vlan-protocol",
                "dns",
                "reversedns",
                "dnszone",
                "ipam",
            ],
        },
        "vxlan" => Options {
            required: &[],
            optional: &[
                "nodes",
                "peers",
                "vxlan-port",
                "mtu",
                "dns",
                "reversedns",
                "dnszone",
                "ipam",
                "fabric",
            ],
        },
        "evpn" => Options {
            required: &["vrf-vxlan", "controller"],
            optional: &[
                "nodes",
                "exitnodes",
                "exitnodes-local-routing",
                "exitnodes-primary",
                "advertise-subnets",
                "disable-arp-nd-suppression",
                "bridge-disable-mac-learning",
                "rt-import",
                "vxlan-port",
                "mtu",
                "mac",
                "dns",
                "reversedns",
                "dnszone",
                "ipam",
            ],
        },
        _ => Options {
            required: &["dp-id", "controller"],
            optional: &["nodes", "dns", "reversedns", "dnszone", "ipam"],
        },
    }
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let privs = &["SDN.Audit", "SDN.Allocate"];
    let rows: Vec<Value> = objects(call, "zones", &fields())
        .into_iter()
        .filter(|(id, _)| call.check_any(&format!("/sdn/zones/{id}"), privs).is_ok())
        .filter(|(_, row)| wanted.is_none_or(|kind| row["type"] == kind))
        .map(|(id, mut row)| {
            row.insert("zone".into(), json!(id));
            Value::Object(row)
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("zone");
    let found = objects(call, "zones", &fields()).into_iter().find(|(own, _)| own == id);
    let Some((_, mut row)) = found else { return Err(no(format!("sdn '{id}' does not exist"))) };
    row.insert("zone".into(), json!(id));
    Ok(Value::Object(row).into())
}

fn route_target(value: &str) -> Result<(), String> {
    let ok = value.split_once(':').is_some_and(|(asn, id)| {
        let fits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u32>().is_ok();
        fits(asn) && fits(id)
    });
    if ok { Ok(()) } else { Err("value does not look like a valid bgp route-target\n".to_owned()) }
}

/// What a zone names must be there.
fn check_references(call: &Call<'_>, set: &Props) -> Result<(), Refusal> {
    let unknown = |dns: &&String| call.world.cluster.section(&file("dns"), dns).is_none();
    for key in ["dns", "reversedns"] {
        if let Some(dns) = set.get(key).filter(unknown) {
            return Err(wrong(key, format!("{dns} don't exist")));
        }
    }
    if set.contains_key("dnszone") && !set.contains_key("dns") {
        return Err(wrong("dnszone", "missing dns server"));
    }
    match set.get("ipam") {
        Some(ipam) if !ipams::exists(call.world, ipam) => Err(wrong("ipam", format!("{ipam} not existing"))),
        _ => Ok(()),
    }
}

/// What a type of zone asks of the whole.
fn check_kind(call: &Call<'_>, id: &str, zone: &mut Section) -> Result<(), Refusal> {
    let get = |key: &str| zone.props.get(key).map_or("", String::as_str);
    match zone.kind.as_str() {
        "vxlan" if get("peers").is_empty() == get("fabric").is_empty() => {
            let text = "must have exactly one of peers / fabric defined";
            let both = ["peers", "fabric"].map(|key| (key.to_owned(), json!(text)));
            Err(wrong_many(both.into_iter().collect()))
        }
        "evpn" => {
            let name = get("controller");
            match call.world.cluster.section(&file("controllers"), name) {
                None => {
                    let text = format!("controller {name} don't exist");
                    return Err(die_at(&text, "/Zones/EvpnPlugin", 354));
                }
                Some(found) if found.kind != "evpn" => {
                    let text = format!("{name} is not a evpn controller type");
                    return Err(die_at(&text, "/Zones/EvpnPlugin", 357));
                }
                Some(_) => {}
            }
            let vni = get("vrf-vxlan");
            let name = file("zones");
            let mut others = call.world.cluster.file(&name).filter(|(other, _)| *other != id);
            if let Some((other, _)) = others.find(|(_, z)| z.props.get("vrf-vxlan").is_some_and(|v| v == vni))
            {
                let text = format!("vrf-vxlan {vni} is already declared in {other}");
                return Err(die_at(&text, "/Zones/EvpnPlugin", 368));
            }
            let mac = call.world.mac(&["sdn-zone", id]);
            zone.props.entry("mac".to_owned()).or_insert(mac);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn zone object failed";
    let (id, kind) = (call.args.must("zone").to_owned(), call.args.must("type").to_owned());
    let props = section::given(call, &["zone", "type", "lock-token"]);
    options(&kind).check(&props, true)?;
    check_lock(call, WHAT)?;
    if call.world.cluster.section(&file("zones"), &id).is_some() {
        return Err(no(format!("{WHAT}: sdn zone object ID '{id}' already defined")));
    }
    let fail = section::failed(WHAT);
    check_references(call, &props).map_err(&fail)?;
    let mut section = Section { kind, props };
    check_kind(call, &id, &mut section).map_err(&fail)?;
    call.world.cluster.file_mut(&file("zones")).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn zone object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("zone").to_owned();
    check_lock(call, WHAT)?;
    call.check_digest(&digest(call.world, "zones")).map_err(&fail)?;
    let Some(mut section) = call.world.cluster.section(&file("zones"), &id).cloned() else {
        return Err(fail(no(format!("sdn '{id}' does not exist"))));
    };
    let set = section::given(call, &["zone", "delete", "digest", "lock-token"]);
    let options = options(&section.kind);
    options.check(&set, false).map_err(&fail)?;
    let before = section.props.get("ipam").cloned();
    options.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set.clone());
    let has_subnet =
        call.world.cluster.file(&file("subnets")).any(|(own, _)| own.split('-').next() == Some(&id));
    if section.props.get("ipam") != before.as_ref() && has_subnet {
        return Err(fail(wrong("ipam", "can't change ipam if a subnet is already defined in this zone")));
    }
    check_references(call, &set).map_err(&fail)?;
    check_kind(call, &id, &mut section).map_err(&fail)?;
    call.world.cluster.file_mut(&file("zones")).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "delete sdn zone object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("zone").to_owned();
    check_lock(call, WHAT)?;
    if call.world.cluster.section(&file("zones"), &id).is_none() {
        return Err(fail(no(format!("sdn '{id}' does not exist"))));
    }
    let user = call.world.cluster.file(&file("vnets")).find(|(_, v)| v.props.get("zone") == Some(&id));
    if let Some((vnet, _)) = user {
        return Err(fail(die_at(&format!("zone {id} is used by vnet {vnet}"), "/Zones/Plugin", 149)));
    }
    call.world.cluster.file_mut(&file("zones")).shift_remove(&id);
    Ok(().into())
}
