//! Subnets of networks.

use std::net::IpAddr;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::ips::canonical;
use super::vnets::check_access;
use super::{check_lock, digest, file, ids, ipams, lock_token, objects, views};
use crate::api::param::usual;
use crate::api::{
    Call, Param, Perm, Properties, Refusal, Reply, Route, array, delete, flag, format, get, no, post, put,
    text, wrong,
};
use crate::endpoints::section::{self, Options};
use crate::world::cluster::Section;
use crate::world::ipam::Lease;

const PATH: &str = "/cluster/sdn/vnets/{vnet}/subnets";
const ONE: &str = "/cluster/sdn/vnets/{vnet}/subnets/{subnet}";

pub fn routes() -> Vec<Route> {
    let create_params = [fields(), vec![text("type").one_of(&["subnet"]), lock_token()]].concat();
    let edit = vec![usual::delete().max_len(4096), usual::digest(), lock_token()];
    vec![
        get(PATH, Perm::Anyone, [vec![ids::vnet()], views()].concat(), list),
        post(PATH, Perm::Anyone, create_params, create),
        get(ONE, Perm::Anyone, [vec![ids::vnet(), subnet()], views()].concat(), show),
        put(ONE, Perm::Anyone, [fields(), edit].concat(), update),
        delete(ONE, Perm::Anyone, vec![ids::vnet(), subnet(), lock_token()], remove),
    ]
}

fn subnet_id(value: &str) -> Result<(), String> {
    let cidr = if value.contains('/') {
        value.to_owned()
    } else {
        let parts: Vec<&str> = value.splitn(3, '-').collect();
        format!("{}/{}", parts.get(1).copied().unwrap_or_default(), parts.get(2).copied().unwrap_or_default())
    };
    let ok = format::is_cidr4(&cidr) || format::is_cidr6(&cidr);
    if ok { Ok(()) } else { Err("value does not look like a valid CIDR network\n".to_owned()) }
}

fn subnet() -> Param {
    text("subnet").format(subnet_id)
}

/// What a server hands out.
static RANGE: LazyLock<Properties> =
    LazyLock::new(|| Properties::new([text("start-address"), text("end-address")]));

fn fields() -> Vec<Param> {
    vec![
        text("vnet"),
        subnet(),
        text("dhcp-dns-server").format(format::ip).opt(),
        array("dhcp-range", text("dhcp-range").properties(|| &RANGE)).opt(),
        text("dnszoneprefix").format(format::dns_name).opt(),
        text("gateway").format(format::ip).opt(),
        flag("snat").opt(),
    ]
}

const OPTIONS: Options = Options {
    required: &[],
    optional: &["vnet", "gateway", "snat", "dnszoneprefix", "dhcp-range", "dhcp-dns-server"],
};

/// What the id tells, and ranges as objects.
fn complete(id: &str, mut row: Map<String, Value>) -> Value {
    let mut parts = id.splitn(3, '-');
    let (zone, network, mask) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    row.insert("id".into(), json!(id));
    row.insert("subnet".into(), json!(id));
    row.insert("zone".into(), json!(zone));
    row.insert("network".into(), json!(network));
    row.insert("mask".into(), json!(mask));
    row.insert("cidr".into(), json!(format!("{network}/{mask}")));
    let ranges: Vec<Value> = row
        .get("dhcp-range")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|range| json!(RANGE.read(range).0))
        .collect();
    row.insert("dhcp-range".into(), Value::Array(ranges));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    check_access(call, &["SDN.Audit", "SDN.Allocate"])?;
    let vnet = call.args.must("vnet");
    let rows: Vec<Value> = objects(call, "subnets", &fields())
        .into_iter()
        .filter(|(_, row)| row.get("vnet").is_some_and(|own| own == vnet))
        .map(|(id, row)| complete(&id, row))
        .collect();
    Ok(Value::Array(rows).into())
}

fn missing(id: &str) -> Refusal {
    no(format!("sdn subnet '{id}' does not exist"))
}

