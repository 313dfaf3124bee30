//! What a datacenter has besides guests, as the data of its module.

use strata_blueprint::kinds;
use strata_resource::{Kind, Resource, Spec, Value};

use super::{Reading, not_rendered, plain, rules};
use crate::hcl::Expr;
use crate::project::Files;

/// One entry of an input of the module.
pub(crate) struct Entry {
    pub(crate) input: &'static str,
    pub(crate) key: String,
    pub(crate) value: Expr,
    /// It was there before it was described.
    pub(crate) adopt: bool,
}

pub(crate) fn is_adopted(spec: &Spec) -> bool {
    spec.get("adopt").and_then(Value::as_bool) == Some(true)
}

/// The entries of a resource; what the provider has no word for is reported.
pub(crate) fn datacenter(resource: &Resource, files: &mut Files) -> Vec<Entry> {
    let what = resource.address.to_string();
    let spec = &resource.spec;
    let mut reading = Reading::new(spec);
    reading.take("adopt");
    let (input, identity) = match resource.kind() {
        kinds::POOL => ("pools", "pool"),
        kinds::ROLE => ("roles", "role"),
        kinds::GROUP => ("groups", "group"),
        kinds::USER => ("users", "user"),
        kinds::TOKEN => ("tokens", "token"),
        kinds::ACL => ("acl", "subject"),
        kinds::STORAGE => ("storages", "storage"),
        kinds::MAPPING if text(spec, "bus") == Some("usb") => ("usb_mappings", "mapping"),
        kinds::MAPPING => ("pci_mappings", "mapping"),
        kinds::DNS => ("dns", "dns"),
        kinds::TIMEZONE => ("time_zones", "clock"),
        kinds::ALIAS => ("aliases", "alias"),
        kinds::IPSET => ("ip_sets", "ipset"),
        kinds::SECURITY_GROUP => ("security_groups", "security_group"),
        kinds::NETWORK => return network(resource, files),
        _ => return Vec::new(),
    };
    let key = reading.take(identity).and_then(Value::as_text).unwrap_or_default().to_owned();
    let key = if input == "acl" { resource.address.name().to_owned() } else { key };
    comment(&mut reading);
    let value = match resource.kind() {
        kinds::ROLE => reading.take("privileges").and_then(plain),
        kinds::TIMEZONE => reading.take("zone").and_then(plain),
        kind => {
            object(kind, &mut reading);
            None
        }
    };
    if resource.kind() == kinds::STORAGE && !STORAGES.contains(&text(spec, "type").unwrap_or_default()) {
        files.gap(what, "the provider has no resource for a storage of this type");
        return Vec::new();
    }
    if resource.kind() == kinds::DNS && text(spec, "search").is_none() {
        files.gap(what, "the provider cannot set name servers without `searchDomain`");
        return Vec::new();
    }
    let adopt = is_adopted(spec);
    if adopt && resource.kind() == kinds::ALIAS {
        files.gap(&what, "the provider cannot import it: OpenTofu leaves it alone");
    }
    for field in reading.left() {
        not_rendered(resource, &[field], files);
    }
    vec![Entry { input, key, value: value.unwrap_or(Expr::Object(reading.entries)), adopt }]
}

/// The types that the provider has resources for.
const STORAGES: [&str; 7] = ["dir", "lvm", "lvmthin", "zfspool", "nfs", "cifs", "pbs"];

fn object(kind: Kind, reading: &mut Reading<'_>) {
    let mut same = |fields: &[&'static str]| {
        for field in fields {
            reading.put(field, field);
        }
    };
    match kind {
        kinds::USER => {
            same(&["enabled", "groups", "email", "first_name", "last_name"]);
            expiration(reading);
            // Given by a variable that is in no file.
            reading.take("password");
        }
        kinds::TOKEN => {
            reading.put("privileges_separation", "privsep");
            expiration(reading);
            // An output of the module has the value.
            reading.take("secret");
        }
        kinds::ACL => {
            same(&["path", "propagate"]);
            reading.put("role_id", "grants");
            let field = match reading.take("subject_type").and_then(Value::as_text) {
                Some("group") => "group_id",
                Some("token") => "token_id",
                _ => "user_id",
            };
            reading.put(field, "subject");
        }
        kinds::STORAGE => storage(reading),
        kinds::MAPPING => {
            reading.take("bus");
            reading.put("mediated_devices", "mediated");
            reading.put("map", "devices");
        }
        kinds::DNS => {
            reading.put("domain", "search");
            reading.put("servers", "servers");
        }
        kinds::ALIAS => reading.put("cidr", "cidr"),
        kinds::IPSET => reading.put("addresses", "addresses"),
        kinds::SECURITY_GROUP => {
            let rules = reading.take("rules").map(rules);
            reading.set("rules", Some(Expr::List(rules.unwrap_or_default())));
        }
        _ => {}
    }
}

