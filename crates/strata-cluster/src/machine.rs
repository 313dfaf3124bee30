//! The life of a node's Talos: configured, changed, upgraded, removed from the cluster.

use std::sync::atomic::{AtomicBool, Ordering};

use strata_engine::{ErrorClass, Operation, OperationContext, Outcome, ProviderError};
use strata_resource::{Spec, Value};
use strata_state::Action;
use strata_talos::{Contract, RebootEffect};
use strata_talos_client::{ApplyMode, MachineStage, Reset, TalosClient, TalosError, Wipe};

use crate::cluster::{Cluster, NodePlace};
use crate::config_write::{Answer, send_first};
use crate::error::{guard, internal, kube, talos};
use crate::evidence::{planned_config, planned_write};
use crate::forecast::{differs, effect, sends_config};
use crate::moving;
use crate::node::{Contact, Running, stage};
use crate::rejoin::{LEFT, STALE, is_rejoin};
use crate::reset::{AfterReset, wipe_until_seen};
use crate::restart::{self, RebootingNode};
use crate::rolling::Disturbance;
use crate::wait::{Seen, cut, permit, permit_unless_stopped, until_done};

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    let node = place(cluster, operation)?;
    match operation.action {
        Action::Create => create(cluster, operation, &node, context).await?,
        Action::Update => update(cluster, operation, &node, context).await?,
        Action::Delete if cluster.options.ending => {
            // With the whole cluster nobody has to be asked; but keys do not stay behind on metal.
            if !operation.spec.contains_key("vm") {
                match cluster.contact(&node.address).await? {
                    Contact::Running(_) => reset(cluster, &node, context).await?,
                    Contact::Unreachable(why) => return Err(keeps_keys(cluster, &node, &why)),
                    Contact::Maintenance | Contact::Unmanaged(_) => {}
                }
            }
        }
        Action::Delete => delete(cluster, operation, &node, context).await?,
    }
    Ok(Outcome::default())
}

pub(crate) fn text<'s>(spec: &'s Spec, field: &str) -> Option<&'s str> {
    spec.get(field).and_then(Value::as_text)
}

/// The node as the operation knows it.
fn place(cluster: &Cluster, operation: &Operation) -> Result<NodePlace, ProviderError> {
    let name = operation.address.name();
    let known = cluster.place(name);
    let address = text(&operation.spec, "address").or(known.as_ref().map(|node| node.address.as_str()));
    let address = address.ok_or_else(|| internal(format!("`{name}` has no address")))?;
    let asked = cluster.options.nodes.iter().find(|node| node.name == name);
    Ok(NodePlace {
        name: name.to_owned(),
        address: address.to_owned(),
        control_plane: text(&operation.spec, "role") == Some("controlplane"),
        lease: asked.and_then(|node| node.lease.clone()),
        pin: asked.and_then(|node| node.pin),
    })
}

async fn create(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    // Joins happen one after the other, and only into a cluster that is healthy.
    let slot = match cluster.is_alive() {
        true => Some(cluster.enter_rollout_slot(node, Disturbance::Join, context).await?),
        false => None,
    };
    let wanted = planned_config(operation)?;
    let answered = AtomicBool::new(false);
    let waiting_for = format!("Talos at {}", node.address);
    let told = until_done(context, &waiting_for, cluster.options.deadlines.boot, || async {
        let contact = cut(context, &waiting_for, cluster.contact(&node.address)).await?;
        answered.fetch_or(!matches!(contact, Contact::Unreachable(_)), Ordering::SeqCst);
        match contact {
            Contact::Running(running) if differs(&running.config, wanted) => Err(other_config(node)),
            Contact::Running(_) => runs_from_disk(cluster, node).await,
            Contact::Maintenance => {
                // Only now is it certain that nothing is on its disk: while it is unreachable, it may be a member that reboots.
                if cluster.is_alive() {
                    forget_former(cluster, operation, node, context).await?;
                }
                Ok(Seen::NotYet(match send_first(cluster, &node.address, wanted, context).await? {
                    Answer::Applied(_) => "it installs itself".to_owned(),
                    Answer::Lost(error) => error.message,
                }))
            }
            Contact::Unmanaged(who) => {
                Err(guard(who, "give the node another address, or reset that machine by hand"))
            }
            Contact::Unreachable(_)
                if !node.control_plane && cluster.has_no_control_plane(&operation.address, context) =>
            {
                // After a stop none is begun any more, which is no failure.
                permit_unless_stopped(context, &waiting_for)?;
                let message =
                    format!("`{}` gets its certificate from a control plane, and none came up", node.name);
                Err(ProviderError::new(ErrorClass::Unreachable, message)
                    .hint("`strata apply` goes on once a control plane does"))
            }
            Contact::Unreachable(why) => Ok(Seen::NotYet(why)),
        }
    })
    .await;
    told.map_err(|error| match error.class {
        ErrorClass::Unreachable if !answered.into_inner() => unreachable(node, error),
        _ => error,
    })?;
    cluster.answers_at(&node.name, &node.address);
    eject(cluster, operation, context).await?;
    if slot.is_some() {
        cluster.leave_rollout_slot(node, context).await?;
    }
    Ok(())
}

