//! Whether a change reboots a node: said in the plan, and kept to when it is applied.

use std::sync::PoisonError;

use strata_engine::{Forecast, Operation};
use strata_resource::Value;
use strata_talos::{Contract, MachineConfig, RebootEffect, forecast};

use crate::cluster::Cluster;

/// What a node is to be told: the wanted configuration with the versions of Kubernetes that the node has. Those are changed in an
/// order of their own.
pub(crate) fn told(wanted: &MachineConfig, live: &MachineConfig) -> MachineConfig {
    wanted.with_components_of(live)
}

/// Whether a node is told its configuration when the operation is done.
pub(crate) fn tells(operation: &Operation) -> bool {
    ["config", "foreign", "address"].iter().any(|field| operation.touches(field))
}

/// Whether a node has to be told anything.
pub(crate) fn differs(live: &MachineConfig, told: &MachineConfig) -> bool {
    live.to_yaml().expose() != told.to_yaml().expose()
}

/// What it means for a node of this version to be told.
pub(crate) fn effect(version: &str, live: &MachineConfig, told: &MachineConfig) -> RebootEffect {
    match version.parse::<Contract>() {
        Ok(contract) => forecast(contract, live, told).effect(),
        Err(_) => RebootEffect::MayReboot,
    }
}

/// For the plan: by the version that the node will have when it is told.
pub(crate) fn of(cluster: &Cluster, operation: &Operation) -> Option<Forecast> {
    let due =
        || cluster.due.lock().unwrap_or_else(PoisonError::into_inner).contains(operation.address.name());
    if operation.touches("version")
        || operation.touches("left_etcd")
        || operation.touches("installer")
        || (operation.touches("cordoned") && due())
    {
        return Some(Forecast::Restarts);
    }
    let moves = || {
        let node = cluster.options.nodes.iter().find(|node| node.name == operation.address.name());
        node.is_some_and(|node| node.lease.is_some())
    };
    if operation.touches("address") && moves() {
        return Some(Forecast::Restarts);
    }
    if !tells(operation) {
        return Some(Forecast::StaysUp);
    }
    let seen = cluster.seen.lock().unwrap_or_else(PoisonError::into_inner);
    let live = seen.get(operation.address.name())?;
    let wanted = cluster.options.configs.get(operation.address.name())?;
    let version = operation.spec.get("version").and_then(Value::as_text).unwrap_or_default();
    Some(match effect(version, live, &told(wanted, live)) {
        RebootEffect::NoReboot => Forecast::StaysUp,
        RebootEffect::MayReboot => Forecast::MayRestart,
        RebootEffect::Reboot => Forecast::Restarts,
    })
}

#[cfg(test)]
mod tests;
