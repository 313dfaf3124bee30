//! What the cluster does by itself, and its networks, where the source says it in another shape than a spec does.

use strata_resource::{KindTable, Spec, Value};
use strata_source::hypervisor::sdn::SdnVnet;
use strata_source::hypervisor::services::{DatacenterOptions, NotificationMatcher};
use strata_source::hypervisor::{GuestPool, sdn::Sdn};

use super::said;

/// Each type of metric server has fields of its own, and the source one key for them.
const OF_TYPES: [(&str, &str); 5] = [
    ("influx_protocol", "protocol"),
    ("otel_protocol", "protocol"),
    ("otel_path", "path"),
    ("otel_verify", "verify_certificate"),
    ("otel_timeout", "timeout"),
];

pub(super) fn metric_server(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    for (field, key) in OF_TYPES {
        if let Some(value) = shaped.remove(field) {
            shaped.insert(key.to_owned(), value);
        }
    }
    shaped
}

/// Proxmox takes one text for all severities of a condition. Several conditions cannot be written.
pub(super) fn matcher(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    let field = NotificationMatcher::severities.name();
    let one = match shaped.get(field).and_then(Value::as_list) {
        Some([one]) => one.as_text().map(|all| all.split(',').map(Value::text).collect()),
        _ => None,
    };
    if let Some(all) = one {
        shaped.insert(field.to_owned(), Value::List(all));
    }
    shaped
}

/// What goes with whoever vanished is one text to Proxmox.
pub(super) fn realm_sync(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    if let Some(Value::Text(vanished)) = shaped.get_mut("remove_vanished") {
        let each = vanished.split(';').filter(|part| !part.is_empty() && *part != "none").map(Value::text);
        let each = each.collect();
        shaped.insert("remove_vanished".to_owned(), Value::List(each));
    }
    shaped
}

pub(super) fn options(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    if let Some(Value::Map(mut own)) = shaped.remove("ha") {
        let policy = own.remove("shutdown_policy");
        shaped.extend(policy.map(|policy| (DatacenterOptions::ha_shutdown_policy.name().to_owned(), policy)));
    }
    for field in [DatacenterOptions::migration.name(), DatacenterOptions::replication.name()] {
        // What is sent with a network where the source says nothing.
        if let Some(Value::Map(transfer)) = shaped.get_mut(field)
            && transfer.contains_key("network")
            && transfer.get("type").and_then(Value::as_text) == Some("secure")
        {
            transfer.remove("type");
        }
    }
    if let Some(Value::Map(style)) = shaped.get_mut("tag_style") {
        style.retain(|_, value| *value != Value::Bool(false));
        if let Some(Value::Text(colors)) = style.get("colors") {
            let each = colors.split(';').filter(|color| !color.is_empty()).map(Value::text).collect();
            style.insert("colors".to_owned(), Value::List(each));
        }
    }
    shaped.retain(|_, value| value.as_map().is_none_or(|map| !map.is_empty()));
    shaped
}

/// Subnets stand in their networks. What was there before is never removed.
pub(super) fn sdn(table: &KindTable, spec: &Spec) -> Spec {
    let mut shaped = said(table, spec);
    let subnets = shaped.remove("subnets");
    for class in [Sdn::controllers.name(), Sdn::zones.name(), Sdn::vnets.name()] {
        if let Some(Value::Map(all)) = shaped.get_mut(class) {
            all.values_mut().for_each(found);
        }
    }
    for (name, mut subnet) in subnets.as_ref().and_then(Value::as_map).into_iter().flatten().map(owned) {
        found(&mut subnet);
        let vnets = shaped.get_mut(Sdn::vnets.name());
        if let (Some((vnet, cidr)), Some(Value::Map(vnets))) = (name.split_once(' '), vnets)
            && let Some(Value::Map(vnet)) = vnets.get_mut(vnet)
        {
            let own =
                vnet.entry(SdnVnet::subnets.name().to_owned()).or_insert_with(|| Value::Map(Spec::new()));
            if let Value::Map(own) = own {
                own.insert(cidr.to_owned(), subnet);
            }
        }
    }
    shaped.retain(|_, value| value.as_map().is_none_or(|map| !map.is_empty()));
    shaped
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// It is there already; every switch of these is off where nothing is said.
fn found(part: &mut Value) {
    if let Value::Map(part) = part {
        part.retain(|_, value| *value != Value::Bool(false));
        part.insert(GuestPool::adopt.name().to_owned(), Value::Bool(true));
    }
}
