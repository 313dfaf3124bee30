//! The repository's defaults, laid beneath what each stack says.

use strata_yaml::{Entry, Kind, Mapping, Node, Record, Spanned, overlay};

use super::StackKind;
use crate::cluster::ClusterProxmox;
use crate::hypervisor::HypervisorProxmox;
use crate::machine::container::Container;
use crate::machine::template::Template;
use crate::machine::vm::Vm;
use crate::stack::StackProxmox;

/// The repository's defaults under what a stack says.
pub(super) fn with_defaults(mut tree: Node, defaults: &Node, kind: StackKind) -> Node {
    let Kind::Mapping(mapping) = &mut tree.kind else { return tree };
    match kind {
        StackKind::Machines => {
            under_each::<Vm>(mapping, "vms", defaults.get("vm"));
            under_each::<Container>(mapping, "containers", defaults.get("container"));
            under_each::<Template>(mapping, "templates", defaults.get("template"));
            under::<StackProxmox>(mapping, "proxmox", defaults.get("proxmox"), true);
        }
        StackKind::Cluster => under::<ClusterProxmox>(mapping, "proxmox", defaults.get("proxmox"), false),
        StackKind::Hypervisor => {
            under::<HypervisorProxmox>(mapping, "proxmox", defaults.get("proxmox"), true);
        }
        StackKind::Tofu => {}
    }
    tree
}

fn under_each<T: Record>(mapping: &mut Mapping, key: &str, defaults: Option<&Node>) {
    let Some(defaults) = defaults else { return };
    let Some(section) = mapping.entries.iter_mut().find(|entry| entry.key.value == key) else { return };
    if let Kind::Mapping(machines) = &mut section.value.kind {
        for machine in machines.entries.iter_mut().filter(|entry| entry.value.as_mapping().is_some()) {
            machine.value = beneath::<T>(defaults, &machine.value);
        }
    }
}

fn under<T: Record>(mapping: &mut Mapping, key: &str, defaults: Option<&Node>, add: bool) {
    let Some(defaults) = defaults.filter(|defaults| defaults.as_mapping().is_some()) else { return };
    match mapping.entries.iter_mut().find(|entry| entry.key.value == key) {
        Some(entry) if entry.value.as_mapping().is_some() => {
            entry.value = beneath::<T>(defaults, &entry.value)
        }
        Some(_) => {}
        None if add => {
            let value = beneath::<T>(defaults, &Node::mapping(Vec::new(), defaults.span));
            mapping.entries.push(Entry { key: Spanned::new(key.to_owned(), defaults.span), value });
        }
        None => {}
    }
}

/// Defaults beneath what is said: a default goes where it would stand beside a key that excludes it, or that is
/// another name for it, or where it means nothing.
pub(super) fn beneath<T: Record>(defaults: &Node, said: &Node) -> Node {
    let (Some(below), Some(above)) = (defaults.as_mapping(), said.as_mapping()) else { return said.clone() };
    let spec = T::spec();
    let excluded = |key: &str| {
        let Some(field) =
            spec.fields.iter().find(|field| field.key == key || field.rules.aliases.contains(&key))
        else {
            return true;
        };
        let renamed = |written: &str| {
            written != key && (written == field.key || field.rules.aliases.contains(&written))
        };
        above.keys().any(renamed)
            || spec.at_most_one.iter().chain(&spec.exactly_one).any(|group| {
                group.contains(&field.key)
                    && above.keys().any(|written| written != key && group.contains(&written))
            })
    };
    let entries = below.entries.iter().filter(|entry| !excluded(&entry.key)).cloned().collect();
    overlay(&Node { span: said.span, kind: Kind::Mapping(Mapping { entries }) }, said)
}
