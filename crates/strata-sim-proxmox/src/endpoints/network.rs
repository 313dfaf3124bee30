//! Network interfaces of nodes. Changes are staged, and take effect with a reload.

mod check;
mod file;
mod view;

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{
    Answer, Call, Param, Perm, Refusal, Reply, Route, delete, flag, format, get, int, post, put, text, wrong,
};
use crate::task::{Cont, Step, work};
use crate::world::node::Iface;
use crate::world::{Node, World};

const PATH: &str = "/nodes/{node}/network";
const ONE: &str = "/nodes/{node}/network/{iface}";

const KINDS: &[&str] = &[
    "bridge",
    "bond",
    "eth",
    "alias",
    "vlan",
    "fabric",
    "OVSBridge",
    "OVSBond",
    "OVSPort",
    "OVSIntPort",
    "vnet",
    "unknown",
];
const FILTERS: &[&str] = &[
    "bridge",
    "bond",
    "eth",
    "alias",
    "vlan",
    "fabric",
    "OVSBridge",
    "OVSBond",
    "OVSPort",
    "OVSIntPort",
    "vnet",
    "any_bridge",
    "any_local_bridge",
    "include_sdn",
];

pub fn routes() -> Vec<Route> {
    let modify = || on("/nodes/{node}", &["Sys.Modify"]);
    let audit = on("/nodes/{node}", &["Sys.Audit"]);
    let own = || vec![usual::node(), iface()];
    let settings = || [own(), options()].concat();
    vec![
        get(PATH, Perm::Anyone, vec![usual::node(), text("type").one_of(FILTERS).opt()], list),
        post(PATH, modify(), settings(), create),
        put(PATH, modify(), vec![usual::node(), flag("regenerate-frr").opt()], reload),
        delete(PATH, modify(), vec![usual::node()], |call| {
            let node = call.node();
            if let Some(node) = call.world.nodes.get_mut(&node) {
                node.staged = None;
            }
            Ok(().into())
        }),
        get(ONE, audit, own(), show),
        put(ONE, modify(), [settings(), vec![usual::delete()]].concat(), update),
        delete(ONE, modify(), own(), remove),
    ]
}

fn iface() -> Param {
    text("iface").format(format::iface).min_len(2).max_len(20)
}

fn options() -> Vec<Param> {
    vec![
        text("type").one_of(KINDS),
        text("comments").opt(),
        text("comments6").opt(),
        flag("autostart").opt(),
        flag("bridge_vlan_aware").opt(),
        text("bridge_vids").each(check::vlan_range).opt(),
        text("bridge_ports").each(format::iface).opt(),
        text("ovs_ports").each(format::iface).opt(),
        int("ovs_tag").min(1.0).max(4094.0).opt(),
        text("ovs_options").max_len(1024).opt(),
        text("ovs_bridge").format(format::iface).opt(),
        text("slaves").each(format::iface).opt(),
        text("ovs_bonds").each(format::iface).opt(),
        text("bond_mode")
            .one_of(&[
                "balance-rr",
                "active-backup",
                "balance-xor",
                "broadcast",
                "802.3ad",
                "balance-tlb",
                "balance-alb",
                "balance-slb",
                "lacp-balance-slb",
                "lacp-balance-tcp",
            ])
            .opt(),
        text("bond-primary").format(format::iface).opt(),
        text("bond_xmit_hash_policy").one_of(&["layer2", "layer2+3", "layer3+4"]).opt(),
        text("vlan-raw-device").format(format::iface).opt(),
        int("vlan-id").min(1.0).max(4094.0).opt(),
        text("gateway").format(format::ipv4).opt(),
        text("netmask").format(format::netmask4).needs("address").opt(),
        text("address").format(format::ipv4).needs("netmask").opt(),
        text("cidr").format(format::cidr4).opt(),
        int("mtu").min(1280.0).max(65_520.0).opt(),
        text("gateway6").format(format::ipv6).opt(),
        int("netmask6").min(0.0).max(128.0).needs("address6").opt(),
        text("address6").format(format::ipv6).needs("netmask6").opt(),
        text("cidr6").format(format::cidr6).opt(),
    ]
}

