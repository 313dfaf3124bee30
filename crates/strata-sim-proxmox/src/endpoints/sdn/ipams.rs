//! Address management: the server's own, and where others are reached.

use serde_json::{Map, Value, json};

use super::{check_lock, digest, file, ids, lock_token, reach, running};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Perm, Refusal, Reply, Route, delete, format, get, int, no, post, put, text};
use crate::endpoints::section::{self, Options, Props};
use crate::world::World;
use crate::world::cluster::Section;

const KINDS: &[&str] = &["netbox", "phpipam", "pve"];
const PART: &str = "ipams";

pub fn routes() -> Vec<Route> {
    let (all, one) = ("/cluster/sdn/ipams", "/cluster/sdn/ipams/{ipam}");
    let allocate = || on("/sdn/ipams", &["SDN.Allocate"]);
    let kind = || text("type").one_of(KINDS).format(format::configid);
    let edit = vec![usual::delete().max_len(4096), usual::digest(), lock_token()];
    vec![
        get(all, Perm::Anyone, vec![text("type").one_of(KINDS).opt()], list),
        post(all, allocate(), [fields(), vec![kind(), lock_token()]].concat(), create),
        get(one, on("/sdn/ipams/{ipam}", &["SDN.Allocate"]), vec![ids::ipam()], show),
        put(one, allocate(), [fields(), edit].concat(), update),
        delete(one, allocate(), vec![ids::ipam(), lock_token()], remove),
        get("/cluster/sdn/ipams/{ipam}/status", Perm::Anyone, vec![ids::ipam()], status),
    ]
}

fn fields() -> Vec<Param> {
    vec![ids::ipam(), ids::fingerprint(), int("section").opt(), text("token").opt(), text("url").opt()]
}

fn options(kind: &str) -> Options {
    match kind {
        "netbox" => Options { required: &["url", "token"], optional: &["fingerprint"] },
        "phpipam" => Options { required: &["url", "token", "section"], optional: &["fingerprint"] },
        _ => Options { required: &[], optional: &[] },
    }
}

/// All of them by name. The server's own one is always there, whatever the file says.
pub fn all(world: &World) -> Vec<(String, Section)> {
    let mut found: Vec<(String, Section)> =
        world.cluster.file(&file(PART)).map(|(id, section)| (id.to_owned(), section.clone())).collect();
    if !found.iter().any(|(id, _)| id == "pve") {
        found.push(("pve".to_owned(), Section { kind: "pve".to_owned(), props: Props::new() }));
    }
    found
}

pub fn exists(world: &World, id: &str) -> bool {
    all(world).iter().any(|(own, _)| own == id)
}

fn missing(id: &str) -> Refusal {
    no(format!("sdn '{id}' does not exist"))
}

fn row(call: &Call<'_>, id: &str, section: &Section) -> Value {
    let mut row: Map<String, Value> = section::typed_all(&fields(), &section.props);
    row.insert("type".into(), json!(section.kind));
    row.insert("ipam".into(), json!(id));
    row.insert("digest".into(), json!(digest(call.world, PART)));
    Value::Object(row)
}

fn list(call: &mut Call<'_>) -> Reply {
    let wanted = call.args.text("type");
    let privs = &["SDN.Audit", "SDN.Allocate"];
    let rows: Vec<Value> = all(call.world)
        .iter()
        .filter(|(id, _)| call.check_any(&format!("/sdn/ipams/{id}"), privs).is_ok())
        .filter(|(_, section)| wanted.is_none_or(|kind| section.kind == kind))
        .map(|(id, section)| row(call, id, section))
        .collect();
    Ok(Value::Array(rows).into())
}

fn show(call: &mut Call<'_>) -> Reply {
    let id = call.args.must("ipam");
    match all(call.world).iter().find(|(own, _)| own == id) {
        Some((_, section)) => Ok(row(call, id, section).into()),
        None => Err(missing(id)),
    }
}

