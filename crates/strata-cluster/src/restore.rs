//! Etcd bootstrapped again where it was lost: from a snapshot, or with nothing in it.

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_secret::SecretBytes;
use strata_talos_client::{Wipe, is_intact_snapshot};

use crate::bootstrap::is_early;
use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, talos};
use crate::machine::{is_passing, runs_from_disk};
use crate::restart::RebootingNode;
use crate::survivors::Survey;
use crate::wait::{Seen, permit, until, until_done};

/// Whether those that hold data find a majority by themselves: waited for, since a control plane that was just started needs a while.
pub(crate) async fn recovers(
    cluster: &Cluster,
    survey: &Survey,
    context: &dyn OperationContext,
) -> Result<bool, ProviderError> {
    if survey.survivors.is_empty() {
        return Ok(false);
    }
    let databases = cluster.databases(&survey.survivors).await;
    if !survey.may_recover(&databases, cluster.control_planes().len()) {
        return Ok(false);
    }
    let waited = until(context, "etcd to have a leader", cluster.options.deadlines.join, || async {
        Ok(match cluster.membership().await? {
            Some(_) => Seen::Done(()),
            None => Seen::NotYet(format!("{} hold its data", survey.names())),
        })
    });
    match waited.await {
        Ok(()) => Ok(true),
        Err(error) if error.class == ErrorClass::Unreachable => Err(stuck(cluster, survey)),
        Err(error) => Err(error),
    }
}

/// There are enough of them, and they do not come to an agreement.
fn stuck(cluster: &Cluster, survey: &Survey) -> ProviderError {
    let message = format!(
        "a majority of the etcd of `{}` is there, on {}, and has no leader: nothing is wiped",
        cluster.name(),
        survey.names()
    );
    let stack = &cluster.options.stack;
    guard(
        message,
        format!(
            "`strata talos health {stack}` shows every node; `strata talos snapshot {stack}` saves what they hold; data that are broken are wiped by hand: `talosctl reset --graceful=false --reboot --system-labels-to-wipe EPHEMERAL`"
        ),
    )
}

/// Etcd came back while this run was on its way to begin it again.
pub(crate) fn recovered(cluster: &Cluster) -> ProviderError {
    guard(
        format!(
            "the etcd of `{}` runs again and has a leader: nothing was wiped, and no snapshot was used",
            cluster.name()
        ),
        "nothing has to be restored: `strata apply` goes on with what is left",
    )
}

/// What is left of an etcd without a majority goes: beside the one that is bootstrapped now it would be a second one. Each database is
/// saved first, and etcd is asked again before each wipe. Only its data go; the machine keeps its configuration.
pub(crate) async fn clear_remains(
    cluster: &Cluster,
    survey: &Survey,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    for node in &survey.survivors {
        cluster.keep_survivor(node, context).await?;
    }
    for node in &survey.survivors {
        if cluster.membership().await?.is_some() {
            return Err(recovered(cluster));
        }
        let boot = cluster.talos(&node.address)?.boot_id().await.map_err(talos)?;
        let doing = format!("what `{}` has left of the lost etcd is wiped", node.name);
        let wipe = Wipe::Partitions(vec!["EPHEMERAL".to_owned()]);
        RebootingNode { node, reached: node, boot: &boot }.wiped(cluster, &wipe, &doing, context).await?;
        let waiting_for = format!("`{}` to be up again", node.name);
        until(context, &waiting_for, cluster.options.deadlines.boot, || runs_from_disk(cluster, node))
            .await?;
    }
    Ok(())
}

/// Gives the snapshot to the first control plane and begins etcd from it. The others then join by themselves.
pub(crate) async fn from_copy(
    cluster: &Cluster,
    first: &NodePlace,
    copy: &SecretBytes,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let waiting_for = format!("`{}` to restore etcd from the snapshot", first.name);
    // The file of a member has no checksum, which only etcd's own snapshots have.
    let unhashed = !is_intact_snapshot(copy.expose());
    until_done(context, &waiting_for, cluster.options.deadlines.join, || async {
        let (upload, client) = (permit(context)?, cluster.talos(&first.address)?);
        context.progress(&format!("the etcd snapshot goes to `{}`", first.name));
        let uploaded = client.etcd_recover(&upload, std::io::Cursor::new(copy.expose().to_vec())).await;
        // The node forgets an upload when it reboots: both are one step, done again from its start.
        let begun = match uploaded {
            Ok(()) => client.bootstrap_recovered(&permit(context)?, unhashed).await,
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
