//! What an environment leaves out with `null`, and something else still needs.

use strata_diagnostics::{Diagnostic, Diagnostics, Span};
use strata_yaml::Spanned;

use crate::repository::{EffectiveStack, Model, Repository};

/// The mistake, if the environment of a stack leaves out what is named at `at`.
pub(super) fn entry(
    stack: &EffectiveStack,
    (section, word): (&str, &str),
    name: &str,
    at: Span,
) -> Option<Diagnostic> {
    let span = stack.left_out(section, name)?;
    let message = format!("the {word} `{name}` is left out of `{}`, and this needs it", stack.environment);
    let problem = Diagnostic::error("left-out", message).at(at).also(span, "left out here");
    Some(problem.hint(format!("leave this out too, or keep the {word}")))
}

/// The same of a whole stack.
pub(super) fn stack(
    repository: &Repository,
    name: &str,
    here: &EffectiveStack,
    at: Span,
) -> Option<Diagnostic> {
    let span = repository.left_out(name, &here.environment)?;
    let message =
        format!("the stack `{name}` is left out of `{}`, and `{}` needs it", here.environment, here.name);
    let problem = Diagnostic::error("left-out", message).at(at).also(span, "left out here");
    Some(problem.hint(format!("leave `{}` out too, or keep `{name}`", here.name)))
}

/// Pools that guests are members of.
pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for layer0 in repository.effective().filter(|stack| stack.hypervisor().is_some()) {
        let endpoint = repository.proxmox_endpoint(layer0);
        let neighbours = repository.effective().filter(|stack| {
            stack.environment == layer0.environment && repository.proxmox_endpoint(stack) == endpoint
        });
        for pool in neighbours.flat_map(pools) {
            diagnostics.extend(entry(layer0, ("pools", "pool"), pool, pool.span));
        }
    }
}

fn pools(stack: &EffectiveStack) -> Vec<&Spanned<String>> {
    match &stack.model {
        Model::Machines(machines) => {
            let whole = machines.proxmox.iter().filter_map(|proxmox| proxmox.pool.as_ref());
            let vms = machines.vms.values().map(|vm| vm.guest.pool.as_ref());
            let containers = machines.containers.values().map(|container| container.guest.pool.as_ref());
            let templates = machines.templates.values().map(|template| template.pool.as_ref());
            whole.chain(vms.chain(containers).chain(templates).flatten()).collect()
        }
        Model::Cluster(cluster) => {
            let vm = cluster.proxmox.as_ref().and_then(|proxmox| proxmox.vm.as_ref());
            vm.and_then(|vm| vm.pool.as_ref()).into_iter().collect()
        }
        Model::Hypervisor(hypervisor) => {
            hypervisor.backup_jobs.values().filter_map(|job| job.pool.as_ref()).collect()
        }
        Model::Tofu(_) | Model::Broken | Model::Removed => Vec::new(),
    }
}
