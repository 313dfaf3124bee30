//! A node goes to another address: found where it is, told where it goes, and waited for there.
//!
//! Talos has the addresses of its configuration and those of the platform, which are on the drive that Proxmox makes when a VM
//! starts. While the two differ a node has both, so both are written before the one restart that takes them up.

use strata_engine::{ErrorClass, Operation, OperationContext, ProviderError};
use strata_talos::RebootEffect;
use strata_talos_client::ApplyMode;

use crate::cluster::{Cluster, NodePlace};
use crate::config_write::{Answer, ConfigWrite};
use crate::evidence::planned_write;
use crate::forecast::{differs, effect};
use crate::node::{Contact, Running};
use crate::wait::{Seen, cut, until, until_done};

/// Whether an operation on a VM changes the drive that its addresses are on.
pub(crate) fn rewrites_drive(operation: &Operation) -> bool {
    operation.touches("cloudinit")
}

impl Cluster {
    /// Where a node of ours answers with its configuration: where it was last, or where it should be.
    pub(crate) async fn locate(
        &self,
        node: &NodePlace,
    ) -> Result<Option<(NodePlace, Box<Running>)>, ProviderError> {
        let mut places = vec![self.now(node), node.clone()];
        places.dedup_by(|one, other| one.address == other.address);
        for place in places {
            if let Contact::Running(running) = self.contact(&place.address).await? {
                self.answers_at(&node.name, &place.address);
                return Ok(Some((place, running)));
            }
        }
        Ok(None)
    }

    /// The node as the source has it.
    pub(crate) fn wanted(&self, node: &NodePlace) -> NodePlace {
        let wanted = self.options.nodes.iter().find(|wanted| wanted.name == node.name);
        wanted.unwrap_or(node).clone()
    }
}

/// Gives a node its new address before its VM restarts with the new drive, so that it comes up with the new one only. What needs
/// a reboot of its own is left to the step of the machine.
pub(crate) async fn configure_ahead(
    cluster: &Cluster,
    node: &NodePlace,
    write: &ConfigWrite<'_>,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let Some((reached, running)) = cluster.locate(node).await? else { return Ok(()) };
    write.refuse_changed(&running.config)?;
    let reboots = effect(&running.version, &running.config, write.wanted) != RebootEffect::NoReboot;
    if reboots || !differs(&running.config, write.wanted) {
        return Ok(());
    }
    context.progress("sending its new configuration");
    // It may have gone to the other address with the answer on its way.
    write.send(cluster, &reached.address, ApplyMode::NoReboot, context).await.map(Answer::whatever_came)
}

/// Waits until a node answers at one of its addresses, and says at which.
pub(crate) async fn comes_up(
    cluster: &Cluster,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<NodePlace, ProviderError> {
    until(context, &format!("Talos on `{}`", node.name), cluster.options.deadlines.boot, || async {
        cluster.hang_up(&node.address);
        cluster.hang_up(&cluster.now(node).address);
        Ok(match cluster.locate(node).await? {
            Some((place, _)) => Seen::Done(place),
            None => Seen::NotYet(format!("nobody answers at {}", node.address)),
        })
    })
    .await
}

/// Waits until a node that was told to has come to its address. Where a request got lost it is told again.
pub(crate) async fn wait_for_address(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    from: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let waiting_for = format!("`{}` at {}", node.name, node.address);
    let arrived = until_done(context, &waiting_for, cluster.options.deadlines.join, || async {
        cluster.hang_up(&node.address);
        match cut(context, &waiting_for, cluster.contact(&node.address)).await? {
            Contact::Running(_) => {
                cluster.answers_at(&node.name, &node.address);
                Ok(Seen::Done(()))
            }
            Contact::Unreachable(why) => {
                match cut(context, &waiting_for, cluster.contact(&from.address)).await? {
                    Contact::Running(running) => {
                        configure_again(cluster, operation, from, &running, context).await?;
                        Ok(Seen::NotYet(format!("it still answers at {}", from.address)))
                    }
                    _ => Ok(Seen::NotYet(why)),
                }
            }
            Contact::Maintenance => {
                Ok(Seen::NotYet("a machine without a configuration answers there".to_owned()))
            }
            Contact::Unmanaged(who) => Ok(Seen::NotYet(who)),
        }
    });
    arrived.await.map_err(|error| match (&node.lease, error.class) {
        (Some(lease), ErrorClass::Unreachable) => {
            error.hint(reservation(&node.address, lease.mac.as_deref()))
        }
        _ => error,
    })
}

async fn configure_again(
    cluster: &Cluster,
    operation: &Operation,
    from: &NodePlace,
    running: &Running,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let write = planned_write(operation)?;
    if !differs(&running.config, write.wanted) {
        return Ok(());
    }
    write.send(cluster, &from.address, ApplyMode::Auto, context).await.map(Answer::whatever_came)
}

/// What a person has to do on the DHCP server.
pub(crate) fn reservation(address: &str, mac: Option<&str>) -> String {
    let card = mac.map_or_else(|| "the card of the machine".to_owned(), |mac| format!("`{mac}`"));
    format!(
        "its address comes from DHCP: reserve {address} for {card}, or set the `mac` that it is reserved for; then `strata apply` goes on from here"
    )
}
