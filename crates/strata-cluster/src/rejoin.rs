//! A control plane that runs and is no member of etcd. One that left and kept nothing joins when it boots. One that kept the data of a member that
//! etcd removed never does: etcd takes no member back, and Talos starts etcd with whatever data it finds. That data goes first.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strata_engine::{ErrorClass, Finding, Operation, OperationContext, ProviderError};
use strata_state::Action;
use strata_talos_client::Wipe;

use crate::cluster::{Cluster, NodePlace};
use crate::error::talos;
use crate::etcd::Membership;
use crate::evidence::ClusterReview;
use crate::kinds;
use crate::machine::is_passing;
use crate::restart::RebootingNode;
use crate::survivors::Holding;

/// Of a control plane whose member left: it joins when it boots.
pub(crate) const LEFT: &str = "left_etcd";
/// Of a control plane that keeps data of a member that etcd removed.
pub(crate) const STALE: &str = "stale_etcd_data";
/// A member that joins is in the list before it has data, or a moment after.
const JOINING: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// While a node is waited for.
const NEXT_LOOK: Duration = Duration::from_secs(30);

/// What keeps a control plane that runs from being a member of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// It is a member, or on its way; or nobody knows.
    No,
    /// Its etcd has stopped, and has no data.
    Left,
    /// It has data of a member that etcd removed.
    Stale,
}

/// When a control plane that is waited for is looked at for data with which it can never join.
pub(crate) struct OutsideEtcd(Mutex<Instant>);

impl Default for OutsideEtcd {
    fn default() -> Self {
        Self(Mutex::new(Instant::now() + JOINING))
    }
}

impl OutsideEtcd {
    pub(crate) fn is_due(&self) -> bool {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = *next <= Instant::now();
        if due {
            *next = Instant::now() + NEXT_LOOK;
        }
        due
    }
}

/// Whether an operation has a control plane join that is no member: it has no vote to lose.
pub(crate) fn is_rejoin(operation: &Operation) -> bool {
    [LEFT, STALE].iter().any(|field| operation.touches(field))
}

impl Cluster {
    /// What keeps a control plane that runs from being a member of an etcd that has a majority.
    pub(crate) async fn outside_etcd(
        &self,
        node: &NodePlace,
        etcd: &Membership,
    ) -> Result<Outside, ProviderError> {
        if !etcd.certainly_without(&node.name) {
            return Ok(Outside::No);
        }
        if self.keeps_stale_data(node).await? {
            return Ok(Outside::Stale);
        }
        match self.talos(&node.address)?.services().await {
            Ok(services) => {
                let etcd = services.iter().find(|service| service.id == "etcd");
                let stopped =
                    etcd.is_some_and(|etcd| matches!(etcd.state.as_str(), "Finished" | "Failed" | "Skipped"));
                Ok(if stopped { Outside::Left } else { Outside::No })
            }
            Err(error) if is_passing(&error) => Ok(Outside::No),
            Err(error) => Err(talos(error)),
        }
    }

    /// Whether it has data, and etcd goes on not knowing it for longer than a member needs to join.
    async fn keeps_stale_data(&self, node: &NodePlace) -> Result<bool, ProviderError> {
        let begun = Instant::now();
        loop {
            if self.holding(node).await? != Holding::Data || self.follows_a_leader(node).await? {
                return Ok(false);
            }
            let etcd = self.membership().await?;
            if etcd.is_none_or(|etcd| !etcd.certainly_without(&node.name)) {
                return Ok(false);
            }
            if begun.elapsed() >= JOINING {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Its own etcd has a leader: then it is a member of one, whatever others say.
    async fn follows_a_leader(&self, node: &NodePlace) -> Result<bool, ProviderError> {
        let status = self.talos(&node.address)?.etcd_status().await;
        Ok(status.is_ok_and(|status| status.leader != 0))
    }

    /// Nobody waits for a control plane that can never join; and nothing is wiped that no plan has shown.
    pub(crate) async fn refuse_stale_data(&self, node: &NodePlace) -> Result<(), ProviderError> {
        let Some(etcd) = self.membership().await? else { return Ok(()) };
        if self.outside_etcd(node, &etcd).await? != Outside::Stale {
            return Ok(());
        }
        let message = format!(
            "`{}` keeps the data of a member that etcd removed, and cannot join with them",
            node.name
        );
        Err(ProviderError::new(ErrorClass::Conflict, message)
            .hint("plan again: the plan shows that its data partition is wiped, and `strata apply` lets it join as a new member"))
    }

    /// Saves and wipes what a control plane keeps of a member that etcd removed. It joins as a new one when it is up again. Looked at once more before: a run
    /// that died may have done it.
    pub(crate) async fn clear_stale_data(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        if self.outside_etcd(node, &self.etcd().await?).await? != Outside::Stale {
            return Ok(());
        }
        self.keep_survivor(node, context).await?;
        let boot = self.talos(&node.address)?.boot_id().await.map_err(talos)?;
        let wipe = Wipe::Partitions(vec!["EPHEMERAL".to_owned()]);
        let doing = "its data partition is wiped: etcd removed its member";
        RebootingNode { node, reached: node, boot: &boot }.wiped(self, &wipe, doing, context).await
    }
}

/// What the plan says of a wipe beside the restart; and nothing that is protected is wiped.
pub(crate) fn findings(review: ClusterReview<'_>) -> Vec<Finding> {
    let wiping = |one: &&Operation| {
        one.address.kind() == kinds::MACHINE && one.action == Action::Update && one.touches(STALE)
    };
    let found = review.operations.iter().filter(wiping).map(|operation| {
        let name = operation.address.name();
        if review.cluster.options.protected.contains(name) {
            return Finding::precondition(
                operation,
                format!("`{name}` is protected, and its data partition would be wiped: it keeps the data of a member that etcd removed, and cannot join with them"),
                "set `protect: false` of it and apply: its etcd database is saved before; then it can be protected again",
            );
        }
        Finding::remark(
            operation,
            "its data partition (EPHEMERAL) is wiped, everything below `/var`: it keeps the data of a member that etcd removed, and cannot join with them. Its etcd database is saved to the snapshots before",
        )
    });
    found.collect()
}
