//! The families of clusters: machines by OpenTofu, Talos by talhelper (or by OpenTofu too, where that is wanted).

use std::net::IpAddr;

use strata_blueprint::kinds;
use strata_diagnostics::Diagnostics;
use strata_source::cluster::Cluster;
use strata_source::cluster::topology::NodeRole;

use super::{Family, Project, modules_from, of_kind, root};
use crate::data;
use crate::hcl::{Body, Expr};
use crate::module::{VM_INPUTS, pass_through};
use crate::project::{Files, Style};
use crate::provider;
use crate::talconfig;
use crate::topf;
use crate::variable::Default::{Bool as DefaultBool, EmptyMap, Null};
use crate::variable::Type::{Bool, List, Map, Object, Text};
use crate::variable::{Variable, declarations, map_of, may, must};

const API_URL: Variable = Variable::required("proxmox_api_url", Text, "The address of the Proxmox API");
const TOKEN_ID: Variable =
    Variable::required("proxmox_api_token_id", Text, "The API token's name: `user@realm!name`").sensitive();
const TOKEN_SECRET: Variable =
    Variable::required("proxmox_api_token_secret", Text, "The API token's secret").sensitive();

const OWN: &[Variable] = &[
    Variable::required("cluster_name", Text, "The name of the cluster"),
    Variable::optional("environment", Text, "The environment"),
    Variable::required("cluster_endpoint", Text, "The address of the Kubernetes API"),
    Variable::required("talos_version", Text, "The version of Talos"),
    Variable::optional("kubernetes_version", Text, "The version of Kubernetes, without the `v`").or(Null),
    Variable::optional(
        "talos",
        Bool,
        "Whether OpenTofu configures and bootstraps Talos; otherwise talhelper does",
    )
    .or(DefaultBool(false)),
    Variable::optional(
        "talos_nodes",
        Map(&Object(&[
            must("role", Text),
            must("address", Text),
            may("install_disk", Text),
            may("install_image", Text),
            may("patches", List(&Text)),
        ])),
        "What the machine configuration of each node is made from",
    )
    .or(EmptyMap),
];

pub(super) fn render(project: &Project<'_>, family: Family, files: &mut Files) {
    let Some(cluster) = project.stack.cluster() else { return };
    let stack = project.stack;
    let folder = family.folder(stack);
    let place = |file: &str| format!("{folder}/{file}");
    let nodes = talconfig::nodes(project, cluster, files);
    let text = data_file(project, cluster, family, &nodes, files);
    files.add(place(&family.data_file(stack)), Style::Hash, text);
    if !stack.is_default_environment {
        return;
    }
    files.add(place("main.tf"), Style::Hash, main(&modules_from(&folder)));
    root::files(project, &folder, &[provider::PROXMOX, provider::TALOS], files);
    files.add(place("variables.tf"), Style::Hash, variables(project, family));
    let connection = match family {
        Family::Template => root::connection(
            "var.proxmox_api_url",
            "\"${var.proxmox_api_token_id}=${var.proxmox_api_token_secret}\"",
        ),
        _ => root::connection("var.proxmox_endpoint", "var.proxmox_api_token"),
    };
    files.add(place("providers.tf"), Style::Hash, connection.render());
    files.add(place("outputs.tf"), Style::Hash, outputs());
    match family {
        Family::Template => {
            files.add("infrastructure/README.md".to_owned(), Style::Markdown, readme(&stack.name, &folder));
            files.add(
                "talos/talconfig.yaml".to_owned(),
                Style::Hash,
                talconfig::render(project, cluster, &nodes),
            );
            topf::render(project, cluster, &nodes, "talos", files);
        }
        _ => {
            let text = talconfig::render(project, cluster, &nodes);
            let talos = format!("{}/talos", stack.folder);
            files.add(format!("{talos}/talconfig.yaml"), Style::Hash, text);
            topf::render(project, cluster, &nodes, &talos, files);
            files.add(place("README.md"), Style::Markdown, readme(&stack.name, &folder));
        }
    }
}

/// The address of the Kubernetes API.
pub(crate) fn endpoint(cluster: &Cluster, stack: &str) -> String {
    if let Some(own) = &cluster.cluster.endpoint {
        return own.value.clone();
    }
    let vip =
        cluster.cluster.network.as_ref().and_then(|network| network.vip.as_ref()).map(|vip| vip.value.0);
    let first = || {
        let machines = cluster.machines(stack, &mut Diagnostics::new());
        let mut planes = machines.iter().filter(|machine| machine.role == NodeRole::ControlPlane);
        planes.find_map(|machine| machine.address.as_ref().map(|address| address.value))
    };
    match vip.or_else(first) {
        Some(IpAddr::V6(address)) => format!("https://[{address}]:6443"),
        Some(address) => format!("https://{address}:6443"),
        None => format!("https://{stack}:6443"),
    }
}

