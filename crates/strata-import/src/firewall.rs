//! Firewalls of guests, which the bpg/proxmox provider has as resources of their own.

use crate::records::{Firewall, Guest};
use serde_json::{Value as Json, json};
use strata_source::machine::firewall::Policy;
use strata_yaml::Choice;

use super::Import;
use super::guest::{RootReferences, kind};
use super::module::Resource;
use super::output::{self, Object, Put};
use super::tree::{Content, Tree};

/// The guest that a resource is about: by its VMID, or by the resource that makes it.
fn is_of(around: &RootReferences<'_>, firewall: &Resource, guest: &Resource, vm_id: i64) -> bool {
    ["vm_id", "container_id"].iter().any(|key| {
        let Some(tree) = firewall.body.get(key) else { return false };
        match &tree.content {
            Content::Unknown(expression) => {
                let wanted = kind(&guest.kind);
                let each = expression.contains("each.key") || expression.contains("count.index");
                if each && firewall.key != guest.key {
                    return false;
                }
                around.named(wanted, expression).is_some_and(|found| std::ptr::eq(found, guest))
            }
            _ => tree.peek().and_then(|text| text.parse().ok()) == Some(vm_id),
        }
    })
}

/// Writes what the code says of a guest's firewall, and takes it.
pub(super) fn of_guest(
    import: &mut Import<'_>,
    around: &RootReferences<'_>,
    guest: &Resource,
    vm_id: i64,
    written: &mut Object,
) {
    let mut firewall = Object::new();
    let mut rules = Vec::new();
    for resource in around.resources {
        let body = &resource.body;
        match kind(&resource.kind) {
            "firewall_options" if is_of(around, resource, guest, vm_id) => options(body, &mut firewall),
            "firewall_rules" if is_of(around, resource, guest, vm_id) => {
                rules.extend(body.several("rule").into_iter().map(output::firewall_rule));
            }
            _ => continue,
        }
        body.take_keys(&["vm_id", "container_id", "node_name"]);
        import.watch(&format!("{}.", resource.address()), body);
    }
    firewall.put_full(Firewall::rules, json!(rules));
    written.put_full(Guest::firewall, Json::Object(firewall));
}

/// Whether this is a resource that some guest of the same code takes.
pub(super) fn is_firewall(resource: &Resource) -> bool {
    let of_guest = resource.body.get("vm_id").is_some() || resource.body.get("container_id").is_some();
    matches!(kind(&resource.kind), "firewall_options" | "firewall_rules") && of_guest
}

fn options(body: &Tree, firewall: &mut Object) {
    // Nothing said leaves it off.
    firewall.set(Firewall::enabled, json!(body.bool("enabled").unwrap_or(false)));
    for (key, there) in [(Firewall::policy_in, "input_policy"), (Firewall::policy_out, "output_policy")] {
        firewall.put(key, body.text_if(there, |policy| Policy::WORDS.contains(&policy)));
    }
    for (key, there) in [(Firewall::log_level_in, "log_level_in"), (Firewall::log_level_out, "log_level_out")]
    {
        firewall.put(key, output::log_level(body, there));
    }
    for (key, there) in [
        (Firewall::dhcp, "dhcp"),
        (Firewall::mac_filter, "macfilter"),
        (Firewall::ip_filter, "ipfilter"),
        (Firewall::ndp, "ndp"),
        (Firewall::radv, "radv"),
    ] {
        firewall.put(key, body.bool(there));
    }
}
