//! Targets: that they exist and are of the right kind.

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use super::suggestion;
use crate::repository::{EffectiveStack, Model, Repository};
use crate::settings::Settings;
use crate::world::{World, find};

pub(super) fn check(repository: &Repository, world: &dyn World, diagnostics: &mut Diagnostics) {
    authorities(&repository.settings, world, diagnostics);
    for stack in repository.effective() {
        let settings = repository.settings(&stack.environment);
        if let Some(name) = stack.target_name() {
            known(settings, name, "proxmox", diagnostics);
        } else if wants_target(stack) && repository.target(stack).is_none() {
            diagnostics.push(unnamed(settings, stack));
        }
        let storage = stack.cluster().and_then(|cluster| cluster.storage.as_ref());
        if let Some(truenas) = storage.and_then(|storage| storage.truenas.as_ref()) {
            known(settings, &truenas.target, "truenas", diagnostics);
        }
    }
}

/// Files with the certificates of an authority.
fn authorities(settings: &Settings, world: &dyn World, diagnostics: &mut Diagnostics) {
    for target in settings.targets.values() {
        let proxmox = target.proxmox.as_ref().and_then(|proxmox| proxmox.tls.as_ref());
        let truenas = target.truenas.as_ref().and_then(|truenas| truenas.tls.as_ref());
        for ca in proxmox.into_iter().chain(truenas).filter_map(|tls| tls.ca.as_ref()) {
            if let Err(problem) = find(world, "", ca) {
                diagnostics.push(Diagnostic::error("missing-file", problem).at(ca.span));
            }
        }
    }
}

fn known(settings: &Settings, name: &Spanned<String>, kind: &str, diagnostics: &mut Diagnostics) {
    if settings.targets.names(name) {
        let Some(target) = settings.targets.get(name) else { return };
        if !target.places.has(kind) {
            let message = format!("the target `{name}` is not a `{kind}` target");
            let problem = Diagnostic::error("wrong-target", message).at(name.span);
            diagnostics.push(problem.also(target.places.owner(), "the target"));
        }
        return;
    }
    let names: Vec<&str> = settings.targets.keys().collect();
    let hint = suggestion(name, &names).unwrap_or_else(|| "add it under `targets` in strata.yaml".to_owned());
    let problem = Diagnostic::error("unknown-target", format!("there is no target `{name}`"));
    diagnostics.push(problem.at(name.span).hint(hint));
}

fn wants_target(stack: &EffectiveStack) -> bool {
    match &stack.model {
        Model::Machines(machines) => {
            !(machines.vms.is_empty() && machines.containers.is_empty() && machines.templates.is_empty())
        }
        Model::Cluster(cluster) => cluster.proxmox.as_ref().is_some_and(|proxmox| proxmox.endpoint.is_none()),
        Model::Hypervisor(_) => true,
        Model::Tofu(_) | Model::Broken | Model::Removed => false,
    }
}

fn unnamed(settings: &Settings, stack: &EffectiveStack) -> Diagnostic {
    let names: Vec<&str> = settings.targets.keys().collect();
    let problem = Diagnostic::error("missing-key", format!("the stack `{}` names no target", stack.name));
    let hint = match names.as_slice() {
        [] => "add one under `targets` in strata.yaml, and `proxmox: {target: …}` here".to_owned(),
        [first, ..] => format!("write `proxmox: {{target: {first}}}`"),
    };
    problem.at(Span::start_of(stack.file)).hint(hint)
}