fn variables(project: &Project<'_>, family: Family) -> String {
    let mut list = match family {
        Family::Template => vec![API_URL, TOKEN_ID, TOKEN_SECRET, root::INSECURE],
        _ => vec![root::ENDPOINT, root::TOKEN, root::INSECURE],
    };
    list.extend_from_slice(OWN);
    list.extend_from_slice(root::SHARED);
    if crate::backend::is_encrypted(project.state) {
        list.push(root::PASSPHRASE);
    }
    let mut body = declarations(&list);
    body.block("variable", &["nodes"], |body| {
        body.attribute("description", "The machines of the cluster by name")
            .attribute("type", map_of(VM_INPUTS))
            .attribute("default", Expr::Object(Vec::new()));
    });
    body.render()
}

fn main(modules: &str) -> String {
    let mut body = Body::new();
    root::prerequisites(&mut body);
    body.block("module", &["node"], |body| {
        body.attribute("source", Expr::text(format!("{modules}/proxmox_qemu_vm")))
            .attribute("for_each", Expr::raw("var.nodes"))
            .blank();
        pass_through(body, VM_INPUTS);
        body.blank().attribute("depends_on", Expr::raw(root::NEEDED));
    });
    body.block("module", &["talos"], |body| {
        // A cluster that Strata began has secrets that the provider does not know: it would make others.
        body.attribute("source", Expr::text(format!("{modules}/talos_cluster")))
            .attribute("count", Expr::raw("var.talos && !var.taken_over ? 1 : 0"))
            .blank();
        for field in ["cluster_name", "cluster_endpoint", "talos_version", "kubernetes_version"] {
            body.attribute(field, Expr::raw(format!("var.{field}")));
        }
        body.attribute("nodes", Expr::raw("var.talos_nodes")).blank();
        body.attribute("depends_on", Expr::raw("[module.node]"));
    });
    body.render()
}

fn outputs() -> String {
    let mut body = Body::new();
    body.block("output", &["nodes"], |body| {
        let fields = "{ vm_id = node.vm_id, node_name = node.node_name, ipv4_address = node.ipv4_address }";
        body.attribute("description", "The machines: number, node and address by name")
            .attribute("value", Expr::raw(format!("{{ for name, node in module.node : name => {fields} }}")));
    });
    for (name, what) in
        [("talosconfig", "The configuration of talosctl"), ("kubeconfig", "The configuration of kubectl")]
    {
        body.block("output", &[name], |body| {
            body.attribute("description", Expr::text(format!("{what}, where OpenTofu made the cluster")))
                .attribute("value", Expr::raw(format!("one(module.talos[*].{name})")))
                .attribute("sensitive", true);
        });
    }
    body.render()
}

fn data_file(
    project: &Project<'_>,
    cluster: &Cluster,
    family: Family,
    nodes: &[talconfig::Node],
    files: &mut Files,
) -> String {
    let stack = project.stack;
    let mut body = Body::new();
    let endpoint_name = if family == Family::Template { "proxmox_api_url" } else { "proxmox_endpoint" };
    let spec = &cluster.cluster;
    body.attribute("cluster_name", cluster.cluster_name(&stack.name))
        .attribute("environment", stack.environment.as_str())
        .attribute("cluster_endpoint", Expr::text(endpoint(cluster, &stack.name)))
        .attribute(endpoint_name, Expr::text(&project.connection.endpoint))
        .attribute("proxmox_insecure", project.connection.insecure)
        .attribute("talos_version", Expr::text(talconfig::with_v(&spec.talos.version)));
    if let Some(version) = spec.kubernetes.as_ref().and_then(|kubernetes| kubernetes.version.as_ref()) {
        body.attribute("kubernetes_version", Expr::text(version.trim_start_matches('v')));
    }
    root::data(project, &mut body, files);
    let machines: Vec<(String, Expr)> = of_kind(project.blueprint, kinds::VM)
        .map(|resource| (resource.address.name().to_owned(), data::vm(resource, None, files)))
        .collect();
    body.blank().attribute("nodes", Expr::Object(machines));
    let talos: Vec<(String, Expr)> = nodes
        .iter()
        .filter_map(|node| {
            let mut entries = vec![
                ("role".to_owned(), Expr::text(if node.control_plane { "controlplane" } else { "worker" })),
                ("address".to_owned(), Expr::text(node.address.clone()?)),
            ];
            entries
                .extend(node.install_disk.clone().map(|disk| ("install_disk".to_owned(), Expr::Text(disk))));
            entries.push(("install_image".to_owned(), Expr::text(&node.installer)));
            let patches: Vec<String> = node.machine_patch().into_iter().chain(node.patches.clone()).collect();
            if !patches.is_empty() {
                entries.push(("patches".to_owned(), Expr::texts(&patches)));
            }
            Some((node.name.clone(), Expr::Object(entries)))
        })
        .collect();
    body.blank().attribute("talos_nodes", Expr::Object(talos));
    body.render()
}

fn readme(stack: &str, folder: &str) -> String {
    format!(
        "# {stack} by OpenTofu\n\n\
         The same machines that `strata apply {stack}` makes, for OpenTofu. Edit the source and run `strata sync`.\n\n\
         ```\n\
         strata tofu init {stack}\n\
         strata tofu plan {stack}\n\
         strata tofu apply {stack}\n\
         ```\n\n\
         `strata tofu` decrypts the secrets in memory and hands them over by the environment. Without it, in `{folder}`, set\n\
         the sensitive variables of `variables.tf` yourself, as `TF_VAR_…`.\n"
    )
}
