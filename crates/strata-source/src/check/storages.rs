//! Storages, where the hypervisors of a target say which there are.

use std::collections::{BTreeMap, BTreeSet};

use strata_diagnostics::{Diagnostic, Diagnostics, nearest};
use strata_yaml::Spanned;

use crate::machine::hardware::Hardware;
use crate::machine::image::ImageRef;
use crate::repository::{EffectiveStack, Model, Repository};
use crate::stack::{Stack, StorageDefaults};

/// Storages that an installation makes by itself.
const BUILT_IN: [&str; 3] = ["local", "local-lvm", "local-zfs"];

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    let mut known: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for stack in repository.effective() {
        let Some(hypervisor) = stack.hypervisor().filter(|hypervisor| !hypervisor.storages.is_empty()) else {
            continue;
        };
        if let Some(endpoint) = repository.proxmox_endpoint(stack) {
            known.entry(endpoint).or_default().extend(hypervisor.storages.keys());
        }
    }
    for stack in repository.effective() {
        let Some(storages) = repository.proxmox_endpoint(stack).and_then(|endpoint| known.get(&endpoint))
        else {
            continue;
        };
        for storage in named(stack) {
            if storages.contains(storage.as_str()) || BUILT_IN.contains(&storage.as_str()) {
                continue;
            }
            // Nobody has to describe every storage that there is: only a name that looks like a slip is told.
            let names: Vec<&str> = storages.iter().copied().chain(BUILT_IN).collect();
            let Some(meant) = nearest(storage, names) else { continue };
            let message = format!("no hypervisor describes a storage `{storage}`");
            let problem = Diagnostic::warning("unknown-storage", message).at(storage.span);
            diagnostics.push(problem.hint(format!("did you mean `{meant}`?")));
        }
    }
}

/// Every storage that a stack names.
fn named(stack: &EffectiveStack) -> Vec<&Spanned<String>> {
    match &stack.model {
        Model::Machines(machines) => of_machines(machines),
        Model::Cluster(cluster) => {
            let proxmox = cluster.proxmox.as_ref();
            let mut names: Vec<&Spanned<String>> =
                proxmox.and_then(|proxmox| proxmox.storage.as_ref()).map(of_defaults).unwrap_or_default();
            names.extend(
                proxmox
                    .and_then(|proxmox| proxmox.vm.as_ref())
                    .iter()
                    .flat_map(|vm| of_hardware(&vm.hardware)),
            );
            names
        }
        Model::Hypervisor(_) | Model::Tofu(_) | Model::Broken | Model::Removed => Vec::new(),
    }
}

fn of_machines(stack: &Stack) -> Vec<&Spanned<String>> {
    let mut names = Vec::new();
    let defaults = stack.proxmox.as_ref().and_then(|proxmox| proxmox.storage.as_ref());
    names.extend(defaults.map(of_defaults).unwrap_or_default());
    names.extend(stack.images.values().filter_map(|image| image.storage.as_ref()));
    for template in stack.templates.values() {
        names.extend(&template.storage);
        names.extend(template.image.as_ref().and_then(of_image));
        names.extend(of_hardware(&template.hardware));
        names.extend(template.cloud_init.as_ref().and_then(|cloud_init| cloud_init.storage.as_ref()));
    }
    for vm in stack.vms.values() {
        names.extend(vm.image.iter().chain(&vm.iso).filter_map(of_image));
        names.extend(of_hardware(&vm.hardware));
        names.extend(vm.cloud_init.as_ref().and_then(|cloud_init| cloud_init.storage.as_ref()));
    }
    for container in stack.containers.values() {
        names.extend(&container.storage);
        names.extend(of_image(&container.image));
        names.extend(container.disk.as_ref().and_then(|disk| disk.storage.as_ref()));
        names.extend(container.mount_points.iter().filter_map(|(_, mount)| mount.storage.as_ref()));
    }
    names
}

fn of_defaults(defaults: &StorageDefaults) -> Vec<&Spanned<String>> {
    [&defaults.disk, &defaults.iso, &defaults.import, &defaults.vztmpl].into_iter().flatten().collect()
}

fn of_image(image: &ImageRef) -> Option<&Spanned<String>> {
    match image {
        ImageRef::Inline(image) => image.storage.as_ref(),
        ImageRef::Named(_) | ImageRef::Volume(_) => None,
    }
}

fn of_hardware(hardware: &Hardware) -> Vec<&Spanned<String>> {
    let disks = hardware.disk.iter().chain(hardware.disks.iter().map(|(_, disk)| disk));
    let mut names: Vec<&Spanned<String>> = disks.filter_map(|disk| disk.storage.as_ref()).collect();
    names.extend(hardware.efi.as_ref().and_then(|efi| efi.storage.as_ref()));
    names.extend(hardware.tpm.as_ref().and_then(|tpm| tpm.storage.as_ref()));
    names
}