/// The interfaces as they will be, which are those that the API shows.
fn staged(node: &Node) -> &IndexMap<String, Iface> {
    node.staged.as_ref().unwrap_or(&node.ifaces)
}

fn list(call: &mut Call<'_>) -> Reply {
    let node = &call.world.nodes[&call.node()];
    let filter = call.args.text("type");
    let ifaces = staged(node);
    let mut rows = Vec::new();
    // Networks that software defines are in no file, and listed from where they are defined.
    for (at, (name, iface)) in ifaces.iter().filter(|(_, iface)| iface.kind != "vnet").enumerate() {
        let bridge = matches!(iface.kind.as_str(), "bridge" | "OVSBridge");
        let wanted = match filter {
            None | Some("include_sdn") => true,
            Some("any_bridge" | "any_local_bridge") => bridge,
            Some(kind) => iface.kind == kind,
        };
        if wanted && (!bridge || may_see_bridge(call, "localnetwork", name)) {
            let mut row = view::row(ifaces, name, iface, at);
            row.insert("iface".into(), json!(name));
            rows.push(Value::Object(row));
        }
    }
    if matches!(filter, Some("any_bridge" | "include_sdn" | "vnet")) {
        rows.extend(virtual_networks(call, &node.name));
    }
    Ok(Answer { changes: changes(call.world, node), ..Value::Array(rows).into() })
}

/// Who may look at a bridge, or at one of the VLANs on it.
fn may_see_bridge(call: &Call<'_>, zone: &str, bridge: &str) -> bool {
    let privs = &["SDN.Audit", "SDN.Use"];
    let path = format!("/sdn/zones/{zone}/{bridge}");
    let below = format!("{path}/");
    let vlans = call.world.access.acl.keys().filter(|listed| listed.starts_with(&below));
    call.check_any(&path, privs).is_ok() || vlans.into_iter().any(|vlan| call.check_any(vlan, privs).is_ok())
}

/// The networks that software defines and that were brought into effect on this node.
fn virtual_networks(call: &Call<'_>, node: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    for (id, vnet) in call.world.cluster.file("sdn/running/vnets") {
        let Some(zone_id) = vnet.props.get("zone") else { continue };
        let Some(zone) = call.world.cluster.section("sdn/running/zones", zone_id) else { continue };
        let here = zone.props.get("nodes").is_none_or(|nodes| nodes.split(',').any(|n| n == node));
        if here && may_see_bridge(call, zone_id, id) {
            rows.push(json!({
                "iface": id, "type": "vnet", "active": "1", "ipam": u8::from(zone.props.contains_key("ipam")),
                "vlanaware": u8::from(vnet.props.get("vlanaware").is_some_and(|v| v == "1")),
                "comments": vnet.props.get("alias"),
            }));
        }
    }
    rows
}

/// What is staged, as a difference between files.
fn changes(world: &World, node: &Node) -> Option<String> {
    let new = file::text(node.staged.as_ref()?);
    let old = file::text(&node.ifaces);
    file::difference(&old, &new, world.now())
}

fn show(call: &mut Call<'_>) -> Reply {
    let ifaces = staged(&call.world.nodes[&call.node()]);
    let name = call.args.must("iface");
    match ifaces.get_full(name) {
        Some((at, _, iface)) => Ok(Value::Object(view::row(ifaces, name, iface, at)).into()),
        None => Err(missing()),
    }
}

fn missing() -> Refusal {
    wrong("iface", "interface does not exist")
}

/// The interfaces to change, with what was already staged.
fn draft(call: &Call<'_>) -> IndexMap<String, Iface> {
    staged(&call.world.nodes[&call.node()]).clone()
}

/// Keeps a draft, in the order in which the file will have it.
fn stage(call: &mut Call<'_>, mut ifaces: IndexMap<String, Iface>, new: Option<&str>) -> Reply {
    check::check_file(&ifaces)?;
    file::sort(&mut ifaces, new);
    let node = call.node();
    if let Some(node) = call.world.nodes.get_mut(&node) {
        node.staged = Some(ifaces);
    }
    Ok(().into())
}