/// It came up with the cluster's keys, and is not what it should have become: a run before this one, or somebody else, configured it.
fn other_config(node: &NodePlace) -> ProviderError {
    let message = format!("`{}` has got another configuration since the plan was made", node.name);
    ProviderError::new(ErrorClass::Conflict, message).hint("nothing of it was overwritten; plan again")
}

/// Nobody answered at the node's address in all that time.
fn unreachable(node: &NodePlace, error: ProviderError) -> ProviderError {
    let message = format!("node `{}` is unreachable: {}", node.name, error.message);
    let error = ProviderError { message, ..error };
    match &node.lease {
        Some(lease) => error.hint(moving::reservation(&node.address, lease.mac.as_deref())),
        None => error,
    }
}

/// Whether a node that has its configuration runs from its disk: while it still installs itself, it will reboot.
pub(crate) async fn runs_from_disk(cluster: &Cluster, node: &NodePlace) -> Result<Seen<()>, ProviderError> {
    Ok(match cluster.talos(&node.address)?.machine_status().await {
        // Without etcd a control plane cannot get further than booting.
        Ok(Some(status)) if matches!(status.stage, MachineStage::Running | MachineStage::Booting) => {
            Seen::Done(())
        }
        Ok(Some(status)) => Seen::NotYet(format!("it is {}", stage(status.stage))),
        Ok(None) => Seen::NotYet("it is booting".to_owned()),
        Err(error) if is_passing(&error) => Seen::NotYet(error.to_string()),
        Err(error) => return Err(talos(error)),
    })
}

pub(crate) fn is_passing(error: &TalosError) -> bool {
    error.is_transient() || error.is_unreachable()
}

/// Whether a request was refused. An answer that was lost is none: what the node then does tells.
pub(crate) fn sent<T>(answer: Result<T, TalosError>) -> Result<(), ProviderError> {
    match answer {
        Err(error) if !is_passing(&error) => Err(talos(error)),
        _ => Ok(()),
    }
}

/// A machine that is made again has the name of one that is gone: its Node goes first, and its member of etcd where the machine is another one. The same
/// machine has lost its configuration, and may have kept etcd's data: then it is that member still, and one that was removed would never join with them. If
/// it has none, Talos removes the member of its name when it joins.
async fn forget_former(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let vm = |spec: &Spec| spec.get("vm").cloned();
    let known = operation.recorded.as_ref().map(|recorded| vm(&recorded.spec));
    let is_another = known.is_some_and(|known| known != vm(&operation.spec));
    if node.control_plane && is_another {
        cluster.remove_member(&node.name, context).await?;
    }
    delete_node(cluster, node, context).await
}

pub(crate) async fn delete_node(
    cluster: &Cluster,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let Some(found) = cluster.kube().node(&node.name).await.map_err(kube)? else { return Ok(()) };
    cluster
        .kube()
        .delete_node(&permit(context)?, &node.name, Some(&found.uid))
        .await
        .map(|_| ())
        .map_err(kube)
}

