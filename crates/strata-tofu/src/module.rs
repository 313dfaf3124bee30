//! The modules that rendered projects are made of, and that stacks written by hand may use.

mod container;
mod datacenter;
mod others;
pub(crate) mod vm;

use strata_source::world::World;

use crate::hcl::{Body, Expr};
use crate::project::{Files, Style};
use crate::provider::{self, Provider};
use crate::readme;
use crate::variable::{Variable, declarations};

pub(crate) use container::INPUTS as CONTAINER_INPUTS;
pub(crate) use datacenter::INPUTS as DATACENTER_INPUTS;
pub(crate) use vm::INPUTS as VM_INPUTS;

/// The folder of modules, from the root of the repository.
pub(crate) const FOLDER: &str = "modules";

/// What a template's own module says for it.
pub(crate) const NOT_OF_TEMPLATES: [&str; 3] = ["template", "started", "clone"];

/// The inputs of a VM that a template has, too.
pub(crate) fn template_inputs() -> Vec<Variable> {
    VM_INPUTS.iter().filter(|input| !NOT_OF_TEMPLATES.contains(&input.name)).copied().collect()
}

struct Module {
    name: &'static str,
    about: &'static str,
    inputs: Vec<Variable>,
    main: String,
    outputs: &'static str,
    providers: &'static [Provider],
}

/// Modules that no project of ours is made of: they are for code that somebody writes by hand.
const OF_OTHERS: [&str; 2] = ["aws_ec2_instance", "oci_instance"];

/// Where code that is written by hand stands.
const CODE: [&str; 2] = ["stacks", FOLDER];

/// Adds the modules. Those of other clouds only where code of the repository names them.
pub(crate) fn render(world: Option<&dyn World>, files: &mut Files) {
    let is_named = |name: &str| world.is_some_and(|world| CODE.iter().any(|at| names(world, at, name)));
    for module in modules() {
        if OF_OTHERS.contains(&module.name) && !is_named(module.name) {
            continue;
        }
        let place = |file: &str| format!("{FOLDER}/{}/{file}", module.name);
        files.add(place("main.tf"), Style::Hash, module.main.clone());
        files.add(place("variables.tf"), Style::Hash, declarations(&module.inputs).render());
        files.add(place("outputs.tf"), Style::Hash, module.outputs.to_owned());
        files.add(place("versions.tf"), Style::Hash, provider::versions(module.providers).render());
        let text =
            readme::module(module.name, module.about, &module.inputs, module.outputs, module.providers);
        files.add(place("README.md"), Style::Markdown, text);
    }
}

/// Whether code below a folder names a module; what the module itself says does not count.
fn names(world: &dyn World, folder: &str, module: &str) -> bool {
    let own = format!("{FOLDER}/{module}");
    let says = |path: &str| {
        [".tf", ".tofu", ".json"].iter().any(|ending| path.ends_with(ending))
            && world.read(path).is_ok_and(|content| String::from_utf8_lossy(&content).contains(module))
    };
    let listed = world.list(folder).unwrap_or_default().into_iter();
    let mut listed = listed.filter(|entry| !entry.name.starts_with('.'));
    listed.any(|entry| {
        let path = format!("{folder}/{}", entry.name);
        path != own && if entry.is_folder { names(world, &path, module) } else { says(&path) }
    })
}

