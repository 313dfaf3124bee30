//! What cloud-init is given: the generated files, and which settings are not in the image yet.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{net, permit, schema};
use crate::api::param::usual;
use crate::api::permission::on;
use crate::api::{Call, Reply, Route, get, put, text};
use crate::endpoints::guest::check_lock;
use crate::task::LockKey;
use crate::world::made_up::sha1_hex;
use crate::world::{Guest, GuestKind, Node};

pub fn routes() -> Vec<Route> {
    let own = || vec![usual::node(), usual::vmid()];
    let audit = || on("/vms/{vmid}", &["VM.Audit"]);
    let dump_params = [own(), vec![text("type").one_of(&["user", "network", "meta"])]].concat();
    vec![
        get("/nodes/{node}/qemu/{vmid}/cloudinit", audit(), own(), pending),
        put(
            "/nodes/{node}/qemu/{vmid}/cloudinit",
            on("/vms/{vmid}", &["VM.Config.Cloudinit"]),
            own(),
            regenerate,
        ),
        get("/nodes/{node}/qemu/{vmid}/cloudinit/dump", audit(), dump_params, dump),
    ]
}

fn pending(call: &mut Call<'_>) -> Reply {
    let guest = call.world.guest(call.args.must("node"), call.vmid(), GuestKind::Qemu)?;
    let rows: Vec<Value> = permit::CLOUDINIT
        .iter()
        .filter_map(|key| guest.get(key).filter(|v| !v.is_empty() && *v != "0").map(|value| (*key, value)))
        .map(|(key, value)| match key {
            "cipassword" => json!({ "key": key, "value": "**********" }),
            _ => json!({ "key": key, "value": schema::shown(key, value) }),
        })
        .collect();
    Ok(Value::Array(rows).into())
}

fn regenerate(call: &mut Call<'_>) -> Reply {
    let (node, vmid) = (call.node(), call.vmid());
    call.lock(LockKey::Qemu(vmid))?;
    check_lock(call.world.guest(&node, vmid, GuestKind::Qemu)?)?;
    Ok(().into())
}

fn dump(call: &mut Call<'_>) -> Reply {
    let node = call.node();
    let guest = call.world.guest(&node, call.vmid(), GuestKind::Qemu)?;
    let mask = !call.may(&format!("/vms/{}", guest.vmid), "VM.Config.Cloudinit");
    let host = &call.world.nodes[&node];
    let nocloud = is_nocloud(guest);
    let network = || if nocloud { network_v1(guest, host) } else { network_eni(guest, host) };
    let text = match call.args.must("type") {
        "user" => user_data(guest, mask),
        "network" => network(),
        _ => {
            let id = sha1_hex(&(user_data(guest, false) + &network()));
            match nocloud {
                true => format!("instance-id: {id}\n"),
                false => format!(
                    "{{\n     \"uuid\": \"{id}\",\n     \"network_config\": {{ \"content_path\": \"/content/0000\" }}\n}}\n"
                ),
            }
        }
    };
    Ok(text.into())
}

fn is_nocloud(guest: &Guest) -> bool {
    match guest.get("citype") {
        Some(kind) => kind == "nocloud",
        None => !guest.get("ostype").is_some_and(|os| os.starts_with('w')),
    }
}

fn user_data(guest: &Guest, mask: bool) -> String {
    let name = guest.get("name").map_or_else(|| format!("VM{}", guest.vmid), str::to_owned);
    let (host, fqdn) = match (name.split_once('.'), guest.get("searchdomain")) {
        (Some((host, _)), _) => (host.to_owned(), name.clone()),
        (None, Some(domain)) => (name.clone(), format!("{name}.{domain}")),
        (None, None) => (name.clone(), name.clone()),
    };
    let mut out = format!("#cloud-config\nhostname: {host}\nmanage_etc_hosts: true\nfqdn: {fqdn}\n");
    let user = guest.get("ciuser");
    if let Some(user) = user {
        let _ = writeln!(out, "user: {user}");
        if user == "root" {
            out.push_str("disable_root: False\n");
        }
    }
    if let Some(password) = guest.get("cipassword") {
        let _ = writeln!(out, "password: {}", if mask { "**********" } else { password });
    }
    if let Some(keys) = guest.get("sshkeys") {
        out.push_str("ssh_authorized_keys:\n");
        for key in percent_decode_str(keys).decode_utf8_lossy().lines().filter(|k| !k.trim().is_empty()) {
            let _ = writeln!(out, "  - {key}");
        }
    }
    out.push_str("chpasswd:\n  expire: False\n");
    if user != Some("root") {
        out.push_str("users:\n  - default\n");
    }
    if guest.get("ciupgrade") != Some("0") {
        out.push_str("package_upgrade: true\n");
    }
    out
}

