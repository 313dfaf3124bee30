//! `imports.tf` of a datacenter: what was there before it was described is taken over, and with `taken_over` all that Strata has built.

use crate::hcl::{Body, Expr, quote};
use crate::variable::Default::EmptyMap;
use crate::variable::Type::{List, Map, Text};
use crate::variable::Variable;

pub(super) const ADOPTED: Variable = Variable::optional(
    "adopted",
    Map(&List(&Text)),
    "What was there before it was described here, by input: it is taken over",
)
.or(EmptyMap);

/// The provider cannot import them.
pub(super) const ALIASES: &str = "aliases";

/// What a datacenter has: the input, the resource, and its name to the provider.
const OBJECTS: [(&str, &str, &str); 22] = [
    ("pools", "proxmox_virtual_environment_pool", "each.key"),
    ("roles", "proxmox_virtual_environment_role", "each.key"),
    ("groups", "proxmox_virtual_environment_group", "each.key"),
    ("users", "proxmox_virtual_environment_user", "each.key"),
    ("tokens", "proxmox_user_token", "each.key"),
    (
        "acl",
        "proxmox_acl",
        "\"${each.value.path}?${coalesce(each.value.user_id, each.value.group_id, each.value.token_id)}?${each.value.role_id}\"",
    ),
    ("pci_mappings", "proxmox_hardware_mapping_pci", "each.key"),
    ("usb_mappings", "proxmox_hardware_mapping_usb", "each.key"),
    ("storages dir", "proxmox_storage_directory", "each.key"),
    ("storages lvm", "proxmox_storage_lvm", "each.key"),
    ("storages lvmthin", "proxmox_storage_lvmthin", "each.key"),
    ("storages zfspool", "proxmox_storage_zfspool", "each.key"),
    ("storages nfs", "proxmox_storage_nfs", "each.key"),
    ("storages cifs", "proxmox_storage_cifs", "each.key"),
    ("storages pbs", "proxmox_storage_pbs", "each.key"),
    ("dns", "proxmox_virtual_environment_dns", "each.key"),
    ("time_zones", "proxmox_virtual_environment_time", "each.key"),
    ("bridges", "proxmox_network_linux_bridge", "each.key"),
    ("bonds", "proxmox_network_linux_bond", "each.key"),
    ("vlans", "proxmox_network_linux_vlan", "each.key"),
    ("ip_sets", "proxmox_virtual_environment_firewall_ipset", "\"cluster/${each.key}\""),
    ("security_groups", "proxmox_virtual_environment_cluster_firewall_security_group", "each.key"),
];

pub(super) fn blocks() -> Body {
    let mut body = Body::new();
    body.block("locals", &[], |body| {
        body.attribute(
            "adopted_firewall",
            Expr::raw("contains(lookup(var.adopted, \"firewall\", []), \"datacenter\")"),
        );
        body.comment("The keys of what is there already, by input.");
        let mut inputs: Vec<&str> = OBJECTS.iter().map(|(input, ..)| input_of(input).0).collect();
        inputs.push(ALIASES);
        inputs.dedup();
        let there = inputs.into_iter().map(|input| {
            let adopted = format!("lookup(var.adopted, {}, [])", quote(input));
            (input.to_owned(), Expr::raw(format!("var.taken_over ? keys(var.{input}) : {adopted}")))
        });
        body.attribute("there", Expr::Object(there.collect()));
    });
    for (input, resource, id) in OBJECTS {
        let (input, kind) = input_of(input);
        let of_type = kind.map(|kind| format!(" if var.{input}[key].type == {}", quote(kind)));
        let each = format!(
            "{{ for key in local.there.{input} : key => var.{input}[key]{} }}",
            of_type.unwrap_or_default()
        );
        body.block("import", &[], |body| {
            body.attribute("for_each", Expr::raw(each))
                .attribute("to", Expr::raw(format!("module.datacenter.{resource}.this[each.key]")))
                .attribute("id", Expr::raw(id));
        });
    }
    for (resource, exists) in
        [("cluster_firewall", "var.firewall != null"), ("firewall_rules", "length(var.firewall_rules) > 0")]
    {
        let each =
            format!("toset((var.taken_over || local.adopted_firewall) && {exists} ? [\"cluster\"] : [])");
        let to = format!("module.datacenter.proxmox_virtual_environment_{resource}.this[0]");
        body.block("import", &[], |body| {
            body.attribute("for_each", Expr::raw(each))
                .attribute("to", Expr::raw(to))
                .attribute("id", "cluster");
        });
    }
    body
}

/// The input, and the type of its entries where a resource is for one of several.
fn input_of(text: &str) -> (&str, Option<&str>) {
    text.split_once(' ').map_or((text, None), |(input, kind)| (input, Some(kind)))
}
