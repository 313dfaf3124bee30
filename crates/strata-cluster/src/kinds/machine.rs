//! The Talos of one node. Whether a change of its configuration reboots it depends on the path and on the version of Talos: the provider
//! forecasts it. What other resources own is not in its configuration: the versions of Kubernetes' components, the installer.

mod observed;

use async_trait::async_trait;
use strata_engine::{Operation, OperationContext, Outcome, ProviderError, Sighting, Wanted};
use strata_resource::{KindTable, Rollout, Shown, Spec, Value, kind};

use super::BY_TALOS;
use super::managed::ManagedKind;
use crate::cluster::Cluster;
use crate::machine as steps;
use crate::observe::Look;

/// The fact that says that the whole disk was wiped by somebody who said so.
pub const WIPED: &str = "wiped";

fn is_worker(spec: &Spec) -> bool {
    spec.get("role").and_then(Value::as_text) == Some("worker")
}

fn removal(spec: &Spec, ends: bool) -> &'static str {
    match (spec.contains_key("vm"), ends) {
        (true, true) => "goes with its VM",
        (true, false) => "leaves the cluster",
        (false, true) => "reset: its configuration and its data are wiped",
        (false, false) => "leaves the cluster and is reset: its configuration and its data are wiped",
    }
}

kind! {
    /// The Talos of one node: its machine configuration and its version.
    "machine" {
        called: "Talos {version} on {address}",
        identity: &["machine"],
        no_tofu: BY_TALOS,
        proof: "it answers to the certificate authority of the cluster",
        recovery: "a machine in maintenance mode is configured again; one that runs with the cluster's keys is compared; one that is unreachable is waited for",
        shown: Shown {
            in_headline: &["machine", "vm", "foreign", "media", "cordoned", "left_etcd", "stale_etcd_data", "unregistered", "address", "version"],
            summarised: Some("config"),
            removal,
            removing: ("removing from the cluster", "removed from the cluster"),
            ..Shown::USUAL
        },
        gone: "it has no configuration any more",
        rollout: Rollout::Member { always: true, follows: is_worker, group: |_| None },
        wiped_fact: Some(WIPED),
    }
    /// the node's name
    "machine": Text => InPlace;
    /// `controlplane` or `worker`
    "role": Text => Replace [because("a node is made a control plane or a worker when it is installed")];
    /// the uuid of its VM; the machine of another VM is another machine
    "vm": Text => Replace [because("its VM is recreated")];
    /// where its API answers
    "address": Text => InPlace;
    /// the version of Talos
    "version": Text => InPlace;
    /// the image that it is installed and upgraded with; another schematic is another one
    "installer": Text => InPlace;
    /// the architecture; it never changes
    "arch": Text => InPlace;
    /// cordoned by an interrupted run of ours
    "cordoned": Bool => InPlace [off_by_default];
    /// a control plane whose member was removed from etcd, and that does not join by itself
    "left_etcd": Bool => InPlace [off_by_default];
    /// a control plane that keeps the data of a member that etcd removed: they are saved and wiped, and it joins as a new one
    "stale_etcd_data": Bool => InPlace [off_by_default];
    /// a node that runs, and whose Node is not in Kubernetes: it does not come back by itself
    "unregistered": Bool => InPlace [off_by_default];
    /// `ejected`: the ISO that it was installed from
    "media": Text => InPlace;
    /// paths of the live configuration that are not in ours: it is sent as a whole, so they go
    "foreign": List => InPlace [set];
    /// the machine configuration as a tree, by document; secrets in it are secrets here
    "config.*": Any => InPlace [slot];
}

pub(crate) struct Machine;

#[async_trait]
impl ManagedKind for Machine {
    fn table(&self) -> &'static KindTable {
        &TABLE
    }

    async fn observe(&self, look: &Look<'_>, wanted: &Wanted<'_>) -> Result<Sighting, ProviderError> {
        observed::observe(look, wanted).await
    }

    async fn execute(
        &self,
        cluster: &Cluster,
        operation: &Operation,
        context: &dyn OperationContext,
    ) -> Result<Outcome, ProviderError> {
        steps::execute(cluster, operation, context).await
    }
}
