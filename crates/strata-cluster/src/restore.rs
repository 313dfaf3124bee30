//! Etcd begun again from a copy, where it was lost.

use strata_engine::{OperationContext, ProviderError};
use strata_secret::SecretBytes;
use strata_talos::api::{TalosClient, Wipe};

use crate::bootstrap::is_early;
use crate::cluster::{Cluster, NodePlace};
use crate::error::talos;
use crate::machine::{is_passing, settled, wait_reboot, wiped};
use crate::wait::{Seen, until, until_done};

/// What is left of an etcd without a majority goes: beside the one that is begun now it would be a second one. Only its data go;
/// the machine keeps its configuration.
pub(crate) async fn clear_remains(
    cluster: &Cluster,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    for node in cluster.control_planes() {
        let client = cluster.talos(&node.address)?;
        if !has_remains(&client).await? {
            continue;
        }
        let boot = client.boot_id().await.map_err(talos)?;
        let doing = format!("what `{}` has left of the lost etcd is wiped", node.name);
        wiped(&client, Wipe::Partitions(vec!["EPHEMERAL".to_owned()]), &doing, context).await?;
        wait_reboot(cluster, &node, &boot, context).await?;
        let waiting_for = format!("`{}` to be up again", node.name);
        until(context, &waiting_for, cluster.options.deadlines.boot, || settled(cluster, &node)).await?;
    }
    Ok(())
}

/// A control plane without data prepares to join, and never gets further. One that was told to leave has nothing either.
async fn has_remains(client: &TalosClient) -> Result<bool, ProviderError> {
    let services = client.services().await.map_err(talos)?;
    let etcd = services.iter().find(|service| service.id == "etcd");
    Ok(etcd.is_some_and(|etcd| matches!(etcd.state.as_str(), "Running" | "Failed")))
}

/// Gives the copy to the first control plane and begins etcd from it. The others then join by themselves.
pub(crate) async fn from_copy(
    cluster: &Cluster,
    first: &NodePlace,
    copy: &SecretBytes,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let waiting_for = format!("`{}` to begin etcd from the copy", first.name);
    until_done(context, &waiting_for, cluster.options.deadlines.join, || async {
        context.before_write()?;
        let client = cluster.talos(&first.address)?;
        context.progress(&format!("the copy of etcd goes to `{}`", first.name));
        let uploaded = client.etcd_recover(std::io::Cursor::new(copy.expose().to_vec())).await;
        // The node forgets an upload when it reboots: both are one step, done again from its start.
        let begun = match uploaded {
            Ok(()) => client.bootstrap_recovered(false).await,
            Err(error) => Err(error),
        };
        match begun {
            Ok(()) => Ok(Seen::Done(())),
            // A lost answer: it has data now.
            Err(error) if error.is_already_exists() => Ok(Seen::Done(())),
            Err(error) if is_passing(&error) || is_early(&error) => {
                let runs = client.etcd_status().await.is_ok();
                Ok(if runs { Seen::Done(()) } else { Seen::NotYet(error.to_string()) })
            }
            Err(error) => Err(talos(error)),
        }
    })
    .await
}
