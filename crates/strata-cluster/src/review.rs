//! The review of what a plan does to a cluster: which nodes reboot, what each is sent, what must not be done.

use strata_engine::{Finding, FindingKind, Operation, ProviderError, Review};
use strata_state::Action;
use strata_talos::{Component, MachineConfig};

use crate::cluster::Cluster;
use crate::error::internal;
use crate::evidence::{ClusterReview, PlannedStep};
use crate::forecast::{self, merged_config, sends_config};
use crate::kubernetes::version_of;
use crate::{kinds, moving, preconditions, rejoin};

pub(crate) async fn review(cluster: &Cluster, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
    let review = ClusterReview::new(cluster, review);
    let mut operations = review.operations.to_vec();
    let mut found: Vec<Finding> = operations.iter().filter_map(|one| remark(cluster, one)).collect();
    for operation in &mut operations {
        let restarts = forecast::of(review, operation);
        // What is forecast is what the preconditions are about.
        operation.restart |= matches!(restarts, Some(FindingKind::Restarts));
        found.extend(restarts.map(|kind| Finding::new(operation, kind)));
    }
    for operation in &operations {
        let config = config_to_send(review, operation)?;
        let seen = seen(review, operation, config.as_ref());
        let planned = PlannedStep { etcd_runs: review.etcd_runs, config, seen };
        found.push(Finding::new(operation, FindingKind::Sends(planned.payload())));
    }
    found.extend(rejoin::findings(review.of(&operations)));
    found.extend(preconditions::preconditions(review.of(&operations)).await?);
    Ok(found)
}

/// What the VMs of nodes carry: also where one gets its new address on the drive, its Talos is told before.
pub(crate) fn of_vms(review: ClusterReview<'_>) -> Vec<Finding> {
    let nodes = review
        .operations
        .iter()
        .filter(|one| one.address.kind() == kinds::VM && review.cluster.place(one.address.name()).is_some());
    nodes
        .map(|operation| {
            let config = moving::rewrites_drive(operation).then(|| wanted(review, operation.address.name()));
            let config = config.flatten();
            let seen = seen(review, operation, config.as_ref());
            let planned = PlannedStep { etcd_runs: review.etcd_runs, config, seen };
            Finding::new(operation, FindingKind::Sends(planned.payload()))
        })
        .collect()
}

/// What a node has that is sent another configuration.
fn seen(
    review: ClusterReview<'_>,
    operation: &Operation,
    config: Option<&MachineConfig>,
) -> Option<MachineConfig> {
    let seen = review.seen(operation.address.name()).filter(|_| operation.action == Action::Update);
    config.and(seen).map(|seen| seen.config.clone())
}

/// What a machine is sent by an operation.
fn config_to_send(
    review: ClusterReview<'_>,
    operation: &Operation,
) -> Result<Option<MachineConfig>, ProviderError> {
    if operation.address.kind() != kinds::MACHINE {
        return Ok(None);
    }
    let name = operation.address.name();
    match operation.action {
        Action::Create => joining(review, name),
        Action::Update if sends_config(operation) => Ok(wanted(review, name)),
        Action::Update | Action::Delete => Ok(None),
    }
}

/// The wanted configuration with the versions of Kubernetes that the node has: those are changed in an order of their own.
fn wanted(review: ClusterReview<'_>, name: &str) -> Option<MachineConfig> {
    let wanted = review.cluster.options.configs.get(name)?;
    Some(merged_config(wanted, &review.seen(name)?.config))
}

/// What a node that joins gets: with the Kubernetes that the cluster has by now, since a kubelet must not be newer than the API
/// servers. It becomes newer together with all others.
fn joining(review: ClusterReview<'_>, name: &str) -> Result<Option<MachineConfig>, ProviderError> {
    let Some(mut joining) = review.cluster.options.configs.get(name).cloned() else { return Ok(None) };
    let others = review.running().filter(|(node, _)| *node != name).map(|(_, seen)| &seen.config);
    let Some(version) = version_of(others).filter(|_| review.etcd_runs) else { return Ok(Some(joining)) };
    for component in Component::ALL {
        if joining.runs(component) {
            let set = joining.set_component_version(component, &version);
            set.map_err(|error| internal(error.to_string()))?;
        }
    }
    Ok(Some(joining))
}

/// That etcd begins again costs everything that is in it.
fn remark(cluster: &Cluster, operation: &Operation) -> Option<Finding> {
    let options = &cluster.options;
    let bootstraps = operation.address.kind() == kinds::BOOTSTRAP && operation.action == Action::Create;
    if !bootstraps || !options.bootstrapped {
        return None;
    }
    let saved = "what control planes still hold of the old etcd is saved as a snapshot and then wiped";
    let remark = match (&options.restoring, options.new_cluster) {
        (Some(_), _) => {
            format!("etcd begins from the snapshot: what was changed since then is lost; {saved}")
        }
        (None, true) => format!(
            "`--new-cluster`: all data of the cluster `{}` is lost, every object of its Kubernetes; {saved}",
            cluster.name()
        ),
        (None, false) => return None,
    };
    Some(Finding::remark(operation, remark))
}
