//! Files of `hypervisors/` that Proxmox would refuse, or that say nothing.

use strata_diagnostics::{Diagnostic, Diagnostics};
use strata_yaml::Spanned;

use crate::hypervisor::storage::{Storage, StorageType};
use crate::hypervisor::{Hypervisor, Mapping};
use crate::machine::firewall::{Direction, FirewallRule};
use crate::repository::Repository;

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    let mut found: Vec<Diagnostic> = Vec::new();
    for hypervisor in repository.effective().filter_map(|stack| stack.hypervisor()) {
        found.extend(built_in(hypervisor));
        found.extend(hypervisor.storages.iter().filter_map(|(name, storage)| unfinished(name, storage)));
        if let Some(mappings) = &hypervisor.mappings {
            found.extend(mappings.pci.iter().filter_map(|(name, mapping)| unlocated(name, mapping, true)));
            found.extend(mappings.usb.iter().filter_map(|(name, mapping)| unlocated(name, mapping, false)));
        }
        if let Some(firewall) = &hypervisor.firewall {
            let grouped = firewall.groups.iter().flat_map(|(_, group)| &group.rules);
            found.extend(firewall.rules.iter().chain(grouped).filter_map(unknown_action));
        }
    }
    // A file is in each of its environments.
    let mut told: Vec<Diagnostic> = Vec::new();
    for problem in found {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    told.into_iter().for_each(|problem| diagnostics.push(problem));
}

/// What an installation has by itself, and nobody can change.
fn built_in(hypervisor: &Hypervisor) -> Vec<Diagnostic> {
    let fixed = |name: &str| matches!(name, "Administrator" | "NoAccess") || name.starts_with("PVE");
    let roles = hypervisor.roles.iter().map(|(name, _)| name).filter(|name| fixed(name));
    let roles = roles.map(|name| {
        let problem = Diagnostic::error("built-in", format!("the role `{name}` is built into Proxmox"));
        problem.at(name.span).hint("entries of `acl` can name it as it is; describe a role of another name")
    });
    let root = hypervisor.users.iter().map(|(name, _)| name).filter(|name| name.as_str() == "root@pam");
    let root = root.map(|name| {
        let problem = Diagnostic::error("built-in", "the user `root@pam` cannot be managed");
        problem.at(name.span).hint("leave it out: tokens and entries of `acl` can name it all the same")
    });
    roles.chain(root).collect()
}

/// A storage without what its type needs. One that is adopted keeps what the source does not speak of.
fn unfinished(name: &Spanned<String>, storage: &Storage) -> Option<Diagnostic> {
    let needed: &[(&str, bool)] = match storage.kind {
        StorageType::Nfs => &[("server", storage.server.is_some()), ("export", storage.export.is_some())],
        StorageType::Cifs => &[("server", storage.server.is_some()), ("share", storage.share.is_some())],
        StorageType::Pbs => &[
            ("server", storage.server.is_some()),
            ("datastore", storage.datastore.is_some()),
            ("username", storage.username.is_some()),
        ],
        StorageType::Dir => &[("path", storage.path.is_some())],
        StorageType::Lvm => &[("volumeGroup", storage.volume_group.is_some())],
        StorageType::LvmThin => {
            &[("volumeGroup", storage.volume_group.is_some()), ("thinPool", storage.thin_pool.is_some())]
        }
        StorageType::Zfspool => &[("pool", storage.pool.is_some())],
        _ => &[],
    };
    let missing: Vec<String> =
        needed.iter().filter(|(_, there)| !there).map(|(field, _)| format!("`{field}`")).collect();
    if missing.is_empty() || storage.adopt {
        return None;
    }
    let message = format!("the storage `{name}` of type `{}` lacks {}", storage.kind, missing.join(" and "));
    Some(Diagnostic::error("incomplete-storage", message).at(name.span))
}

/// A device that nothing says the place of.
fn unlocated(name: &Spanned<String>, mapping: &Mapping, pci: bool) -> Option<Diagnostic> {
    let device =
        mapping.devices.iter().find(|device| device.path.is_none() && (pci || device.id.is_none()))?;
    let lacks = if pci { "no `path`" } else { "neither `path` nor `id`" };
    let message = format!("the device `{name}` on `{}` has {lacks}", device.node);
    Some(Diagnostic::error("no-device", message).at(device.node.span))
}

fn unknown_action(rule: &FirewallRule) -> Option<Diagnostic> {
    let known = matches!(rule.action.as_str(), "ACCEPT" | "DROP" | "REJECT");
    if known || rule.direction == Direction::Group {
        return None;
    }
    let problem = Diagnostic::error("bad-action", format!("`{}` is no action of a rule", rule.action));
    Some(
        problem
            .at(rule.action.span)
            .hint("write `ACCEPT`, `DROP` or `REJECT`; a security group needs `direction: group`"),
    )
}