/// Others are asked whether they are there before they are taken.
fn verify(call: &Call<'_>, section: &Section) -> Result<(), Refusal> {
    let url = section.props.get("url").map_or("", String::as_str);
    let (path, name) = match section.kind.as_str() {
        "netbox" => ("/ipam/aggregates/".to_owned(), "netbox"),
        "phpipam" => {
            (format!("/sections/{}", section.props.get("section").map_or("", String::as_str)), "phpipam")
        }
        _ => return Ok(()),
    };
    reach(call, &format!("{url}{path}"), &format!("Can't connect to {name} api"))
}

fn create(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "create sdn ipam object failed";
    let fail = section::failed(WHAT);
    let (id, kind) = (call.args.must("ipam").to_owned(), call.args.must("type").to_owned());
    let props = section::given(call, &["ipam", "type", "lock-token"]);
    options(&kind).check(&props, true)?;
    check_lock(call, WHAT)?;
    if exists(call.world, &id) {
        return Err(fail(no(format!("sdn ipam object ID '{id}' already defined"))));
    }
    let section = Section { kind, props };
    verify(call, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn update(call: &mut Call<'_>) -> Reply {
    const WHAT: &str = "update sdn ipam object failed";
    let fail = section::failed(WHAT);
    let id = call.args.must("ipam").to_owned();
    check_lock(call, WHAT)?;
    call.check_digest(&digest(call.world, PART)).map_err(&fail)?;
    let Some((_, mut section)) = all(call.world).into_iter().find(|(own, _)| *own == id) else {
        return Err(fail(missing(&id)));
    };
    let set = section::given(call, &["ipam", "delete", "digest", "lock-token"]);
    let options = options(&section.kind);
    options.check(&set, false).map_err(&fail)?;
    options.remove(&mut section.props, &set, &call.args.list("delete")).map_err(&fail)?;
    section.props.extend(set);
    verify(call, &section).map_err(&fail)?;
    call.world.cluster.file_mut(&file(PART)).insert(id, section);
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    // The original names a zone here.
    const WHAT: &str = "delete sdn zone object failed";
    let id = call.args.must("ipam").to_owned();
    check_lock(call, WHAT)?;
    if !exists(call.world, &id) {
        return Err(section::failed(WHAT)(missing(&id)));
    }
    call.world.cluster.file_mut(&file(PART)).shift_remove(&id);
    Ok(().into())
}

/// The addresses that are taken, of networks that run and hand out addresses.
fn status(call: &mut Call<'_>) -> Reply {
    if call.args.must("ipam") != "pve" {
        let text = "Currently only PVE IPAM is supported!";
        return Err(no(format!("{text} at /usr/share/perl5/PVE/API2/Network/SDN/Ipams.pm line 283.")));
    }
    let world = &*call.world;
    let mut rows = Vec::new();
    for (zone_id, subnets) in &world.ipam.0 {
        let Some(zone) = world.cluster.section(&running("zones"), zone_id) else { continue };
        if zone.props.get("ipam").is_none_or(|ipam| ipam != "pve") || !zone.props.contains_key("dhcp") {
            continue;
        }
        for (cidr, leases) in subnets {
            let id = format!("{zone_id}-{}", cidr.replace('/', "-"));
            let subnet = world.cluster.section(&running("subnets"), &id);
            let Some(vnet) = subnet.and_then(|subnet| subnet.props.get("vnet")) else { continue };
            if call
                .check_any(&format!("/sdn/zones/{zone_id}/{vnet}"), &["SDN.Audit", "SDN.Allocate"])
                .is_err()
            {
                continue;
            }
            for (ip, lease) in leases {
                let mut row = json!({ "zone": zone_id, "subnet": cidr, "ip": ip, "vnet": vnet });
                if lease.gateway {
                    row["gateway"] = json!(1);
                }
                let told = [("mac", &lease.mac), ("hostname", &lease.hostname)];
                for (key, value) in told.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
                    row[key] = json!(value);
                }
                if let Some(vmid) = lease.vmid {
                    row["vmid"] = json!(vmid);
                }
                rows.push(row);
            }
        }
    }
    Ok(Value::Array(rows).into())
}