fn modules() -> Vec<Module> {
    let mut template_inputs = template_inputs();
    template_inputs.push(others::IMAGE);
    vec![
        Module {
            name: "proxmox_qemu_vm",
            about: "One virtual machine on Proxmox VE: cloned from a template, copied from an image, or booted from a CD.",
            inputs: VM_INPUTS.to_vec(),
            main: include_str!("../modules/proxmox_qemu_vm/main.tf").to_owned(),
            outputs: include_str!("../modules/proxmox_qemu_vm/outputs.tf"),
            providers: &[provider::PROXMOX],
        },
        Module {
            name: "proxmox_lxc_container",
            about: "One LXC container on Proxmox VE.",
            inputs: CONTAINER_INPUTS.to_vec(),
            main: include_str!("../modules/proxmox_lxc_container/main.tf").to_owned(),
            outputs: include_str!("../modules/proxmox_lxc_container/outputs.tf"),
            providers: &[provider::PROXMOX],
        },
        Module {
            name: "template",
            about: "A virtual machine that others are cloned from, made from a cloud image.",
            main: template_main(&template_inputs),
            inputs: template_inputs,
            outputs: include_str!("../modules/template/outputs.tf"),
            providers: &[provider::PROXMOX],
        },
        Module {
            name: "proxmox_datacenter",
            about: "What a Proxmox datacenter has besides guests: pools, users and what they may do, storages, devices, networks of hosts, the firewall.",
            inputs: DATACENTER_INPUTS.to_vec(),
            main: include_str!("../modules/proxmox_datacenter/main.tf").to_owned(),
            outputs: include_str!("../modules/proxmox_datacenter/outputs.tf"),
            providers: &[provider::PROXMOX],
        },
        Module {
            name: "talos_cluster",
            about: "Configures machines that run Talos, and makes one Kubernetes cluster of them.",
            inputs: others::TALOS.to_vec(),
            main: include_str!("../modules/talos_cluster/main.tf").to_owned(),
            outputs: include_str!("../modules/talos_cluster/outputs.tf"),
            providers: &[provider::TALOS],
        },
        Module {
            name: "flux_bootstrap",
            about: "Hands a cluster over to Flux: its controllers, what they follow, and the keys they need.",
            inputs: others::FLUX.to_vec(),
            main: include_str!("../modules/flux_bootstrap/main.tf").to_owned(),
            outputs: include_str!("../modules/flux_bootstrap/outputs.tf"),
            providers: &[provider::HELM, provider::KUBERNETES],
        },
        Module {
            name: "aws_ec2_instance",
            about: "One EC2 instance with an encrypted disk.",
            inputs: others::AWS.to_vec(),
            main: include_str!("../modules/aws_ec2_instance/main.tf").to_owned(),
            outputs: include_str!("../modules/aws_ec2_instance/outputs.tf"),
            providers: &[provider::AWS],
        },
        Module {
            name: "oci_instance",
            about: "One instance of Oracle Cloud.",
            inputs: others::OCI.to_vec(),
            main: include_str!("../modules/oci_instance/main.tf").to_owned(),
            outputs: include_str!("../modules/oci_instance/outputs.tf"),
            providers: &[provider::OCI],
        },
    ]
}

/// The inputs of a VM passed on, with the first disk from the image where there is one.
fn template_main(inputs: &[Variable]) -> String {
    let mut body = Body::new();
    body.block("resource", &["proxmox_download_file", "image"], |body| {
        body.attribute("count", Expr::raw("var.image == null ? 0 : 1")).blank();
        body.attribute("node_name", Expr::raw("var.node_name"));
        body.attribute("datastore_id", Expr::raw("var.image.datastore_id"));
        body.attribute("content_type", Expr::raw("coalesce(var.image.content_type, \"import\")"));
        for field in ["url", "file_name", "checksum", "checksum_algorithm"] {
            body.attribute(field, Expr::raw(format!("var.image.{field}")));
        }
        body.attribute("overwrite", false);
    });
    body.block("module", &["vm"], |body| {
        body.attribute("source", "../proxmox_qemu_vm").blank();
        body.attribute("template", true).attribute("started", false).blank();
        for input in inputs.iter().filter(|input| input.name != "image" && input.name != "disks") {
            body.attribute(input.name, Expr::raw(format!("var.{}", input.name)));
        }
        body.blank();
        let first = "merge(disk, { import_from = slot == \"scsi0\" && var.image != null ? one(proxmox_download_file.image[*].id) : disk.import_from })";
        body.attribute("disks", Expr::raw(format!("{{ for slot, disk in var.disks : slot => {first} }}")));
    });
    body.render()
}

/// The lines that hand each field of `each.value` to a module.
pub(crate) fn pass_through(body: &mut Body, inputs: &[Variable]) {
    for input in inputs.iter().filter(|input| !input.sensitive) {
        body.attribute(input.name, Expr::raw(format!("each.value.{}", input.name)));
    }
}
