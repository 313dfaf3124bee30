//! The address that control planes share: before it is used for the first time the network is asked whether somebody has it.

use std::time::Duration;

use strata_engine::{Finding, Operation, ProviderError};
use strata_state::Action;

use crate::cluster::Cluster;
use crate::error::guard;
use crate::evidence::ClusterReview;
use crate::forecast::sends_config;
use crate::kinds;

/// What machines usually listen on: SSH, DNS, web servers, Kubernetes, Proxmox, Talos.
const PORTS: [u16; 9] = [22, 53, 80, 443, 3389, 6443, 8006, 8443, 50000];
const PATIENCE: Duration = Duration::from_secs(2);

/// In the plan: where etcd is to be bootstrapped, and where control planes are given an address that none of them knows yet.
pub(crate) async fn precondition(review: ClusterReview<'_>) -> Option<Finding> {
    let ClusterReview { cluster, operations, .. } = review;
    let begins = |one: &&Operation| {
        one.address.kind() == kinds::BOOTSTRAP && one.action == Action::Create && !review.etcd_runs
    };
    let takes = |one: &&Operation| {
        one.address.kind() == kinds::MACHINE
            && one.action == Action::Update
            && sends_config(one)
            && !knows(review)
    };
    let operation = operations.iter().find(begins).or_else(|| operations.iter().find(takes))?;
    let error = refuse_taken(cluster).await.err()?;
    let (message, hint) = (error.message, error.hint.unwrap_or_default());
    Some(Finding::precondition(operation, message, hint))
}

/// Some control plane that runs has the address in its configuration: whoever answers there is one of them.
fn knows(review: ClusterReview<'_>) -> bool {
    let Some(vip) = &review.cluster.options.vip else { return true };
    let quoted = |text: &str| {
        text.split(|c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':'))).any(|word| word == vip)
    };
    let seen = review.running().map(|(_, seen)| &seen.config);
    let mut control_planes = seen.filter(|config| config.is_control_plane() == Some(true));
    control_planes.any(|config| quoted(config.to_yaml().expose()))
}

/// Before etcd is bootstrapped no control plane has the shared address: who answers there is somebody else.
pub(crate) async fn refuse_taken(cluster: &Cluster) -> Result<(), ProviderError> {
    let Some(vip) = &cluster.options.vip else { return Ok(()) };
    let host = if vip.contains(':') { format!("[{vip}]") } else { vip.clone() };
    let asked = PORTS.map(|port| {
        let place = format!("{host}:{port}");
        async move { cluster.options.dial.answers(&place, PATIENCE).await.then_some(port) }
    });
    let Some(port) = futures::future::join_all(asked).await.into_iter().flatten().next() else {
        return Ok(());
    };
    let message = format!(
        "the shared address {vip} of `{}` is taken: another machine answers there, at port {port}",
        cluster.name()
    );
    Err(guard(message, "choose a `network.vip` that nobody has, or switch that machine off"))
}
