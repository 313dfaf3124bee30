//! The stack family: generic code that goes over data, and the data in `vms.tfvars`.

use strata_blueprint::kinds;
use strata_resource::{Resource, Value};

use super::{Family, Project, modules_from, of_kind, root};
use crate::data;
use crate::hcl::{Body, Expr};
use crate::module::{CONTAINER_INPUTS, NOT_OF_TEMPLATES, VM_INPUTS, pass_through, template_inputs};
use crate::project::{Files, Style};
use crate::provider;
use crate::variable::map_of;

/// The outputs that every stack has.
const OUTPUTS: [(&str, &str); 3] = [
    ("templates", "The templates: number and node by name"),
    ("vms", "The virtual machines: number, node and address by name"),
    ("containers", "The containers: number, node and address by name"),
];

pub(super) fn render(project: &Project<'_>, files: &mut Files) {
    let stack = project.stack;
    let folder = Family::Stack.folder(stack);
    let place = |file: &str| format!("{folder}/{file}");
    let text = data_file(project, files);
    files.add(place(&Family::Stack.data_file(stack)), Style::Hash, text);
    if !stack.is_default_environment {
        return;
    }
    files.add(place("main.tf"), Style::Hash, main(&modules_from(&folder)));
    root::files(project, &folder, &[provider::PROXMOX], files);
    files.add(place("variables.tf"), Style::Hash, variables(project));
    let connection = root::connection("var.proxmox_endpoint", "var.proxmox_api_token");
    files.add(place("providers.tf"), Style::Hash, connection.render());
    files.add(place("outputs.tf"), Style::Hash, outputs(project));
}

fn variables(project: &Project<'_>) -> String {
    let mut list = vec![root::ENDPOINT, root::TOKEN, root::INSECURE];
    list.extend_from_slice(root::SHARED);
    if crate::backend::is_encrypted(project.state) {
        list.push(root::PASSPHRASE);
    }
    let mut body = crate::variable::declarations(&list);
    for (name, what, kind) in [
        ("templates", "Virtual machines that others are cloned from, by name", map_of(&template_inputs())),
        ("vms", "Virtual machines by name", map_of(VM_INPUTS)),
        ("containers", "LXC containers by name", map_of(CONTAINER_INPUTS)),
        ("outputs", "What the stack lets others ask of it", Expr::raw("any")),
    ] {
        body.block("variable", &[name], |body| {
            body.attribute("description", what)
                .attribute("type", kind)
                .attribute("default", Expr::Object(Vec::new()));
        });
    }
    body.render()
}

fn main(modules: &str) -> String {
    let mut body = Body::new();
    root::prerequisites(&mut body);
    body.block("module", &["template"], |body| {
        body.attribute("source", Expr::text(format!("{modules}/template")))
            .attribute("for_each", Expr::raw("var.templates"))
            .blank();
        pass_through(body, &template_inputs());
        body.attribute("user_password", Expr::raw("lookup(var.user_passwords, each.key, null)")).blank();
        body.attribute("depends_on", Expr::raw(root::NEEDED));
    });
    body.block("module", &["vm"], |body| {
        body.attribute("source", Expr::text(format!("{modules}/proxmox_qemu_vm")))
            .attribute("for_each", Expr::raw("var.vms"))
            .blank();
        pass_through(body, VM_INPUTS);
        body.attribute("user_password", Expr::raw("lookup(var.user_passwords, each.key, null)")).blank();
        body.attribute("depends_on", Expr::raw(root::NEEDED.replace('[', "[module.template, ")));
    });
    body.block("module", &["container"], |body| {
        body.attribute("source", Expr::text(format!("{modules}/proxmox_lxc_container")))
            .attribute("for_each", Expr::raw("var.containers"))
            .blank();
        pass_through(body, CONTAINER_INPUTS);
        body.attribute("user_password", Expr::raw("lookup(var.user_passwords, each.key, null)")).blank();
        body.attribute("depends_on", Expr::raw("[proxmox_download_file.image]"));
    });
    body.render()
}

fn outputs(project: &Project<'_>) -> String {
    let mut body = Body::new();
    for (name, what) in OUTPUTS {
        let module = name.trim_end_matches('s');
        let fields = if name == "templates" {
            "{ vm_id = machine.vm_id, node_name = machine.node_name }"
        } else {
            "{ vm_id = machine.vm_id, node_name = machine.node_name, ipv4_address = machine.ipv4_address }"
        };
        body.block("output", &[name], |body| {
            body.attribute("description", what).attribute(
                "value",
                Expr::raw(format!("{{ for name, machine in module.{module} : name => {fields} }}")),
            );
        });
    }
    let known = |name: &str| OUTPUTS.iter().any(|(known, _)| *known == name);
    for name in project.blueprint.outputs.keys().filter(|name| !known(name)) {
        body.block("output", &[name], |body| {
            body.attribute("description", Expr::text(format!("`{name}` of stack.yaml"))).attribute(
                "value",
                Expr::raw(format!("try(var.outputs[{}], null)", crate::hcl::quote(name))),
            );
        });
    }
    body.render()
}

fn data_file(project: &Project<'_>, files: &mut Files) -> String {
    let mut body = Body::new();
    body.attribute("proxmox_endpoint", Expr::text(&project.connection.endpoint))
        .attribute("proxmox_insecure", project.connection.insecure);
    root::data(project, &mut body, files);
    for (name, kind) in [("templates", kinds::TEMPLATE), ("vms", kinds::VM), ("containers", kinds::CONTAINER)]
    {
        let mut entries = Vec::new();
        for resource in of_kind(project.blueprint, kind) {
            if kind == kinds::TEMPLATE && !has_image(resource) {
                let reason =
                    "it was adopted, and nothing says what it is made from: its clones name its VMID";
                files.gap(resource.address.to_string(), reason);
                continue;
            }
            let machine = match kind {
                kinds::CONTAINER => data::container(resource, files),
                kinds::TEMPLATE => without_power(data::vm(resource, None, files)),
                _ => data::vm(resource, template_of(project, resource), files),
            };
            let own = resource.address.name();
            entries.push((own.to_owned(), root::with_documents(project, own, machine)));
        }
        body.blank().attribute(name, Expr::Object(entries));
    }
    let outputs: Vec<(String, Expr)> = project
        .blueprint
        .outputs
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), data::plain(value)?)))
        .collect();
    if !outputs.is_empty() {
        body.blank().attribute("outputs", Expr::Object(outputs));
    }
    body.render()
}

/// The template of this stack that a machine is cloned from.
fn template_of<'p>(project: &'p Project<'_>, machine: &Resource) -> Option<&'p Resource> {
    let clone = machine.spec.get("clone")?.as_map()?;
    let vm_id = clone.get("template")?.as_int()?;
    of_kind(project.blueprint, kinds::TEMPLATE)
        .find(|template| strata_blueprint::vmid_of(template).is_some_and(|known| i64::from(known) == vm_id))
}

/// Whether one of its disks begins as a copy of something.
fn has_image(template: &Resource) -> bool {
    let disks =
        template.spec.get("disks").and_then(Value::as_map).into_iter().flat_map(|disks| disks.values());
    disks.filter_map(Value::as_map).any(|disk| disk.contains_key("import"))
}

fn without_power(machine: Expr) -> Expr {
    match machine {
        Expr::Object(entries) => Expr::Object(
            entries.into_iter().filter(|(key, _)| !NOT_OF_TEMPLATES.contains(&key.as_str())).collect(),
        ),
        other => other,
    }
}