fn show(call: &mut Call<'_>) -> Reply {
    check_access(call, &["SDN.Audit", "SDN.Allocate"])?;
    let (vnet, id) = (call.args.must("vnet"), call.args.must("subnet"));
    let found = objects(call, "subnets", &fields()).into_iter().find(|(own, _)| own == id);
    let Some((_, row)) = found else { return Err(missing(id)) };
    if row.get("vnet").is_none_or(|own| own != vnet) {
        return Err(wrong("vnet", "wrong vnet"));
    }
    Ok(complete(id, row).into())
}

pub fn is_inside(address: &str, cidr: &str) -> bool {
    let Some((network, bits)) = cidr.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u32>() else { return false };
    match (address.parse::<IpAddr>(), network.parse::<IpAddr>()) {
        (Ok(IpAddr::V4(a)), Ok(IpAddr::V4(n))) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            u32::from(a) & mask == u32::from(n) & mask
        }
        (Ok(IpAddr::V6(a)), Ok(IpAddr::V6(n))) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            u128::from(a) & mask == u128::from(n) & mask
        }
        _ => false,
    }
}

fn check(call: &Call<'_>, id: &str, section: &Section) -> Result<(), Refusal> {
    let vnet = section.props.get("vnet").map_or("", String::as_str);
    let Some(found) = call.world.cluster.section(&file("vnets"), vnet) else {
        return Err(wrong("vnet", format!("{vnet} don't exist")));
    };
    if found.props.get("vlanaware").is_some_and(|v| v == "1") {
        return Err(wrong("vnet", "you can't add a subnet on a vlanaware vnet"));
    }
    let (cidr, gateway) = (cidr(id), section.props.get("gateway"));
    if let Some(gateway) = gateway.filter(|gateway| !is_inside(gateway, &cidr) && !is_point(&cidr)) {
        return Err(wrong("gateway", format!("{gateway} is not in subnet {cidr}")));
    }
    check_ranges(section, &cidr)
}