/// Cards that have an address configuration, with their number.
fn cards(guest: &Guest) -> Vec<(String, String, crate::api::PropertyString)> {
    guest
        .config
        .iter()
        .filter(|(key, _)| key.starts_with("net") && schema::exists(key))
        .filter_map(|(key, value)| {
            let number = key.trim_start_matches("net").to_owned();
            let addresses = guest.get(&format!("ipconfig{number}"))?;
            let mac = net::parse(value).get("macaddr").unwrap_or_default().to_owned();
            Some((number, mac, schema::parse_ipconfig(addresses)))
        })
        .collect()
}

/// Name servers and search domains: the VM's own, or else its host's.
fn resolver(guest: &Guest, host: &Node) -> (Vec<String>, Vec<String>) {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let servers = match guest.get("nameserver") {
        Some(list) => words(list),
        None => ["dns1", "dns2", "dns3"].iter().filter_map(|key| host.dns.get(*key).cloned()).collect(),
    };
    let search =
        words(guest.get("searchdomain").or(host.dns.get("search").map(String::as_str)).unwrap_or_default());
    (servers, search)
}

fn split_address(cidr: &str) -> (String, String) {
    let (address, bits) = cidr.split_once('/').unwrap_or((cidr, "32"));
    let bits: u32 = bits.parse().unwrap_or(32);
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
    (address.to_owned(), Ipv4Addr::from(mask).to_string())
}

fn network_v1(guest: &Guest, host: &Node) -> String {
    let mut out = "version: 1\nconfig:\n".to_owned();
    for (number, mac, ip) in cards(guest) {
        let mac = mac.to_lowercase();
        let _ = write!(
            out,
            "    - type: physical\n      name: eth{number}\n      mac_address: '{mac}'\n      subnets:\n"
        );
        match ip.get("ip") {
            Some("dhcp") => out.push_str("      - type: dhcp4\n"),
            Some(cidr) => {
                let (address, mask) = split_address(cidr);
                let _ = write!(
                    out,
                    "      - type: static\n        address: '{address}'\n        netmask: '{mask}'\n"
                );
                if let Some(gateway) = ip.get("gw") {
                    let _ = writeln!(out, "        gateway: '{gateway}'");
                }
            }
            None => {}
        }
        match ip.get("ip6") {
            Some("dhcp") => out.push_str("      - type: dhcp6\n"),
            Some("auto") => out.push_str("      - type: ipv6_slaac\n"),
            Some(cidr) => {
                let _ = write!(out, "      - type: static6\n        address: '{cidr}'\n");
                if let Some(gateway) = ip.get("gw6") {
                    let _ = writeln!(out, "        gateway: '{gateway}'");
                }
            }
            None => {}
        }
    }
    let (servers, search) = resolver(guest, host);
    out.push_str("    - type: nameserver\n");
    for (title, list) in [("address", servers), ("search", search)] {
        if !list.is_empty() {
            let _ = writeln!(out, "      {title}:");
            for entry in list {
                let _ = writeln!(out, "      - '{entry}'");
            }
        }
    }
    out
}

fn network_eni(guest: &Guest, host: &Node) -> String {
    let mut out = "auto lo\niface lo inet loopback\n\n".to_owned();
    let (servers, search) = resolver(guest, host);
    if !servers.is_empty() {
        let _ = writeln!(out, "        dns_nameservers {}", servers.join(" "));
    }
    if !search.is_empty() {
        let _ = writeln!(out, "        dns_search {}", search.join(" "));
    }
    for (number, _, ip) in cards(guest) {
        let card = format!("eth{number}");
        let _ = writeln!(out, "auto {card}");
        match ip.get("ip") {
            Some("dhcp") => {
                let _ = writeln!(out, "iface {card} inet dhcp");
            }
            Some(cidr) => {
                let (address, mask) = split_address(cidr);
                let _ = write!(
                    out,
                    "iface {card} inet static\n        address {address}\n        netmask {mask}\n"
                );
                if let Some(gateway) = ip.get("gw") {
                    let _ = writeln!(out, "        gateway {gateway}");
                }
            }
            None => {}
        }
        match ip.get("ip6") {
            Some(word @ ("auto" | "dhcp")) => {
                let _ = writeln!(out, "iface {card} inet6 {word}");
            }
            Some(cidr) => {
                let (address, bits) = cidr.split_once('/').unwrap_or((cidr, "64"));
                let _ = write!(
                    out,
                    "iface {card} inet6 static\n        address {address}\n        netmask {bits}\n"
                );
                if let Some(gateway) = ip.get("gw6") {
                    let _ = writeln!(out, "        gateway {gateway}");
                }
            }
            None => {}
        }
    }
    out
}
