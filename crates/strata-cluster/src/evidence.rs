//! What a look at a cluster found, for the review of a plan; and what a step carries from there to its execution.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use strata_engine::{Operation, Payload, ProviderError, Review, Sighting};
use strata_resource::Address;
use strata_talos::MachineConfig;

use crate::cluster::Cluster;
use crate::config_write::ConfigWrite;
use crate::error::internal;
use crate::kinds;

/// What a node that runs has.
pub(crate) struct MachineEvidence {
    pub(crate) config: MachineConfig,
    /// A run that died owes it a reboot.
    pub(crate) reboot_due: bool,
}

/// What the review of a cluster works with: what is planned, and what was seen.
#[derive(Clone, Copy)]
pub(crate) struct ClusterReview<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) operations: &'a [Operation],
    live: &'a BTreeMap<Address, Sighting>,
    /// There is an etcd to look after: by the state, or because it answered.
    pub(crate) etcd_runs: bool,
}

impl<'a> ClusterReview<'a> {
    pub(crate) fn new(cluster: &'a Cluster, review: Review<'a>) -> Self {
        let answers = |(address, sighting): (&Address, &Sighting)| {
            address.kind() == kinds::BOOTSTRAP && matches!(sighting, Sighting::Ours(_))
        };
        let etcd_runs =
            cluster.is_bootstrapped() || !cluster.options.ending && review.live.iter().any(answers);
        Self { cluster, operations: review.operations, live: review.live, etcd_runs }
    }

    /// The same of other operations.
    pub(crate) fn of(self, operations: &'a [Operation]) -> Self {
        Self { operations, ..self }
    }

    /// Every node that was seen running, by name.
    pub(crate) fn running(self) -> impl Iterator<Item = (&'a str, &'a MachineEvidence)> {
        self.live.iter().filter_map(|(address, sighting)| match sighting {
            Sighting::Ours(observed) if address.kind() == kinds::MACHINE => {
                Some((address.name(), observed.evidence.get::<MachineEvidence>()?))
            }
            _ => None,
        })
    }

    pub(crate) fn seen(self, name: &str) -> Option<&'a MachineEvidence> {
        self.running().find(|(node, _)| *node == name).map(|(_, evidence)| evidence)
    }
}

/// What an operation on a cluster, or on the VM of one of its nodes, carries.
pub(crate) struct PlannedStep {
    /// There was an etcd to look after when it was planned.
    pub(crate) etcd_runs: bool,
    /// The configuration that the node gets.
    pub(crate) config: Option<MachineConfig>,
    /// The one that it had when that was planned; none if it is its first.
    pub(crate) seen: Option<MachineConfig>,
}

impl PlannedStep {
    /// The digest of a configuration is that of the bytes that a node gets. It needs no key: every configuration holds a token that nobody
    /// can guess.
    pub(crate) fn payload(self) -> Payload {
        let etcd = if self.etcd_runs { "etcd runs" } else { "no etcd" };
        let digest = match &self.config {
            Some(config) => {
                format!("{etcd}, config {}", hex::encode(Sha256::digest(config.to_yaml().expose())))
            }
            None => etcd.to_owned(),
        };
        Payload::new(self, digest)
    }

    pub(crate) fn of(operation: &Operation) -> Option<&Self> {
        operation.payload.as_ref()?.get()
    }

    /// What a node that runs gets by this step.
    pub(crate) fn config_write<'c>(&'c self, name: &'c str) -> Option<ConfigWrite<'c>> {
        Some(ConfigWrite { name, seen: self.seen.as_ref()?, wanted: self.config.as_ref()? })
    }
}

/// What a node that runs gets by an operation.
pub(crate) fn planned_write(operation: &Operation) -> Result<ConfigWrite<'_>, ProviderError> {
    let write = PlannedStep::of(operation).and_then(|planned| planned.config_write(operation.address.name()));
    write.ok_or_else(|| internal(format!("`{}` was planned without a configuration", operation.address)))
}

/// The configuration that a step carries.
pub(crate) fn planned_config(operation: &Operation) -> Result<&MachineConfig, ProviderError> {
    let config = PlannedStep::of(operation).and_then(|planned| planned.config.as_ref());
    config.ok_or_else(|| internal(format!("`{}` was planned without a configuration", operation.address)))
}
