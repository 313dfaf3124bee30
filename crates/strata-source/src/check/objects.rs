//! What no two files of `hypervisors/` may both describe: each would take the object from the other at every apply.

use std::collections::{HashMap, HashSet};

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use crate::hypervisor::Hypervisor;
use crate::hypervisor::access::AclEntry;
use crate::repository::{EffectiveStack, Repository};

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    let mut first: HashMap<(String, &str, String), (&EffectiveStack, Span)> = HashMap::new();
    let mut told: HashSet<(Span, Span)> = HashSet::new();
    for stack in repository.effective() {
        let Some((hypervisor, endpoint)) = stack.hypervisor().zip(repository.proxmox_endpoint(stack)) else {
            continue;
        };
        for (what, span) in objects(hypervisor) {
            let key = (endpoint.clone(), stack.environment.as_str(), what.clone());
            let (other, other_span) = *first.entry(key).or_insert((stack, span));
            // What is twice in one file is reported where it is drawn. The same two places can meet in many environments.
            if other.name == stack.name || !told.insert((other_span, span)) {
                continue;
            }
            let target = repository.target(stack).map_or("", |(name, _)| name);
            let message = format!("{what} of target `{target}` is described in two files");
            let problem = Diagnostic::error("object-collision", message)
                .at_with(span, format!("in `{}`", stack.name))
                .also(other_span, format!("in `{}`", other.name));
            diagnostics.push(problem.hint("describe it in one of them"));
        }
    }
}

/// Everything that a file describes, and where.
fn objects(hypervisor: &Hypervisor) -> Vec<(String, Span)> {
    let mut found = Vec::new();
    let mut named = |word: &str, names: Vec<&Spanned<String>>| {
        found.extend(names.into_iter().map(|name| (format!("the {word} `{name}`"), name.span)));
    };
    named("pool", hypervisor.pools.iter().map(|(name, _)| name).collect());
    named("role", hypervisor.roles.iter().map(|(name, _)| name).collect());
    named("group", hypervisor.groups.iter().map(|(name, _)| name).collect());
    named("user", hypervisor.users.iter().map(|(name, _)| name).collect());
    named("token", hypervisor.tokens.iter().map(|(name, _)| name).collect());
    named("secret", hypervisor.tokens.iter().filter_map(|(_, token)| token.secret.as_ref()).collect());
    named("storage", hypervisor.storages.iter().map(|(name, _)| name).collect());
    if let Some(mappings) = &hypervisor.mappings {
        named("PCI device", mappings.pci.iter().map(|(name, _)| name).collect());
        named("USB device", mappings.usb.iter().map(|(name, _)| name).collect());
    }
    if let Some(firewall) = &hypervisor.firewall {
        named("alias", firewall.aliases.iter().map(|(name, _)| name).collect());
        named("IP set", firewall.ip_sets.iter().map(|(name, _)| name).collect());
        named("security group", firewall.groups.iter().map(|(name, _)| name).collect());
        let switched =
            firewall.enabled.is_some() || firewall.policy_in.is_some() || firewall.policy_out.is_some();
        if switched || !firewall.rules.is_empty() {
            found.push(("the firewall".to_owned(), firewall.span));
        }
    }
    found.extend(hypervisor.acl.iter().filter_map(entry));
    found.extend(of_hosts(hypervisor));
    found
}

fn entry(entry: &AclEntry) -> Option<(String, Span)> {
    let subject = entry.user.as_ref().or(entry.group.as_ref()).or(entry.token.as_ref())?;
    Some((format!("`{}` for `{subject}` on `{}`", entry.role, entry.path), entry.path.span))
}

/// Settings of hosts, and their interfaces.
fn of_hosts(hypervisor: &Hypervisor) -> Vec<(String, Span)> {
    let proxmox = hypervisor.proxmox.as_ref();
    let nodes: Vec<&Spanned<String>> =
        proxmox.into_iter().flat_map(|proxmox| proxmox.node.iter().chain(&proxmox.nodes)).collect();
    let mut found = Vec::new();
    for node in &nodes {
        if let Some(dns) = &hypervisor.dns {
            let span = dns.servers.first().map_or(node.span, |server| server.span);
            found.push((format!("the name servers of `{node}`"), span));
        }
        if let Some(zone) = &hypervisor.timezone {
            found.push((format!("the time zone of `{node}`"), zone.span));
        }
    }
    for (name, interface) in hypervisor.network.iter() {
        let own = if interface.nodes.is_empty() { nodes.clone() } else { interface.nodes.iter().collect() };
        found.extend(own.into_iter().map(|node| (format!("the interface `{name}` of `{node}`"), name.span)));
    }
    found
}
