//! `imports.tf`: what Strata has built, so that OpenTofu takes it over instead of making it again.
//!
//! The blocks go over the same data as the project, so one file serves every environment; a file of data of its own says of each
//! environment whether it is to be taken over.

use super::{Family, Project};
use crate::hcl::{Body, Expr};
use crate::project::{Files, Style};

/// The variable with the machines, their module, and what the provider calls them.
type Machines = (&'static str, &'static str, &'static str);

const STACK: [Machines; 3] = [
    ("templates", "module.template[each.key].module.vm", "vm"),
    ("vms", "module.vm[each.key]", "vm"),
    ("containers", "module.container[each.key]", "container"),
];
/// What a datacenter has: the input, the resource, and its name to the provider.
const DATACENTER: [(&str, &str, &str); 22] = [
    ("pools", "proxmox_virtual_environment_pool", "${each.key}"),
    ("roles", "proxmox_virtual_environment_role", "${each.key}"),
    ("groups", "proxmox_virtual_environment_group", "${each.key}"),
    ("users", "proxmox_virtual_environment_user", "${each.key}"),
    ("tokens", "proxmox_user_token", "${each.key}"),
    (
        "acl",
        "proxmox_acl",
        "${each.value.path}?${coalesce(each.value.user_id, each.value.group_id, each.value.token_id)}?${each.value.role_id}",
    ),
    ("pci_mappings", "proxmox_hardware_mapping_pci", "${each.key}"),
    ("usb_mappings", "proxmox_hardware_mapping_usb", "${each.key}"),
    ("storages dir", "proxmox_storage_directory", "${each.key}"),
    ("storages lvm", "proxmox_storage_lvm", "${each.key}"),
    ("storages lvmthin", "proxmox_storage_lvmthin", "${each.key}"),
    ("storages zfspool", "proxmox_storage_zfspool", "${each.key}"),
    ("storages nfs", "proxmox_storage_nfs", "${each.key}"),
    ("storages cifs", "proxmox_storage_cifs", "${each.key}"),
    ("storages pbs", "proxmox_storage_pbs", "${each.key}"),
    ("dns", "proxmox_virtual_environment_dns", "${each.key}"),
    ("time_zones", "proxmox_virtual_environment_time", "${each.key}"),
    ("bridges", "proxmox_network_linux_bridge", "${each.key}"),
    ("bonds", "proxmox_network_linux_bond", "${each.key}"),
    ("vlans", "proxmox_network_linux_vlan", "${each.key}"),
    ("ip_sets", "proxmox_virtual_environment_firewall_ipset", "cluster/${each.key}"),
    ("security_groups", "proxmox_virtual_environment_cluster_firewall_security_group", "${each.key}"),
];
const CLUSTER: [Machines; 1] = [("nodes", "module.node[each.key]", "vm")];

/// Adds the blocks to the project of a stack, and says that this environment is taken over.
pub(super) fn render(project: &Project<'_>, family: Family, files: &mut Files) {
    let stack = project.stack;
    if !project.taken_over {
        files.gap(
            format!("{}:{}", stack.environment, stack.name),
            "Strata has built nothing of it, so OpenTofu has nothing to take over",
        );
        return;
    }
    let folder = family.folder(stack);
    let blocks = match family {
        Family::Hypervisor => datacenter(),
        Family::Stack => blocks(&STACK),
        Family::Cluster | Family::Template => blocks(&CLUSTER),
    };
    files.add(format!("{folder}/imports.tf"), Style::Hash, blocks.render());
    // Stays when the blocks go. The provider downloads an imported image again and cannot import documents of cloud-init, so those that are
    // there are left to themselves.
    let mut data = Body::new();
    data.attribute("taken_over", true);
    if family != Family::Hypervisor {
        data.attribute("manage_images", false);
    }
    files.add(format!("{folder}/taken_over.{}.tfvars", stack.environment), Style::Hash, data.render());
}

fn blocks(machines: &[Machines]) -> Body {
    let mut body = Body::new();
    for (variable, module, kind) in machines {
        let mut import = |resource: String, condition: &str, id: &str| {
            let each = format!(
                "{{ for name, machine in var.{variable} : name => machine if var.taken_over{condition} }}"
            );
            body.block("import", &[], |body| {
                body.attribute("for_each", Expr::raw(each))
                    .attribute("to", Expr::raw(format!("{module}.proxmox_virtual_environment_{resource}")))
                    .attribute("id", Expr::raw(format!("\"{id}\"")));
            });
        };
        let place = "${each.value.node_name}/${each.value.vm_id}";
        import(format!("{kind}.this"), "", place);
        let firewall = format!("{kind}/{place}");
        import("firewall_options.this[0]".to_owned(), " && machine.firewall != null", &firewall);
        let rules = " && length(try(coalesce(machine.firewall.rules, []), [])) > 0";
        import("firewall_rules.this[0]".to_owned(), rules, &firewall);
    }
    body
}

fn datacenter() -> Body {
    let mut body = Body::new();
    for (input, resource, id) in DATACENTER {
        let (input, of_type) = match input.split_once(' ') {
            Some((input, kind)) => (input, format!(" && one.type == \"{kind}\"")),
            None => (input, String::new()),
        };
        let each = format!("{{ for key, one in var.{input} : key => one if var.taken_over{of_type} }}");
        body.block("import", &[], |body| {
            body.attribute("for_each", Expr::raw(each))
                .attribute("to", Expr::raw(format!("module.datacenter.{resource}.this[each.key]")))
                .attribute("id", Expr::raw(format!("\"{id}\"")));
        });
    }
    for (input, resource, condition) in [
        ("firewall", "cluster_firewall", "var.firewall != null"),
        ("rules", "firewall_rules", "length(var.firewall_rules) > 0"),
    ] {
        let each = format!("var.taken_over && {condition} ? [{}] : []", crate::hcl::quote(input));
        body.block("import", &[], |body| {
            body.attribute("for_each", Expr::raw(format!("toset({each})")))
                .attribute(
                    "to",
                    Expr::raw(format!("module.datacenter.proxmox_virtual_environment_{resource}.this[0]")),
                )
                .attribute("id", "cluster");
        });
    }
    body
}