async fn eject(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let Some(media) = &cluster.options.media else { return Ok(()) };
    if !operation.spec.contains_key("media") {
        return Ok(());
    }
    context.progress("its ISO is ejected");
    media.eject(operation.address.name(), &|| context.before_write()).await
}

async fn update(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    // It still answers where it was; the new address is part of what it is told.
    let Some((reached, running)) = cluster.locate(node).await? else { return Err(no_answer(node)) };
    let moves = reached.address != node.address;
    // What DHCP gives is asked for again when the machine starts.
    let asks_again = moves && node.lease.is_some();
    let upgrades = operation.touches("version") || operation.touches("installer");
    let sends = sends_config(operation);
    let reboot = match sends {
        true => effect(&running.version, &running.config, planned_config(operation)?),
        false => RebootEffect::NoReboot,
    };
    // A run that died may have told it, and not rebooted it.
    let due = operation.touches("cordoned") && cluster.due_reboot(&reached).await?.is_some();
    let rejoins = is_rejoin(operation);
    let restarts = upgrades || due || asks_again || reboot != RebootEffect::NoReboot;
    let what = match (rejoins, restarts) {
        (true, _) => Disturbance::Rejoin,
        (false, true) => Disturbance::Restart,
        (false, false) => Disturbance::Light,
    };
    let _slot = cluster.enter_rollout_slot(&reached, what, context).await?;
    if upgrades {
        restart::upgrade(cluster, operation, &reached, context).await?;
    }
    if sends {
        configure(cluster, operation, node, &reached, context).await?;
    }
    if asks_again && let Some((at, _)) = cluster.locate(node).await? {
        let boot = cluster.talos(&at.address)?.boot_id().await.map_err(talos)?;
        RebootingNode { node, reached: &at, boot: &boot }.rebooted(cluster, context).await?;
    }
    if moves {
        moving::wait_for_address(cluster, operation, node, &reached, context).await?;
    }
    if operation.touches(STALE) {
        cluster.clear_stale_data(node, context).await?;
    }
    // What left etcd joins again when it boots; one that rebooted for another reason has done so.
    if operation.touches(LEFT) && cluster.etcd().await?.of(&node.name).is_none() {
        let boot = cluster.talos(&node.address)?.boot_id().await.map_err(talos)?;
        RebootingNode { node, reached: node, boot: &boot }.rebooted(cluster, context).await?;
    }
    if due && let Some(boot) = cluster.due_reboot(node).await? {
        RebootingNode { node, reached: node, boot: &boot }.rebooted(cluster, context).await?;
    }
    if operation.touches("media") {
        eject(cluster, operation, context).await?;
    }
    cluster.leave_rollout_slot(node, context).await
}

pub(crate) fn no_answer(node: &NodePlace) -> ProviderError {
    ProviderError::new(
        ErrorClass::Unreachable,
        format!("`{}` does not answer at {}", node.name, node.address),
    )
    .hint("`strata talos health` shows every node")
}

/// Sends the configuration that was planned. It has the versions of Kubernetes that the node had then: those are changed in an order of
/// their own.
async fn configure(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    reached: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let Contact::Running(running) = cluster.contact(&reached.address).await? else {
        return Err(no_answer(reached));
    };
    let Running { version, config: live } = *running;
    let write = planned_write(operation)?;
    write.refuse_changed(&live)?;
    let reboot = effect(&version, &live, write.wanted);
    let client = cluster.talos(&reached.address)?;
    let minor = version.parse::<Contract>().map_err(|error| internal(error.to_string()))?;
    context.progress("sending its new configuration");
    if reboot == RebootEffect::NoReboot {
        let answer = write.send(cluster, &reached.address, ApplyMode::NoReboot, context).await?;
        let moved = reached.address != node.address;
        // It may have gone to the other address with the answer on its way.
        return if moved { Ok(()) } else { answer.must_be_applied() };
    }
    let boot = client.boot_id().await.map_err(talos)?;
    let rebooting = RebootingNode { node, reached, boot: &boot };
    if minor < Contract::V1_14 {
        return rebooting.apply_config(cluster, &write, context).await;
    }
    // From 1.14 on nothing reboots by itself: what needs it stays pending until we do it, and nothing but this note tells.
    cluster.note_reboot(&node.name, &boot, context).await?;
    let answer = write.send(cluster, &reached.address, ApplyMode::NoReboot, context).await?;
    answer.must_be_applied()?;
    rebooting.rebooted(cluster, context).await
}

