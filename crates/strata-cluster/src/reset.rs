//! A node removed from the cluster and wiped, because somebody said so.

use std::sync::atomic::{AtomicBool, Ordering};

use strata_engine::{ErrorClass, OperationContext, ProviderError};
use strata_talos_client::Wipe;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, talos};
use crate::machine::{delete_node, leave_etcd, wiped};
use crate::node::Contact;
use crate::restart::{Now, RebootingNode};
use crate::rolling::Disturbance;
use crate::survivors::Holding;
use crate::wait::{Seen, cut, until_done};

/// What a node is after its reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterReset {
    /// It waits for a configuration.
    Maintenance,
    /// It kept its configuration and is back.
    Running,
    /// It does not answer: nothing is left on its disk that could.
    Unreachable,
}

/// Whether a node could be reset now; says why not. Asked again under the lock when it is.
pub async fn check_reset(cluster: &Cluster, name: &str) -> Result<(), ProviderError> {
    let node = place(cluster, name)?;
    match cluster.contact(&node.address).await? {
        Contact::Running(_) => {}
        Contact::Maintenance => {
            let message = format!("`{name}` has nothing to reset: it waits for a configuration");
            return Err(guard(message, "`strata apply` configures it"));
        }
        Contact::Unmanaged(who) => return Err(guard(who, "only nodes of this cluster are reset")),
        Contact::Unreachable(why) => {
            let message = format!("`{name}` does not answer at {}: {why}", node.address);
            return Err(ProviderError::new(ErrorClass::Unreachable, message).hint(
                "a VM that is lost for good is deleted in Proxmox; `strata apply` then makes it again",
            ));
        }
    }
    if node.control_plane {
        // A state that was lost says nothing about etcd: whoever has it does.
        if !cluster.is_alive() && cluster.membership().await?.is_some() {
            cluster.now_alive();
        }
        match cluster.is_alive() {
            true => cluster.etcd().await?.may_leave(name)?,
            false => holds_nothing(cluster, &node).await?,
        }
    }
    Ok(())
}

/// Without an etcd that it could leave, a control plane that holds data of one may be the last that does.
async fn holds_nothing(cluster: &Cluster, node: &NodePlace) -> Result<(), ProviderError> {
    let why = match cluster.holding(node).await? {
        Holding::Nothing => return Ok(()),
        Holding::Data => format!("`{}` holds data of an etcd without a majority", node.name),
        Holding::Unknown(why) | Holding::Refused(why) => {
            format!("whether `{}` holds data of etcd is not known: {why}", node.name)
        }
    };
    let stack = &cluster.options.stack;
    let hint = format!(
        "bring the other control planes back; where they are lost for good, `strata talos restore {stack} --snapshot FILE` saves what it holds before it is wiped"
    );
    Err(guard(format!("{why}: a reset could lose the last of it"), hint))
}

pub(crate) fn place(cluster: &Cluster, name: &str) -> Result<crate::cluster::NodePlace, ProviderError> {
    cluster.place(name).ok_or_else(|| {
        let names: Vec<String> = cluster.places().into_iter().map(|node| node.name).collect();
        ProviderError::new(ErrorClass::BadInput, format!("`{}` has no node `{name}`", cluster.name()))
            .hint(format!("there are: {}", names.join(", ")))
    })
}

/// The first half of a reset: drains the node and takes it out of etcd and Kubernetes.
pub async fn remove_for_reset(
    cluster: &Cluster,
    name: &str,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    check_reset(cluster, name).await?;
    let node = &place(cluster, name)?;
    let _slot = cluster.enter_rollout_slot(node, Disturbance::Leave, context).await?;
    if !cluster.is_alive() {
        return Ok(());
    }
    if node.control_plane {
        leave_etcd(cluster, node, context).await?;
    }
    delete_node(cluster, node, context).await
}

/// The second half: wipes what is said of a node that is no part of its cluster any more.
pub async fn wipe_node(
    cluster: &Cluster,
    name: &str,
    wipe: Wipe,
    context: &dyn OperationContext,
) -> Result<AfterReset, ProviderError> {
    let node = &place(cluster, name)?;
    let _slot = cluster.rollout_slot(context).await?;
    let after = wipe_until_seen(cluster, node, &wipe, context).await?;
    if after == AfterReset::Running {
        cluster.wait_healthy(node, context).await?;
    }
    Ok(after)
}

/// Has a node wipe itself until it shows that it did. A request that got lost is sent again: an answer, or none, proves nothing.
pub(crate) async fn wipe_until_seen(
    cluster: &Cluster,
    node: &NodePlace,
    wipe: &Wipe,
    context: &dyn OperationContext,
) -> Result<AfterReset, ProviderError> {
    let whole_disk = !matches!(wipe, Wipe::Partitions(_));
    let boot = cluster.talos(&node.address)?.boot_id().await.map_err(talos)?;
    let (rebooting, asked) = (RebootingNode { node, reached: node, boot: &boot }, AtomicBool::new(false));
    let (doing, within) = (format!("the reset of `{}`", node.name), cluster.options.deadlines.reboot);
    until_done(context, &doing, within, || async {
        cluster.hang_up(&node.address);
        Ok(match cut(context, &doing, cluster.contact(&node.address)).await? {
            Contact::Maintenance => Seen::Done(AfterReset::Maintenance),
            Contact::Unreachable(_) if whole_disk && asked.load(Ordering::SeqCst) => {
                Seen::Done(AfterReset::Unreachable)
            }
            Contact::Unreachable(why) | Contact::Unmanaged(why) => Seen::NotYet(why),
            Contact::Running(_) => match cut(context, &doing, rebooting.now(cluster)).await? {
                Now::Other => Seen::Done(AfterReset::Running),
                Now::Busy(what) => Seen::NotYet(what),
                Now::Waits(address) => {
                    asked.store(true, Ordering::SeqCst);
                    wiped(&cluster.talos(&address)?, wipe.clone(), "is reset", context).await?;
                    Seen::NotYet("it goes down".to_owned())
                }
            },
        })
    })
    .await
}
