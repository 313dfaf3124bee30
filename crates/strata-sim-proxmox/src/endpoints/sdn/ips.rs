//! Addresses of a network: taken, changed and given back by hand. Only what was applied has any.

use std::net::IpAddr;

use super::subnets::is_inside;
use super::{die_at, file, ids, running};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Param, Refusal, Reply, Route, delete, format, fuse, no, post, put, text};
use crate::world::World;
use crate::world::ipam::Lease;

const PATH: &str = "/cluster/sdn/vnets/{vnet}/ips";

pub fn routes() -> Vec<Route> {
    let allocate = || on("/sdn/zones/{zone}/{vnet}", &["SDN.Allocate"]);
    vec![
        post(PATH, allocate(), fields(), create),
        put(PATH, allocate(), [fields(), vec![usual::vmid().opt()]].concat(), update),
        delete(PATH, allocate(), fields(), remove),
    ]
}

fn fields() -> Vec<Param> {
    vec![ids::vnet(), ids::zone(), text("ip").format(format::ip), text("mac").format(format::mac).opt()]
}

/// An address as the address management writes it.
pub fn canonical(ip: &str) -> String {
    ip.parse::<IpAddr>().map_or_else(|_| ip.to_owned(), |ip| ip.to_string())
}

/// Where an address of a network belongs: zone, network, and whether anybody keeps addresses there.
struct AllocationPlace {
    zone: String,
    cidr: String,
    managed: bool,
}

fn place(world: &World, vnet: &str, ip: &str) -> Result<AllocationPlace, Refusal> {
    let mut subnets: Vec<(&str, _)> = Vec::new();
    let name = running("subnets");
    subnets.extend(world.cluster.file(&name));
    subnets.sort_by_key(|(id, _)| *id);
    for (id, subnet) in subnets {
        let mut parts = id.splitn(3, '-');
        let (Some(zone), Some(network), Some(bits)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let cidr = format!("{network}/{bits}");
        if subnet.props.get("vnet").is_some_and(|own| own == vnet) && is_inside(ip, &cidr) {
            return Ok(AllocationPlace {
                zone: zone.to_owned(),
                cidr,
                managed: zone_of(world, vnet, "ipam").is_some(),
            });
        }
    }
    Err(die_at(&format!("can't find any subnet for ip {ip}"), "/Subnets", 115))
}

/// An option of the zone that a network is to be in.
fn zone_of<'w>(world: &'w World, vnet: &str, option: &str) -> Option<&'w String> {
    let zone = world.cluster.section(&file("vnets"), vnet)?.props.get("zone")?;
    world.cluster.section(&file("zones"), zone)?.props.get(option)
}

fn take(world: &mut World, vnet: &str, ip: &str, lease: Lease) -> Result<(), Refusal> {
    let place = place(world, vnet, ip)?;
    if place.managed {
        world.ipam.take(&place.zone, &place.cidr, &canonical(ip), lease).map_err(no)?;
    }
    Ok(())
}

fn release(world: &mut World, vnet: &str, ip: &str) -> Result<(), Refusal> {
    let place = place(world, vnet, ip)?;
    if place.managed {
        world.ipam.release(&place.zone, &place.cidr, &canonical(ip)).map_err(no)?;
    }
    Ok(())
}

fn create(call: &mut Call<'_>) -> Reply {
    let (vnet, ip) = (call.args.must("vnet").to_owned(), call.args.must("ip").to_owned());
    let lease = Lease { mac: call.args.owned("mac"), ..Lease::default() };
    take(call.world, &vnet, &ip, lease)?;
    Ok(().into())
}

/// Errors of these two come with one more newline.
fn again(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Error { status, message, errors: None } => fuse(status, format!("{message}\n")),
        other => other,
    }
}

fn update(call: &mut Call<'_>) -> Reply {
    let (vnet, ip) = (call.args.must("vnet").to_owned(), call.args.must("ip").to_owned());
    let (mac, vmid) = (call.args.owned("mac"), call.args.has("vmid").then(|| call.vmid()));
    let handed_out = ["ipam", "dhcp"].iter().all(|option| zone_of(call.world, &vnet, option).is_some());
    let zone = call.world.cluster.section(&file("vnets"), &vnet).and_then(|v| v.props.get("zone").cloned());
    let old = zone
        .filter(|_| handed_out)
        .zip(mac.as_deref())
        .and_then(|(zone, mac)| call.world.ipam.address_of(&zone, mac, ip.contains(':')).map(str::to_owned))
        .unwrap_or_default();
    release(call.world, &vnet, &old)?;
    let lease = || Lease { mac: mac.clone(), vmid, ..Lease::default() };
    if let Err(refusal) = take(call.world, &vnet, &ip, lease()) {
        take(call.world, &vnet, &old, lease())?;
        return Err(again(refusal));
    }
    Ok(().into())
}

fn remove(call: &mut Call<'_>) -> Reply {
    let (vnet, ip) = (call.args.must("vnet").to_owned(), call.args.must("ip").to_owned());
    release(call.world, &vnet, &ip).map_err(again)?;
    Ok(().into())
}
