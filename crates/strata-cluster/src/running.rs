//! What would break a node or a cluster that runs: refused in the plan, with the reason and the way (`strata_talos::running` has the table).

use std::collections::BTreeSet;

use strata_engine::{Finding, Operation};
use strata_resource::{Spec, Value};
use strata_state::Action;
use strata_talos::MachineConfig;
use strata_talos::running::{ARCHITECTURE, CLUSTER_NAME, ROLE, SECURE_BOOT, Scope, Setting, broken_by};

use crate::cluster::Cluster;
use crate::evidence::{ClusterReview, MachineEvidence};
use crate::forecast::{merged_config, sends_config};
use crate::installer::Installer;
use crate::kinds;

pub(crate) fn preconditions(review: ClusterReview<'_>) -> Vec<Finding> {
    let ClusterReview { cluster, operations, .. } = review;
    let mut found = renamed(cluster, operations);
    let mut told_of = BTreeSet::new();
    for operation in operations.iter().filter(|one| one.address.kind() == kinds::MACHINE) {
        let name = operation.address.name();
        for setting in of_machine(review, operation) {
            let subject = match setting.scope {
                Scope::Cluster => cluster.name(),
                Scope::Node => name,
            };
            if told_of.insert((setting.name, subject.to_owned())) {
                found.push(refused(cluster, operation, setting, subject));
            }
        }
    }
    found
}

fn refused(cluster: &Cluster, operation: &Operation, setting: &Setting, subject: &str) -> Finding {
    Finding::precondition(
        operation,
        format!("{} of `{subject}` cannot change while it runs: {}", setting.name, setting.reason),
        setting.way(&cluster.options.stack, operation.address.name()),
    )
}

/// A cluster that has another name in the state is that one, and not the one that the source asks for.
fn renamed(cluster: &Cluster, operations: &[Operation]) -> Vec<Finding> {
    let former = |one: &&Operation| one.address.kind() == kinds::BOOTSTRAP && one.action == Action::Delete;
    let gone = operations.iter().find(former).filter(|gone| gone.address.name() != cluster.name());
    // What an earlier version left of a name that nobody uses any more is only forgotten.
    let gone = gone.filter(|_| !cluster.options.bootstrapped_as.contains(cluster.name()));
    gone.map(|gone| refused(cluster, gone, &CLUSTER_NAME, gone.address.name())).into_iter().collect()
}

fn of_machine(review: ClusterReview<'_>, operation: &Operation) -> Vec<&'static Setting> {
    let ClusterReview { cluster, operations, .. } = review;
    let name = operation.address.name();
    match operation.action {
        Action::Update => {}
        // A machine that is replaced on a VM that stays keeps what is on its disk.
        Action::Delete => {
            let same = |one: &&Operation| one.address == operation.address && one.action == Action::Create;
            let recreated = operations.iter().find(same);
            let becomes = recreated.and_then(|recreated| text(&recreated.spec, "role"));
            let changes = becomes.is_some() && becomes != text(&operation.spec, "role");
            let of_vm = |one: &Operation| one.address.kind() == kinds::VM && one.address.name() == name;
            let stays = !operations.iter().any(|one| of_vm(one) && one.action == Action::Delete);
            return if changes && stays { vec![&ROLE] } else { Vec::new() };
        }
        Action::Create => return Vec::new(),
    }
    let mut found = Vec::new();
    if let Some(MachineEvidence { config: live, .. }) = review.seen(name)
        && let Some(wanted) = cluster.options.configs.get(name)
        && sends_config(operation)
        && !only_drifted(operation)
    {
        let wanted = merged_config(wanted, live);
        let mut broken = broken_by(live, &wanted);
        broken.retain(|setting| match setting.scope {
            Scope::Cluster => review.etcd_runs && !most_have(setting, &wanted, review),
            Scope::Node => true,
        });
        found.extend(broken);
    }
    if differs(operation, "installer", |one, other| one.secure_boot() != other.secure_boot()) {
        found.push(&SECURE_BOOT);
    }
    if operation.touches("arch") {
        found.push(&ARCHITECTURE);
    }
    found
}

fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

fn differs(
    operation: &Operation,
    field: &str,
    unlike: impl Fn(Installer<'_>, Installer<'_>) -> bool,
) -> bool {
    let live = operation.observed.as_ref().and_then(|observed| text(&observed.spec, field));
    match live.zip(text(&operation.spec, field)) {
        Some((live, wanted)) => unlike(Installer::of(live), Installer::of(wanted)),
        None => false,
    }
}

/// The source asks for what was applied last: somebody else changed the node, and it is put back.
fn only_drifted(operation: &Operation) -> bool {
    let recorded = operation.recorded.as_ref().filter(|recorded| !recorded.partial);
    recorded.is_some_and(|recorded| recorded.spec.get("config") == operation.spec.get("config"))
}

/// Most nodes have it already: the others are brought back to what the cluster is.
fn most_have(setting: &Setting, wanted: &MachineConfig, review: ClusterReview<'_>) -> bool {
    let seen = review.running().map(|(_, seen)| &seen.config);
    let alike = seen.filter(|config| config.is_control_plane() == wanted.is_control_plane());
    let (same, other): (Vec<_>, Vec<_>) = alike.partition(|config| setting.is_same(config, wanted));
    same.len() > other.len()
}

#[cfg(test)]
mod tests;
