//! `imports.tf`: what Strata has built, so that OpenTofu takes it over instead of making it again.

use strata_resource::{Kind, Resource, Value};

use super::{Family, Project};
use crate::hcl::{Body, Expr, quote};
use crate::project::{Files, Style};

/// Stays when the blocks go: what was taken over once is not downloaded later.
const TAKEN_OVER: &str = "taken_over.auto.tfvars";

/// Adds the file to the project of a stack. Other environments have states of their own, and take over by hand.
pub(super) fn render(project: &Project<'_>, family: Family, files: &mut Files) {
    if !project.stack.is_default_environment {
        files.gap(
            format!("{}:{}", project.stack.environment, project.stack.name),
            "import blocks are written for the default environment only",
        );
        return;
    }
    let mut body = Body::new();
    for resource in project.blueprint.graph.iter() {
        for (to, id) in imports(resource, family) {
            body.block("import", &[], |body| {
                body.attribute("to", Expr::raw(to)).attribute("id", Expr::text(id));
            });
        }
    }
    let folder = family.folder(project.stack);
    files.add(format!("{folder}/imports.tf"), Style::Hash, body.render());
    // The provider downloads an imported image again, so images that are there are left to themselves.
    let mut data = Body::new();
    data.attribute("manage_images", false);
    files.add(format!("{folder}/{TAKEN_OVER}"), Style::Hash, data.render());
}

/// The address in the project, and the name that the provider finds it by.
fn imports(resource: &Resource, family: Family) -> Vec<(String, String)> {
    let text = |field: &str| resource.spec.get(field).and_then(Value::as_text).unwrap_or_default();
    let key = quote(resource.address.name());
    let node = text("node");
    let vm_id = resource.vmid().unwrap_or_default();
    let (module, kind, word) = match (resource.kind(), family) {
        (Kind::Template, _) => (format!("module.template[{key}].module.vm"), "vm", "vm"),
        (Kind::Vm, Family::Stack) => (format!("module.vm[{key}]"), "vm", "vm"),
        (Kind::Vm, _) => (format!("module.node[{key}]"), "vm", "vm"),
        (Kind::Container, _) => (format!("module.container[{key}]"), "container", "container"),
        _ => return Vec::new(),
    };
    let mut found =
        vec![(format!("{module}.proxmox_virtual_environment_{kind}.this"), format!("{node}/{vm_id}"))];
    if let Some(firewall) = resource.spec.get("firewall").and_then(Value::as_map) {
        let place = format!("{word}/{node}/{vm_id}");
        found.push((format!("{module}.proxmox_virtual_environment_firewall_options.this[0]"), place.clone()));
        if firewall.get("rules").and_then(Value::as_list).is_some_and(|rules| !rules.is_empty()) {
            found.push((format!("{module}.proxmox_virtual_environment_firewall_rules.this[0]"), place));
        }
    }
    found
}