fn create(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("iface").to_owned();
    let mut ifaces = draft(call);
    if ifaces.contains_key(&name) {
        return Err(wrong("iface", "interface already exists"));
    }
    check::check_duplicates(call, &ifaces, &name)?;
    let (address, address6) = check::addresses(call)?;
    let mut iface = Iface { kind: call.args.must("type").to_owned(), ..Iface::default() };
    set(call, &mut iface, address, address6);
    ifaces.insert(name.clone(), iface);
    stage(call, ifaces, Some(&name))
}

fn update(call: &mut Call<'_>) -> Reply {
    let name = call.args.must("iface").to_owned();
    let mut ifaces = draft(call);
    let Some(mut iface) = ifaces.get(&name).cloned() else { return Err(missing()) };
    for key in call.args.list("delete") {
        iface.props.shift_remove(&key);
        // An address is kept in one piece.
        match key.as_str() {
            "address" | "netmask" => drop(iface.props.shift_remove("cidr")),
            "address6" | "netmask6" => drop(iface.props.shift_remove("cidr6")),
            _ => {}
        }
    }
    let (address, address6) = check::addresses(call)?;
    check::check_duplicates(call, &ifaces, &name)?;
    iface.kind = call.args.must("type").to_owned();
    set(call, &mut iface, address, address6);
    ifaces.insert(name, iface);
    stage(call, ifaces, None)
}

/// Takes the options over. Which families an interface has follows from the addresses of this very request.
fn set(call: &Call<'_>, iface: &mut Iface, address: Option<String>, address6: Option<String>) {
    const OWN: &[&str] =
        &["node", "iface", "type", "delete", "address", "netmask", "cidr", "address6", "netmask6", "cidr6"];
    for (key, value) in call.args.texts().filter(|(key, _)| !OWN.contains(key)) {
        let value = match key {
            "bridge_ports" | "slaves" | "bridge_vids" | "ovs_ports" | "ovs_bonds" => {
                crate::api::args::split_list(value).collect::<Vec<_>>().join(" ")
            }
            _ => value.to_owned(),
        };
        iface.props.insert(key.to_owned(), value);
    }
    let method = |given: bool| if given { "static" } else { "manual" }.to_owned();
    let families = match (address.is_some(), address6.is_some()) {
        (true, true) => "inet inet6",
        (false, true) => "inet6",
        _ => "inet",
    };
    iface.props.insert("method".into(), method(address.is_some()));
    iface.props.insert("method6".into(), method(address6.is_some()));
    iface.props.insert("families".into(), families.into());
    iface.props.extend(address.map(|cidr| ("cidr".to_owned(), cidr)));
    iface.props.extend(address6.map(|cidr| ("cidr6".to_owned(), cidr)));
    // What belongs to a family that is not written is lost.
    if families == "inet6" {
        for key in ["cidr", "gateway"] {
            iface.props.shift_remove(key);
        }
    } else if families == "inet" {
        for key in ["cidr6", "gateway6"] {
            iface.props.shift_remove(key);
        }
    }
}

fn remove(call: &mut Call<'_>) -> Reply {
    let mut ifaces = draft(call);
    if ifaces.shift_remove(call.args.must("iface")).is_none() {
        return Err(missing());
    }
    stage(call, ifaces, None)
}

fn reload(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    Ok(call.spawn(&node.clone(), "srvreload", "networking", reloading(node)).into())
}

/// Brings what is staged into effect.
pub fn reloading(node: String) -> Cont {
    work(move |_, _| {
        Ok(Step::wait(1.0, move |world, _| {
            let Some(node) = world.nodes.get_mut(&node) else { return Ok(Step::Done) };
            if let Some(mut new) = node.staged.take() {
                for (name, iface) in &mut new {
                    let was = node.ifaces.get(name).is_some_and(|old| old.active);
                    iface.active = was || iface.props.get("autostart").is_some_and(|a| a == "1");
                }
                node.ifaces = new;
            }
            Ok(Step::Done)
        }))
    })
}