async fn delete(
    cluster: &Cluster,
    operation: &Operation,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    if !cluster.is_alive() {
        return Ok(());
    }
    let contact = cluster.contact(&node.address).await?;
    if let Contact::Unreachable(why) = &contact
        && !operation.spec.contains_key("vm")
    {
        return Err(keeps_keys(cluster, node, why));
    }
    let answers = matches!(contact, Contact::Running(_));
    let mut slot = match answers {
        true => cluster.enter_rollout_slot(node, Disturbance::Leave, context).await?,
        false => cluster.rollout_slot(context).await?,
    };
    if !answers {
        cluster.no_alarm(&node.name, true).await?;
    }
    if node.control_plane {
        if answers {
            leave_etcd(cluster, node, context).await?;
        } else {
            cluster.snapshot_etcd(&mut slot, context).await?;
            cluster.remove_member(&node.name, context).await?;
        }
    }
    delete_node(cluster, node, context).await?;
    // A VM goes with its disks. A machine of metal stays, and must not come back with the cluster's keys.
    if answers && !operation.spec.contains_key("vm") {
        reset(cluster, node, context).await?;
    }
    Ok(())
}

/// A machine of metal that is off keeps the cluster's keys and its data, and would come back with them.
pub(crate) fn keeps_keys(cluster: &Cluster, node: &NodePlace, why: &str) -> ProviderError {
    let message = format!(
        "`{}` cannot be removed while it is unreachable: the cluster's keys would stay on its disk, and it would come back with them ({why})",
        node.name
    );
    guard(
        message,
        format!(
            "switch it on, then it is reset and removed; if it is broken for good, destroy its disk, remove its member with `talosctl etcd remove-member`, and let it go with `strata state rm {}/machine/{}`",
            cluster.options.stack, node.name
        ),
    )
}

/// Back to maintenance mode, with nothing of the cluster on it. It is done when it is seen there: a machine of metal that is recorded as gone is never asked again.
async fn reset(
    cluster: &Cluster,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let wipe = Wipe::Partitions(vec!["STATE".to_owned(), "EPHEMERAL".to_owned()]);
    let after = wipe_until_seen(cluster, node, &wipe, context).await?;
    cluster.hang_up(&node.address);
    if after == AfterReset::Maintenance {
        return Ok(());
    }
    let message = format!("`{}` was reset, and came back with the keys of the cluster", node.name);
    Err(ProviderError::new(ErrorClass::TaskFailed, message).hint(
        "the console of the machine says why its partitions were not wiped; `strata apply` tries again",
    ))
}

/// Has a node wipe itself and reboot.
pub(crate) async fn wiped(
    client: &TalosClient,
    wipe: Wipe,
    doing: &str,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let permit = permit(context)?;
    context.progress(doing);
    sent(client.reset(&permit, &Reset { wipe, graceful: false, reboot: true }).await)
}

/// The member says goodbye itself, and the others say that it has gone.
pub(crate) async fn leave_etcd(
    cluster: &Cluster,
    node: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let client = cluster.talos(&node.address)?;
    until_done(context, &format!("`{}` to leave etcd", node.name), cluster.options.deadlines.join, || async {
        let etcd = cluster.etcd().await?;
        if etcd.of(&node.name).is_none() {
            return Ok(Seen::Done(()));
        }
        etcd.may_leave(&node.name)?;
        // A leader hands over first, so that nobody waits for an election.
        let _ = client.etcd_forfeit_leadership(&permit(context)?).await;
        Ok(match client.etcd_leave_cluster(&permit(context)?).await {
            Ok(()) => Seen::NotYet("the others have not noticed yet".to_owned()),
            Err(error) if is_passing(&error) => Seen::NotYet(error.to_string()),
            Err(error) => Seen::NotYet(error.to_string()),
        })
    })
    .await
}
