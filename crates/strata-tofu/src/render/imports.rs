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
    let machines: &[Machines] = match family {
        // Has blocks already, for what was there before.
        Family::Hypervisor => &[],
        Family::Stack => &STACK,
        Family::Cluster | Family::Template => &CLUSTER,
    };
    if !machines.is_empty() {
        files.add(format!("{folder}/imports.tf"), Style::Hash, blocks(machines).render());
    }
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
