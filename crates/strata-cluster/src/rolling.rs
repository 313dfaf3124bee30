//! One node at a time: what is looked at before a node is disturbed, and what must be so again afterwards.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_kubernetes::{DrainError, DrainOptions, ObjectRef, Patience};
use strata_secret::SecretBytes;
use tokio::sync::MutexGuard;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, internal, kube, talos};
use crate::wait::{cut, go_on};

/// On a node that we cordoned, so that a run that died is told from a person who wants it so.
pub(crate) const CORDONED_BY: &str = "strata.dev/cordoned";
/// On a node that was told something that only a reboot brings about: the boot in which it was told.
const REBOOT_DUE: &str = "strata.dev/reboot-due";
const DRAIN: Duration = Duration::from_secs(10 * 60);

/// What a node is about to go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// Its Talos stays up.
    Light,
    /// It goes down and comes back.
    Restart,
    /// It goes for good.
    Leave,
}

impl Cluster {
    /// Waits for this node's turn, looks whether the others can do without it, and empties it. The turn lasts as long as the guard.
    pub(crate) async fn begin_turn(
        &self,
        node: &NodePlace,
        what: Disturbance,
        context: &dyn OperationContext,
    ) -> Result<MutexGuard<'_, ()>, ProviderError> {
        let turn = self.turn(context).await?;
        if !self.is_alive() {
            return Ok(turn);
        }
        if node.control_plane {
            let etcd = self.etcd().await?;
            match what {
                Disturbance::Light => {}
                Disturbance::Restart => etcd.may_pause(&node.name, self.options.allow_even)?,
                Disturbance::Leave => etcd.may_leave(&node.name)?,
            }
            self.copy_etcd(context).await?;
        } else if what == Disturbance::Restart {
            // Workers wait for each other by the lock; but nothing is disturbed while etcd is in trouble.
            let etcd = self.etcd().await?;
            if let Some(unwell) = etcd.unwell().first() {
                let message =
                    format!("`{}` is not disturbed: etcd's member on `{unwell}` is not well", node.name);
                return Err(guard(message, "bring the control plane back first"));
            }
        }
        if what != Disturbance::Light {
            self.drain(&node.name, context).await?;
        }
        Ok(turn)
    }

    /// Waits until nobody else is disturbed.
    pub(crate) async fn turn(
        &self,
        context: &dyn OperationContext,
    ) -> Result<MutexGuard<'_, ()>, ProviderError> {
        let turn = cut(context, "its turn", async { Ok(self.turn.lock().await) }).await;
        // Nothing was begun yet.
        turn.map_err(|error| ProviderError { nothing_done: true, ..error })
    }

    /// The node is well again and takes pods.
    pub(crate) async fn end_turn(
        &self,
        node: &NodePlace,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.wait_well(node, context).await?;
        if self.is_alive() { self.uncordon(&node.name, context).await } else { Ok(()) }
    }

    async fn drain(&self, name: &str, context: &dyn OperationContext) -> Result<(), ProviderError> {
        if self.kube().node(name).await.map_err(kube)?.is_none() {
            return Ok(());
        }
        context.before_write()?;
        context.progress("is drained");
        let cordon =
            json!({"metadata": {"annotations": {CORDONED_BY: "true"}}, "spec": {"unschedulable": true}});
        self.kube().patch(&node_reference(name), &cordon).await.map_err(kube)?;
        let options = DrainOptions::new(Patience::seconds(DRAIN.as_secs()));
        let before = || go_on(context, "the pods of the node to leave");
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
        if node.annotation(CORDONED_BY).is_none() {
            return Ok(());
        }
        context.before_write()?;
        let uncordon = json!({"metadata": {"annotations": {CORDONED_BY: null, REBOOT_DUE: null}}, "spec": {"unschedulable": null}});
        self.kube().patch(&node_reference(name), &uncordon).await.map(|_| ()).map_err(kube)
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
        context.before_write()?;
        let note = json!({"metadata": {"annotations": {REBOOT_DUE: boot}}});
        self.kube().patch(&node_reference(name), &note).await.map(|_| ()).map_err(kube)
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

    /// A copy of etcd, once in a run, before the first control plane is touched.
    pub(crate) async fn copy_etcd(&self, context: &dyn OperationContext) -> Result<(), ProviderError> {
        let Some(sink) = &self.options.snapshots else { return Ok(()) };
        if self.copied.load(Ordering::SeqCst) {
            return Ok(());
        }
        context.progress("a copy of etcd is made");
        let mut last = None;
        for node in self.control_planes() {
            let mut copy = Vec::new();
            match self.talos(&node.address)?.etcd_snapshot(&mut copy).await {
                Ok(snapshot) if snapshot.intact => {
                    let place = sink.keep(self.name(), SecretBytes::new(copy)).await?;
                    self.copied.store(true, Ordering::SeqCst);
                    context.progress(&format!("etcd was copied to {place}"));
                    return Ok(());
                }
                Ok(_) => {
                    last = Some(internal(format!("the copy of etcd from `{}` was cut short", node.name)))
                }
                Err(error) => last = Some(talos(error)),
            }
        }
        Err(last.unwrap_or_else(|| internal("there is no control plane to copy etcd from")))
    }
}

pub(crate) fn node_reference(name: &str) -> ObjectRef {
    ObjectRef::cluster("v1", "Node", name)
}
