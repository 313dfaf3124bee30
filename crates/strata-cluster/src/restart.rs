//! Reboots: asked for until they happen. A request that got lost is sent again; one that arrived shows in what the node does.

use std::sync::atomic::{AtomicBool, Ordering};

use strata_engine::{ErrorClass, Operation, OperationContext, ProviderError};
use strata_talos_client::{ApplyMode, MachineStage, RebootMode, TalosClient, Upgraded, Wipe};

use crate::cluster::{Cluster, NodePlace};
use crate::config_write::{Answer, ConfigWrite};
use crate::error::{internal, talos};
use crate::machine::{is_passing, text, wiped};
use crate::node::stage;
use crate::wait::{Seen, cut, permit, until_done};

/// A node before its reboot, and where it may answer after it.
pub(crate) struct RebootingNode<'n> {
    pub(crate) node: &'n NodePlace,
    /// Where it was last reached; its address may change with the reboot.
    pub(crate) reached: &'n NodePlace,
    /// The boot that it is in.
    pub(crate) boot: &'n str,
}

/// What a node that should reboot does.
pub(crate) enum Now {
    /// It is in another boot.
    Other,
    /// It is up, in the boot that it was in, and answers here.
    Waits(String),
    /// On its way.
    Busy(String),
}

impl RebootingNode<'_> {
    pub(crate) async fn now(&self, cluster: &Cluster) -> Result<Now, ProviderError> {
        let mut why = String::new();
        for address in [&self.reached.address, &self.node.address] {
            // After a reboot the old connection leads nowhere.
            cluster.hang_up(address);
            let client = cluster.talos(address)?;
            let seen = match client.boot_id().await {
                Ok(boot) if boot != self.boot => {
                    cluster.answers_at(&self.node.name, address);
                    return Ok(Now::Other);
                }
                Ok(_) => client.machine_status().await,
                Err(error) => Err(error),
            };
            match seen {
                // Without etcd a control plane is always booting.
                Ok(Some(status)) if matches!(status.stage, MachineStage::Running | MachineStage::Booting) => {
                    return Ok(Now::Waits(address.clone()));
                }
                Ok(Some(status)) => return Ok(Now::Busy(format!("it is {}", stage(status.stage)))),
                Ok(None) => return Ok(Now::Busy("it does not say what it does".to_owned())),
                Err(error) if is_passing(&error) => why = error.to_string(),
                Err(error) => return Err(talos(error)),
            }
        }
        Ok(Now::Busy(why))
    }

    /// Asks it whenever it waits, until it is in another boot or says itself that it is done.
    async fn asked<F>(
        &self,
        cluster: &Cluster,
        doing: &str,
        context: &dyn OperationContext,
        ask: impl Fn(String) -> F,
    ) -> Result<(), ProviderError>
    where
        F: Future<Output = Result<Seen<()>, ProviderError>>,
    {
        let within = cluster.options.deadlines.reboot;
        until_done(context, &format!("{doing} of `{}`", self.node.name), within, || async {
            match cut(context, doing, self.now(cluster)).await? {
                Now::Other => Ok(Seen::Done(())),
                Now::Busy(what) => Ok(Seen::NotYet(what)),
                Now::Waits(address) => ask(address).await,
            }
        })
        .await
    }

    /// Reboots it.
    pub(crate) async fn rebooted(
        &self,
        cluster: &Cluster,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.asked(cluster, "the reboot", context, |address: String| async move {
            reboot(&cluster.talos(&address)?, context).await.map(Seen::NotYet)
        })
        .await
    }

    /// Has it wipe itself and reboot, and it keeps its configuration.
    pub(crate) async fn wiped(
        &self,
        cluster: &Cluster,
        wipe: &Wipe,
        doing: &str,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.asked(cluster, "the reset", context, |address: String| async move {
            wiped(&cluster.talos(&address)?, wipe.clone(), doing, context).await?;
            Ok(Seen::NotYet("it goes down".to_owned()))
        })
        .await
    }

    /// Gives it a configuration, up to 1.13: it reboots by itself if it has to.
    pub(crate) async fn apply_config(
        &self,
        cluster: &Cluster,
        write: &ConfigWrite<'_>,
        context: &dyn OperationContext,
    ) -> Result<(), ProviderError> {
        self.asked(cluster, "the reboot", context, |address: String| async move {
            let answer = write.send(cluster, &address, ApplyMode::Auto, context).await?;
            Ok(match answer {
                Answer::Applied(applied) if applied.reboots => Seen::NotYet("it goes down".to_owned()),
                Answer::Applied(_) => Seen::Done(()),
                Answer::Lost(error) => Seen::NotYet(error.message),
            })
        })
        .await
    }
}

async fn reboot(client: &TalosClient, context: &dyn OperationContext) -> Result<String, ProviderError> {
    let permit = permit(context)?;
    context.progress("reboots");
    match client.reboot(&permit, RebootMode::Default).await {
        Ok(()) => Ok("it goes down".to_owned()),
        Err(error) if is_passing(&error) => Ok(error.to_string()),
        Err(error) => Err(talos(error)),
    }
}

/// Another image of Talos, and the reboot into it: another version, or another schematic of the same.
pub(crate) async fn upgrade(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let wanted = text(&operation.spec, "version").unwrap_or_default();
    let image = text(&operation.spec, "installer")
        .ok_or_else(|| internal(format!("`{}` has no image to be upgraded with", node.name)))?;
    let client = cluster.talos(&node.address)?;
    if client.version().await.map_err(talos)?.tag == wanted
        && cluster.installed(&node.address).await?.is_from(image)
    {
        return Ok(());
    }
    let boot = client.boot_id().await.map_err(talos)?;
    let rebooting = RebootingNode { node, reached: node, boot: &boot };
    // From 1.13 on the node only installs it, and we reboot.
    let installed = &AtomicBool::new(false);
    rebooting
        .asked(cluster, "the upgrade", context, |address: String| async move {
            let client = cluster.talos(&address)?;
            if !installed.load(Ordering::SeqCst) {
                let permit = permit(context)?;
                context.progress(&format!("is upgraded to {wanted} by `{image}`"));
                match client.upgrade(&permit, image, &mut |line| context.progress(line)).await {
                    Ok(Upgraded::NeedsReboot) => installed.store(true, Ordering::SeqCst),
                    Ok(Upgraded::Rebooting) => return Ok(Seen::NotYet("it goes down".to_owned())),
                    Err(error) if is_passing(&error) => return Ok(Seen::NotYet(error.to_string())),
                    Err(error) => return Err(talos(error)),
                }
            }
            reboot(&client, context).await.map(Seen::NotYet)
        })
        .await?;
    let version = cluster.talos(&node.address)?.version().await.map_err(talos)?.tag;
    let installed = cluster.installed(&node.address).await?;
    if version == wanted && !installed.is_from(image) {
        let message = format!("`{}` rebooted, and was not installed from `{image}`", node.name);
        return Err(ProviderError::new(ErrorClass::TaskFailed, message)
            .hint("the console of the node says why; `strata apply` tries again"));
    }
    if version == wanted {
        return Ok(());
    }
    Err(ProviderError::new(
        ErrorClass::TaskFailed,
        format!(
            "`{}` rebooted into {version}, not into {wanted}: Talos went back to the version before",
            node.name
        ),
    )
    .hint("the console of the node says why; `strata apply` tries again"))
}
