//! Machines: a node to live on, boot slots that exist, an order of creation without circles.

use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::{Map, Spanned};

use super::layers::{circles, describe};
use super::{left_out, suggestion};
use crate::machine::guest::Guest;
use crate::repository::{EffectiveStack, Repository};
use crate::stack::Stack;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for effective in repository.effective() {
        let Some(stack) = effective.machines() else { continue };
        nodes(stack, diagnostics);
        boot_order(stack, diagnostics);
        dependencies(effective, stack, diagnostics);
        for (key, vm) in &stack.vms {
            let macs = vm.hardware.network.iter().filter_map(|(_, nic)| nic.mac.map(|mac| mac.span));
            single_mac(key, &vm.guest, macs, diagnostics);
        }
        for (key, container) in &stack.containers {
            let macs = container.network.iter().filter_map(|(_, nic)| nic.mac.map(|mac| mac.span));
            single_mac(key, &container.guest, macs, diagnostics);
        }
    }
}

fn nodes(stack: &Stack, diagnostics: &mut Diagnostics) {
    let vms = stack.vm_instances().into_iter().map(|vm| (vm.key, vm.node.is_some()));
    let containers =
        stack.container_instances().into_iter().map(|container| (container.key, container.node.is_some()));
    let templates =
        stack.template_instances().into_iter().map(|template| (template.key, template.node.is_some()));
    for (key, _) in templates.chain(vms).chain(containers).filter(|(_, placed)| !placed) {
        let problem = Diagnostic::error("missing-key", format!("`{key}` has no Proxmox node to live on"));
        diagnostics.push(
            problem.at(key.span).hint("give the stack one: `proxmox: {node: …}`, or the machine a `node`"),
        );
    }
}

fn boot_order(stack: &Stack, diagnostics: &mut Diagnostics) {
    let templates = stack.templates.values().map(|template| &template.hardware);
    for hardware in templates.chain(stack.vms.values().map(|vm| &vm.hardware)) {
        for slot in &hardware.boot_order {
            if !crate::value::slot::is_bootable(slot) {
                let problem =
                    Diagnostic::error("unknown-slot", format!("there is no slot `{slot}` to boot from"));
                diagnostics
                    .push(problem.at(slot.span).hint("write slots of disks or networks: `[scsi0, net0]`"));
            }
        }
    }
}

/// One hardware address cannot serve several machines.
fn single_mac(
    key: &Spanned<String>,
    guest: &Guest,
    macs: impl Iterator<Item = Span>,
    diagnostics: &mut Diagnostics,
) {
    let Some(count) = guest.count.filter(|count| *count > 1) else { return };
    for span in macs {
        let problem = Diagnostic::error(
            "mac-collision",
            format!("the {count} machines of `{key}` would share this MAC"),
        );
        diagnostics.push(problem.at(span).hint("leave it out: each machine then gets one of its own"));
    }
}

/// `dependsOn` between the guests of a stack.
fn dependencies(effective: &EffectiveStack, stack: &Stack, diagnostics: &mut Diagnostics) {
    let named = |kind: &str, name: &str| match kind {
        "vms" => stack.vms_named(name),
        "containers" => stack.containers_named(name),
        _ => None,
    };
    let guests: Vec<(String, &Guest)> = of("vms", &stack.vms, |vm| &vm.guest)
        .chain(of("containers", &stack.containers, |container| &container.guest))
        .collect();
    let mut edges: BTreeMap<&str, Vec<(&str, Span)>> = BTreeMap::new();
    for (name, guest) in &guests {
        for needed in &guest.depends_on {
            let found = needed.split_once('.').and_then(|(kind, name)| Some((kind, named(kind, name)?)));
            if let Some((kind, found)) = found {
                let of_kind = |name: &&(String, &Guest)| {
                    name.0.strip_prefix(kind).is_some_and(|name| {
                        name.strip_prefix('.').is_some_and(|key| found.keys.contains(&key))
                    })
                };
                let ends = guests.iter().filter(of_kind).map(|(name, _)| (name.as_str(), needed.span));
                edges.entry(name).or_default().extend(ends);
                continue;
            }
            let out = needed
                .split_once('.')
                .and_then(|(kind, name)| left_out::entry(effective, (kind, "guest"), name, needed.span));
            if let Some(problem) = out {
                diagnostics.push(problem);
                continue;
            }
            let known: Vec<&str> = guests.iter().map(|(name, _)| name.as_str()).collect();
            let problem =
                Diagnostic::error("unknown-guest", format!("there is no guest `{needed}` in this stack"));
            diagnostics.push(problem.at(needed.span).maybe_hint(suggestion(needed, &known)));
        }
    }
    for circle in circles(&edges) {
        diagnostics.push(describe("guests", &circle));
    }
}

fn of<'a, T>(
    kind: &'a str,
    map: &'a Map<T>,
    guest: impl Fn(&'a T) -> &'a Guest + 'a,
) -> impl Iterator<Item = (String, &'a Guest)> {
    map.iter().map(move |(key, machine)| (format!("{kind}.{key}"), guest(machine)))
}