/// The network that an id is of.
fn cidr(id: &str) -> String {
    let mut parts = id.splitn(3, '-').skip(1);
    format!("{}/{}", parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// A network of one address has its gateway outside.
fn is_point(cidr: &str) -> bool {
    cidr.ends_with("/32") && !cidr.contains(':')
}

fn check_ranges(section: &Section, cidr: &str) -> Result<(), Refusal> {
    let bad = |text: String| Err(wrong("dhcp-range", text));
    let mut seen: Vec<(IpAddr, IpAddr)> = Vec::new();
    for line in section.props.get("dhcp-range").map_or("", String::as_str).lines() {
        let range = RANGE.read(line);
        let text = |key: &str| range.get(key).unwrap_or_default();
        let (start, end) = (text("start-address"), text("end-address"));
        let (Ok(first), Ok(last)) = (start.parse::<IpAddr>(), end.parse::<IpAddr>()) else {
            let (which, value) =
                if start.parse::<IpAddr>().is_err() { ("start", start) } else { ("end", end) };
            return bad(format!("{which}-address is not a valid IP {value}"));
        };
        if first > last {
            return bad(format!("start-address {start} must be smaller than end-address {end}"));
        }
        for (which, value) in [("start", start), ("end", end)] {
            if !is_inside(value, cidr) {
                return bad(format!("{which}-address {value} is not in subnet {cidr}"));
            }
        }
        if seen.iter().any(|(a, b)| first <= *b && last >= *a) {
            return bad("dhcp ranges must not overlap".to_owned());
        }
        seen.push((first, last));
    }
    Ok(())
}

/// Tells the address management of a subnet and its gateway.
fn register(call: &mut Call<'_>, id: &str, section: &Section, old: Option<&Section>) -> Result<(), Refusal> {
    let zone = id.split('-').next().unwrap_or_default().to_owned();
    if !is_managed(call, &zone) {
        return Ok(());
    }
    let (cidr, ipam) = (cidr(id), &mut call.world.ipam);
    if old.is_none() {
        ipam.add_subnet(&zone, &cidr);
    }
    if is_point(&cidr) {
        return Ok(());
    }
    let gateway = section.props.get("gateway");
    let before = old.and_then(|old| old.props.get("gateway")).filter(|before| Some(*before) != gateway);
    let known = old.is_some_and(|old| old.props.get("gateway").is_some());
    if let Some(gateway) = gateway.filter(|_| !known || before.is_some()) {
        let lease = Lease { gateway: true, ..Lease::default() };
        ipam.take(&zone, &cidr, &canonical(gateway), lease).map_err(no)?;
    }
    if let Some(before) = before {
        // That it is not there is only warned about.
        let _ = ipam.release(&zone, &cidr, &canonical(before));
    }
    Ok(())
}

/// Whether the addresses of a zone are kept by the server itself.
fn is_managed(call: &Call<'_>, zone: &str) -> bool {
    let ipam = call.world.cluster.section(&file("zones"), zone).and_then(|zone| zone.props.get("ipam"));
    let kept = |id: &String| ipams::all(call.world).iter().any(|(own, s)| own == id && s.kind == "pve");
    ipam.is_some_and(kept)
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn subnet object failed";
    let fail = section::failed(WHAT);
    check_access(call, &["SDN.Allocate"])?;
    check_lock(call, WHAT)?;
    let vnet = call.args.must("vnet");
    let zone = call.world.cluster.section(&file("vnets"), vnet).and_then(|v| v.props.get("zone").cloned());
    let id = format!("{}-{}", zone.unwrap_or_default(), call.args.must("subnet").replace('/', "-"));
    let props = section::given(call, &["subnet", "type", "lock-token"]);
    OPTIONS.check(&props, true).map_err(&fail)?;
    if call.world.cluster.section(&file("subnets"), &id).is_some() {
        return Err(fail(no(format!("sdn subnet object ID '{id}' already defined"))));
    }
    let section = Section { kind: "subnet".into(), props };
    check(call, &id, &section).map_err(&fail)?;
    register(call, &id, &section, None).map_err(&fail)?;
    call.world.cluster.file_mut(&file("subnets")).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn subnet object failed";
    let fail = section::failed(WHAT);
    check_access(call, &["SDN.Allocate"])?;
    check_lock(call, WHAT)?;
    let id = call.args.must("subnet").to_owned();
    let Some(old) = call.world.cluster.section(&file("subnets"), &id).cloned() else {
        return Err(fail(missing(&id)));
    };
    let mut section = old.clone();
    call.check_digest(&digest(call.world, "subnets")).map_err(&fail)?;
    let set = section::given(call, &["subnet", "delete", "digest", "lock-token"]);
    OPTIONS.check(&set, false).map_err(&fail)?;
    OPTIONS.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    check(call, &id, &section).map_err(&fail)?;
    register(call, &id, &section, Some(&old)).map_err(&fail)?;
    call.world.cluster.file_mut(&file("subnets")).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "delete sdn subnet object failed";
    check_access(call, &["SDN.Allocate"])?;
    check_lock(call, WHAT)?;
    let id = call.args.must("subnet").to_owned();
    let vnet = call.world.cluster.section(&file("vnets"), call.args.must("vnet"));
    let zone = vnet.and_then(|vnet| vnet.props.get("zone").cloned()).unwrap_or_default();
    if is_managed(call, &zone) {
        // Of a subnet that is not there, neither zone nor network is known.
        let known = call.world.cluster.section(&file("subnets"), &id).is_some();
        let (zone, cidr) =
            if known { (id.split('-').next().unwrap_or_default(), cidr(&id)) } else { ("", String::new()) };
        call.world.ipam.remove_subnet(zone, &cidr).map_err(no).map_err(section::failed(WHAT))?;
    }
    call.world.cluster.file_mut(&file("subnets")).shift_remove(&id);
    Ok(().into())
}
