//! Whether a change reboots a node: said in the plan, and kept to when it is applied.

use strata_engine::{FindingKind, Operation};
use strata_resource::Value;
use strata_state::Action;
use strata_talos::{Contract, MachineConfig, RebootEffect, forecast};

use crate::evidence::ClusterReview;
use crate::kinds;
use crate::rejoin::is_rejoin;

/// What a node is to be told: the wanted configuration with the versions of Kubernetes that the node has. Those are changed in an
/// order of their own.
pub(crate) fn merged_config(wanted: &MachineConfig, live: &MachineConfig) -> MachineConfig {
    wanted.with_components_of(live)
}

/// Whether a node is told its configuration when the operation is done.
pub(crate) fn sends_config(operation: &Operation) -> bool {
    ["config", "foreign", "address"].iter().any(|field| operation.touches(field))
}

/// Whether a node has to be told anything.
pub(crate) fn differs(live: &MachineConfig, sent: &MachineConfig) -> bool {
    live.to_yaml().expose() != sent.to_yaml().expose()
}

/// What it means for a node of this version to be told.
pub(crate) fn effect(version: &str, live: &MachineConfig, sent: &MachineConfig) -> RebootEffect {
    match version.parse::<Contract>() {
        Ok(contract) => forecast(contract, live, sent).effect(),
        Err(_) => RebootEffect::MayReboot,
    }
}

/// For the plan: by the version that the node will have when it is told. None if it stays up.
pub(crate) fn of(review: ClusterReview<'_>, operation: &Operation) -> Option<FindingKind> {
    if operation.address.kind() != kinds::MACHINE || operation.action != Action::Update {
        return None;
    }
    let name = operation.address.name();
    let due = || review.seen(name).is_some_and(|seen| seen.reboot_due);
    let nodes = &review.cluster.options.nodes;
    let leased = || nodes.iter().any(|node| node.name == name && node.lease.is_some());
    if is_rejoin(operation)
        || ["version", "installer"].iter().any(|field| operation.touches(field))
        || (operation.touches("cordoned") && due())
        || (operation.touches("address") && leased())
    {
        return Some(FindingKind::Restarts);
    }
    if !sends_config(operation) {
        return None;
    }
    let live = &review.seen(name)?.config;
    let wanted = review.cluster.options.configs.get(name)?;
    let version = operation.spec.get("version").and_then(Value::as_text).unwrap_or_default();
    match effect(version, live, &merged_config(wanted, live)) {
        RebootEffect::NoReboot => None,
        RebootEffect::MayReboot => Some(FindingKind::MayRestart),
        RebootEffect::Reboot => Some(FindingKind::Restarts),
    }
}

#[cfg(test)]
mod tests;