fn storage(reading: &mut Reading<'_>) {
    for field in [
        "type",
        "content",
        "nodes",
        "path",
        "server",
        "export",
        "share",
        "datastore",
        "namespace",
        "fingerprint",
        "username",
        "volume_group",
        "thin_pool",
    ] {
        reading.put(field, field);
    }
    // The provider has another default than Proxmox.
    let is_local = matches!(text(reading.spec, "type"), Some("dir" | "lvm"));
    let shared = reading.take("shared").and_then(Value::as_bool);
    reading.set("shared", is_local.then(|| Expr::Bool(shared.unwrap_or(false))));
    reading.put("zfs_pool", "pool");
    reading.put("thin_provision", "sparse");
    let enabled = reading.take("enabled").and_then(Value::as_bool).unwrap_or(true);
    reading.set("disable", (!enabled).then_some(Expr::Bool(true)));
    reading.take("password");
}

/// Proxmox keeps seconds; the provider takes a date.
fn expiration(reading: &mut Reading<'_>) {
    let seconds = reading.take("expire").and_then(Value::as_int).filter(|seconds| *seconds > 0);
    let date = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    reading.set("expiration_date", date.map(|date| Expr::text(date.to_string())));
}

/// What people wrote and the mark, as Proxmox keeps them.
fn comment(reading: &mut Reading<'_>) {
    let mut text = |field| reading.take(field).and_then(Value::as_text);
    let parts: Vec<&str> = [text("comment"), text("mark")].into_iter().flatten().collect();
    reading.set("comment", (!parts.is_empty()).then(|| Expr::text(parts.join(" "))));
}

/// Each interface of a host is an entry of its own.
fn network(resource: &Resource, files: &mut Files) -> Vec<Entry> {
    let spec = &resource.spec;
    let node = text(spec, "network").unwrap_or_default();
    let interfaces = spec.get("interfaces").and_then(Value::as_map);
    let mut entries = Vec::new();
    for (name, interface) in interfaces.into_iter().flat_map(Spec::iter) {
        let Some(interface) = interface.as_map() else { continue };
        let mut reading = Reading::new(interface);
        reading.take("adopt");
        let input = match reading.take("type").and_then(Value::as_text) {
            Some("bridge") => "bridges",
            Some("bond") => "bonds",
            Some("vlan") => "vlans",
            _ => {
                files.gap(
                    format!("{} {name}", resource.address),
                    "the provider has no resource for such an interface",
                );
                continue;
            }
        };
        reading.set("node_name", Some(Expr::text(node)));
        reading.set("name", Some(Expr::text(name)));
        for (field, own) in [
            ("address", "cidr"),
            ("gateway", "gateway"),
            ("address6", "cidr6"),
            ("gateway6", "gateway6"),
            ("mtu", "mtu"),
            ("autostart", "autostart"),
            ("comment", "comment"),
        ] {
            reading.put(field, own);
        }
        match input {
            "bridges" => {
                reading.put("ports", "ports");
                reading.put("vlan_aware", "vlan_aware");
            }
            "bonds" => {
                reading.put("slaves", "ports");
                reading.put("bond_mode", "mode");
            }
            _ => {
                reading.put("interface", "device");
                reading.put("vlan", "tag");
            }
        }
        for field in reading.left() {
            not_rendered(resource, &["interfaces", name, field], files);
        }
        entries.push(Entry {
            input,
            key: format!("{node}:{name}"),
            value: Expr::Object(reading.entries),
            adopt: is_adopted(interface),
        });
    }
    entries
}

/// The firewall of the datacenter: its options and its rules, if there are any.
pub(crate) fn datacenter_firewall(spec: &Spec) -> (Option<Expr>, Vec<Expr>) {
    let empty = Spec::new();
    let mut reading = Reading::new(spec.get("options").and_then(Value::as_map).unwrap_or(&empty));
    reading.put("enabled", "enable");
    reading.put("input_policy", "policy_in");
    reading.put("output_policy", "policy_out");
    (reading.object(), spec.get("rules").map(rules).unwrap_or_default())
}

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}
