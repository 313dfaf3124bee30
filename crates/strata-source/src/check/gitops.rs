//! Flux runs as pods: there must be a node that takes them.

use strata_diagnostics::{Diagnostic, Diagnostics};

use crate::cluster::Cluster;
use crate::cluster::topology::NodeRole;
use crate::repository::{Model, Repository};

/// The controllers of Flux would wait for a node that takes pods, and there is none.
pub const FLUX_HOMELESS: &str = "flux-homeless";

pub(super) fn check(repository: &Repository, diagnostics: &mut Diagnostics) {
    for stack in repository.effective() {
        if let Model::Cluster(cluster) = &stack.model {
            diagnostics.extend(homeless(cluster, &stack.name));
        }
    }
}

fn homeless(cluster: &Cluster, stack: &str) -> Option<Diagnostic> {
    let flux = cluster.gitops.as_ref().filter(|gitops| gitops.enabled)?.flux.as_ref()?;
    let kubernetes = cluster.cluster.kubernetes.as_ref();
    if kubernetes.and_then(|kubernetes| kubernetes.schedule_on_control_planes) == Some(true) {
        return None;
    }
    // What is wrong with the topology itself is reported where the guests are collected.
    let machines = cluster.machines(stack, &mut Diagnostics::new());
    if machines.is_empty() || machines.iter().any(|machine| machine.role == NodeRole::Worker) {
        return None;
    }
    let message =
        "the controllers of Flux have nowhere to run: all nodes are control planes, which take no workloads";
    let hint = "set `scheduleOnControlPlanes: true` under `kubernetes`, or add a worker; a patch that allows it will do, too";
    Some(Diagnostic::warning(FLUX_HOMELESS, message).at(flux.repository.span).hint(hint))
}
