//! One node at a time: what is looked at before a node is disturbed, and what must be so again afterwards.

use std::time::Duration;

use serde_json::json;
use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_kubernetes::{DrainError, DrainOptions, ObjectRef, Patience};
use tokio::sync::MutexGuard;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, kube, talos};
use crate::rollout::Slot;
use crate::wait::{cut, permit, permit_unless_stopped};

/// On a node that we cordoned, so that a run that died is told from a person who wants it so.
pub(crate) const CORDONED_BY: &str = "strata.dev/cordoned";
/// On a node that was told something that only a reboot brings about: the boot in which it was told.
pub(crate) const REBOOT_DUE: &str = "strata.dev/reboot-due";
const DRAIN: Duration = Duration::from_secs(10 * 60);

/// What a node is about to go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// Its Talos stays up.
    Light,
    /// It joins.
    Join,
    /// A part of Kubernetes on it becomes another version; its Talos stays up.
    Component,
    /// It should stay up, and may be away for a moment: its network or its disk is moved.
    Jolt,
    /// It goes down and comes back.
    Restart,
    /// The same, and it is no member of etcd: it takes no vote with it, and comes back as a member.
    Rejoin,
    /// It goes for good.
    Leave,
}

impl Cluster {
    /// Waits for the rollout slot, looks whether the others can do without it, and empties it. The slot is held as long as the guard.
    pub(crate) async fn enter_rollout_slot(
        &self,
        node: &NodePlace,
        what: Disturbance,
        context: &dyn OperationContext,
    ) -> Result<MutexGuard<'_, Slot>, ProviderError> {
        let mut slot = self.rollout_slot(context).await?;
        // An etcd that was lost when this run began may be back: then it is looked after again.
        if !self.is_alive() && self.options.bootstrapped && self.membership().await?.is_some() {
            self.now_alive();
        }
        if !self.is_alive() {
            return Ok(slot);
        }
        if what != Disturbance::Light {
            self.no_alarm(&node.name, what == Disturbance::Leave).await?;
        }
        if node.control_plane {
            let etcd = self.etcd().await?;
            match what {
                Disturbance::Light | Disturbance::Join | Disturbance::Component => {}
                // By now it may be a member again.
                Disturbance::Rejoin if etcd.of(&node.name).is_none() => {}
                Disturbance::Jolt | Disturbance::Restart | Disturbance::Rejoin => {
                    etcd.may_pause(&node.name, self.options.allow_even)?;
                }
                Disturbance::Leave => etcd.may_leave(&node.name)?,
            }
            self.snapshot_etcd(&mut slot, context).await?;
        } else if matches!(what, Disturbance::Jolt | Disturbance::Restart) {
            // Workers wait for each other by the lock; but nothing is disturbed while etcd is in trouble.
            let etcd = self.etcd().await?;
            if let Some(unhealthy) = etcd.unhealthy().first() {
                let message =
                    format!("`{}` is not disturbed: etcd's member on `{unhealthy}` is unhealthy", node.name);
                return Err(guard(message, "bring the control plane back first"));
            }
        }
        // A kubelet that is away ends no pods.
        let may_drain = what != Disturbance::Rejoin || self.kubelet_trouble(node).await?.is_none();
        if may_drain && matches!(what, Disturbance::Restart | Disturbance::Rejoin | Disturbance::Leave) {
            self.drain(&node.name, context).await?;
        }
        Ok(slot)
    }

    /// Waits until nobody else is disturbed.
    pub(crate) async fn rollout_slot(
        &self,
        context: &dyn OperationContext,
    ) -> Result<MutexGuard<'_, Slot>, ProviderError> {
        let slot =
            cut(context, "the rollout slot of the cluster", async { Ok(self.rollout.slot().await) }).await;
        // Nothing was begun yet.
        slot.map_err(|error| ProviderError { nothing_done: true, ..error })
    }

    /// The node is healthy again and takes pods.
    pub(crate) async fn leave_rollout_slot(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.wait_healthy(node, context).await?;
        if self.is_alive() { self.uncordon(&node.name, context).await } else { Ok(()) }
    }

    async fn drain(&self, name: &str, context: &dyn OperationContext) -> Result<(), ProviderError> {
        let Some(node) = self.kube().get(&node_reference(name)).await.map_err(kube)? else { return Ok(()) };
        context.progress("is drained");
        // Whoever cordoned it before wants it so: without our annotation it stays so afterwards.
        let cordoned = node.at("/spec/unschedulable").and_then(serde_json::Value::as_bool) == Some(true);
        if !cordoned || node.annotation(CORDONED_BY).is_some() {
            let cordon =
                json!({"metadata": {"annotations": {CORDONED_BY: "true"}}, "spec": {"unschedulable": true}});
            self.kube().patch(&permit(context)?, &node_reference(name), &cordon).await.map_err(kube)?;
        }
        let options = DrainOptions::new(Patience::seconds(DRAIN.as_secs()));
        let before = || permit_unless_stopped(context, "the pods of the node to leave");
        let drained =
            self.kube().drain(name, &options, &before, &|progress| context.progress(progress.seen)).await;
        drained.map(|_| ()).map_err(|error| {
            let hint = error.hint().map(str::to_owned);
            match error {
                DrainError::Stopped(error) => error,
                DrainError::Kube(error) => kube(error),
                DrainError::Blocked(_) => {
                    let mut own = ProviderError::new(ErrorClass::TaskFailed, error.to_string());
                    own.hint = hint;
                    own
                }
            }
        })
    }

    /// Lets pods onto a node again, if it was us who kept them off.
    pub(crate) async fn uncordon(
        &self,
        name: &str,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        let Some(node) = self.kube().get(&node_reference(name)).await.map_err(kube)? else { return Ok(()) };
        let (ours, due) = (node.annotation(CORDONED_BY).is_some(), node.annotation(REBOOT_DUE).is_some());
        if !ours && !due {
            return Ok(());
        }
        let mut uncordon = json!({"metadata": {"annotations": {CORDONED_BY: null, REBOOT_DUE: null}}});
        if ours {
            uncordon["spec"] = json!({"unschedulable": null});
        }
        self.kube().patch(&permit(context)?, &node_reference(name), &uncordon).await.map(|_| ()).map_err(kube)
    }

    /// Notes that a node is about to be told what only a reboot brings about.
    pub(crate) async fn note_reboot(
        &self,
        name: &str,
        boot: &str,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        if !self.is_alive() || self.kube().node(name).await.map_err(kube)?.is_none() {
            return Ok(());
        }
        let note = json!({"metadata": {"annotations": {REBOOT_DUE: boot}}});
        self.kube().patch(&permit(context)?, &node_reference(name), &note).await.map(|_| ()).map_err(kube)
    }

    /// The boot that a node is still in, though it was told what only a reboot brings about.
    pub(crate) async fn due_reboot(&self, node: &NodePlace) -> Result<Option<String>, ProviderError> {
        let found = self.kube().get(&node_reference(&node.name)).await.map_err(kube)?;
        let Some(noted) = found.as_ref().and_then(|found| found.annotation(REBOOT_DUE)) else {
            return Ok(None);
        };
        let boot = self.talos(&node.address)?.boot_id().await.map_err(talos)?;
        Ok((boot == noted).then_some(boot))
    }
}

pub(crate) fn node_reference(name: &str) -> ObjectRef {
    ObjectRef::cluster("v1", "Node", name)
}
