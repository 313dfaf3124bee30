//! The hypervisor family: one call of the datacenter's module, and its data in `datacenter.tfvars`.

mod imports;

use std::collections::BTreeMap;

use strata_blueprint::kinds;

use super::{Family, Project, modules_from, of_kind, root};
use crate::data;
use crate::hcl::{Body, Expr};
use crate::module::DATACENTER_INPUTS;
use crate::project::{Files, Style};
use crate::provider;

pub(super) fn render(project: &Project<'_>, files: &mut Files) {
    let stack = project.stack;
    let folder = Family::Hypervisor.folder(stack);
    let place = |file: &str| format!("{folder}/{file}");
    let text = data_file(project, files);
    files.add(place(&Family::Hypervisor.data_file(stack)), Style::Hash, text);
    if !stack.is_default_environment {
        return;
    }
    files.add(place("main.tf"), Style::Hash, main(&modules_from(&folder)));
    root::files(project, &folder, &[provider::PROXMOX], files);
    files.add(place("variables.tf"), Style::Hash, variables(project));
    files.add(place("providers.tf"), Style::Hash, connection());
    files.add(place("outputs.tf"), Style::Hash, outputs());
    files.add(place("imports.tf"), Style::Hash, imports::blocks().render());
}

fn connection() -> String {
    let mut body = Body::new();
    body.block("provider", &["proxmox"], |body| {
        body.attribute("endpoint", Expr::raw("var.proxmox_endpoint"))
            .attribute("api_token", Expr::raw("var.proxmox_api_token"))
            .attribute("insecure", Expr::raw("var.proxmox_insecure"));
    });
    body.render()
}

fn main(modules: &str) -> String {
    let mut body = Body::new();
    body.block("module", &["datacenter"], |body| {
        body.attribute("source", Expr::text(format!("{modules}/proxmox_datacenter"))).blank();
        for input in DATACENTER_INPUTS {
            let value = match input.name {
                imports::ALIASES => {
                    "{ for name, alias in var.aliases : name => alias if !contains(local.there.aliases, name) }".to_owned()
                }
                name => format!("var.{name}"),
            };
            body.attribute(input.name, Expr::raw(value));
        }
    });
    body.render()
}

fn variables(project: &Project<'_>) -> String {
    let mut list = vec![root::ENDPOINT, root::TOKEN, root::INSECURE, root::TAKEN_OVER, imports::ADOPTED];
    list.extend_from_slice(DATACENTER_INPUTS);
    if crate::backend::is_encrypted(project.state) {
        list.push(root::PASSPHRASE);
    }
    crate::variable::declarations(&list).render()
}

fn outputs() -> String {
    let mut body = Body::new();
    for (name, what, secret) in [
        ("token_ids", "The tokens: `user@realm!name`", false),
        ("token_values", "What is sent as the tokens, by token", true),
    ] {
        body.block("output", &[name], |body| {
            body.attribute("description", what)
                .attribute("value", Expr::raw(format!("module.datacenter.{name}")));
            if secret {
                body.attribute("sensitive", true);
            }
        });
    }
    body.render()
}

fn data_file(project: &Project<'_>, files: &mut Files) -> String {
    let mut body = Body::new();
    body.attribute("proxmox_endpoint", Expr::text(&project.connection.endpoint))
        .attribute("proxmox_insecure", project.connection.insecure);
    let mut inputs: BTreeMap<&str, Vec<(String, Expr)>> = BTreeMap::new();
    let mut adopted: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for resource in project.blueprint.graph.iter() {
        for entry in data::datacenter(resource, files) {
            if entry.adopt {
                adopted.entry(entry.input).or_default().push(entry.key.clone());
            }
            inputs.entry(entry.input).or_default().push((entry.key, entry.value));
        }
    }
    for input in DATACENTER_INPUTS {
        if let Some(entries) = inputs.remove(input.name) {
            body.blank().attribute(input.name, Expr::Object(entries));
        }
    }
    if let Some(firewall) = of_kind(project.blueprint, kinds::FIREWALL).next() {
        if data::is_adopted(&firewall.spec) {
            adopted.insert("firewall", vec!["datacenter".to_owned()]);
        }
        for field in
            ["may_lock_out", "managed_from"].into_iter().filter(|field| firewall.spec.contains_key(*field))
        {
            data::not_rendered(firewall, &[field], files);
        }
        let (options, rules) = data::datacenter_firewall(&firewall.spec);
        if let Some(options) = options {
            body.blank().attribute("firewall", options);
        }
        if !rules.is_empty() {
            body.blank().attribute("firewall_rules", Expr::List(rules));
        }
    }
    if !adopted.is_empty() {
        files.gap(
            &project.stack.name,
            "a destroy by OpenTofu takes away what was adopted too; Strata lets it stay",
        );
        let lists = adopted.into_iter().map(|(input, keys)| (input.to_owned(), Expr::texts(keys)));
        body.blank().attribute("adopted", Expr::Object(lists.collect()));
    }
    body.render()
}
