//! What is refused before anything is begun: lost majorities, even numbers, versions that do not follow each other, addresses that
//! somebody has.

use std::collections::BTreeSet;

use strata_engine::{ErrorClass, Finding, Operation, ProviderError};
use strata_resource::{Kind, Value};
use strata_state::Action;
use strata_talos::{Version, check_kubernetes_upgrade, check_pair, check_talos_upgrade};

use crate::alarms::disturbs;
use crate::bootstrap::{lost, perhaps_lost, survived, unsure};
use crate::cluster::Cluster;
use crate::error::guard;
use crate::etcd::no_majority;
use crate::evidence::ClusterReview;
use crate::kinds;
use crate::kubernetes::version_of;
use crate::machine::keeps_keys;
use crate::node::Contact;
use crate::rejoin::is_rejoin;
use crate::{running, shared_address};

pub(crate) async fn preconditions(review: ClusterReview<'_>) -> Result<Vec<Finding>, ProviderError> {
    let ClusterReview { cluster, operations, .. } = review;
    let mut found = metal(cluster, operations).await?;
    if cluster.options.ending {
        return Ok(found);
    }
    found.extend(running::preconditions(review));
    found.extend(shared_address::precondition(review).await);
    found.extend(versions(cluster, operations));
    found.extend(majority(cluster, operations));
    found.extend(addresses(cluster, operations).await?);
    found.extend(leaving(review).await?);
    found.extend(rebuilding(cluster, operations).await?);
    found.extend(disturbing(review).await?);
    found.extend(alarmed(review).await?);
    Ok(found)
}

/// No node is disturbed while etcd has raised an alarm.
pub(crate) async fn alarmed(review: ClusterReview<'_>) -> Result<Option<Finding>, ProviderError> {
    let cluster = review.cluster;
    let mut disturbing: Vec<(&Operation, bool)> = Vec::new();
    for one in review.operations {
        disturbing.extend(disturbs(one).map(|leaves| (one, leaves)));
    }
    if disturbing.is_empty() || !review.etcd_runs || cluster.membership().await?.is_none() {
        return Ok(None);
    }
    for (one, leaves) in disturbing {
        match cluster.no_alarm(one.address.name(), leaves).await {
            Ok(()) => {}
            Err(error) if error.class == ErrorClass::Guard => return Ok(Some(against(one, error))),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn against(operation: &Operation, error: ProviderError) -> Finding {
    Finding::precondition(operation, error.message, error.hint.unwrap_or_default())
}

fn text<'o>(operation: &'o Operation, field: &str) -> Option<&'o str> {
    operation.spec.get(field).and_then(Value::as_text)
}

fn live<'o>(operation: &'o Operation, field: &str) -> Option<&'o str> {
    operation.observed.as_ref()?.spec.get(field)?.as_text()
}

fn read(version: Option<&str>) -> Option<Version> {
    version?.parse().ok()
}

fn is_control_plane(operation: &&Operation) -> bool {
    operation.address.kind() == kinds::MACHINE && text(operation, "role") == Some("controlplane")
}

fn versions(cluster: &Cluster, operations: &[Operation]) -> Vec<Finding> {
    let mut found = Vec::new();
    let of = |kind: Kind| operations.iter().filter(move |one| one.address.kind() == kind);
    let wanted_talos = read(Some(&cluster.options.talos_version));
    let mut told = BTreeSet::new();
    for operation in of(kinds::MACHINE).filter(|one| one.action == Action::Update) {
        let (Some(from), Some(to)) = (read(live(operation, "version")), read(text(operation, "version")))
        else {
            continue;
        };
        if from == to {
            continue;
        }
        if let Err(error) = check_talos_upgrade(&from, &to)
            && told.insert(error.to_string())
        {
            let hint = "go one minor version at a time, and apply each";
            found.push(against(operation, guard(error.to_string(), hint)));
        }
        // The Kubernetes that stays must be one that the new Talos can run.
        let stays = version_of(cluster.options.configs.values());
        if of(kinds::KUBERNETES).next().is_none()
            && let Some(kubernetes) = read(stays.as_deref())
            && let Err(error) = check_pair(&to, &kubernetes)
            && told.insert(error.to_string())
        {
            found.push(against(operation, guard(error.to_string(), FITTING)));
        }
    }
    for operation in of(kinds::KUBERNETES) {
        let (Some(to), Some(talos)) = (read(text(operation, "version")), &wanted_talos) else { continue };
        let checked = match read(live(operation, "version")).filter(|from| *from != to) {
            Some(from) => check_kubernetes_upgrade(&from, &to, talos),
            None => check_pair(talos, &to),
        };
        if let Err(error) = checked {
            found.push(against(operation, guard(error.to_string(), FITTING)));
        }
    }
    found
}

const FITTING: &str = "choose versions that fit, one minor version after the other";

/// An even number survives no more losses than the odd one below it, and is easier to lose.
fn majority(cluster: &Cluster, operations: &[Operation]) -> Option<Finding> {
    let count = cluster.options.nodes.iter().filter(|node| node.control_plane).count();
    let changing = |one: &&Operation| one.address.kind() == kinds::MACHINE && one.action != Action::Update;
    let of_control_plane = operations.iter().filter(changing).find(is_control_plane);
    let changed = of_control_plane.or_else(|| operations.iter().find(changing))?;
    if count % 2 == 1 || cluster.options.allow_even {
        return None;
    }
    let message = format!(
        "{count} control planes are asked for: an even number survives no more losses than {}",
        count.saturating_sub(1)
    );
    Some(against(changed, guard(message, "ask for an odd number, or set `topology.allowEven: true`")))
}

/// A node cannot go to an address that somebody has.
async fn addresses(cluster: &Cluster, operations: &[Operation]) -> Result<Vec<Finding>, ProviderError> {
    let mut found = Vec::new();
    let machines = || operations.iter().filter(|one| one.address.kind() == kinds::MACHINE);
    let is_recreated =
        |name: &str| machines().any(|one| one.action == Action::Create && one.address.name() == name);
    for operation in machines().filter(|one| one.action != Action::Delete) {
        let moves = operation.action == Action::Update && operation.touches("address");
        let (name, Some(at)) = (operation.address.name(), text(operation, "address")) else { continue };
        if operation.action != Action::Create && !moves {
            continue;
        }
        let holds = |other: &&crate::cluster::NodePlace| other.address == at && other.name != name;
        if let Some(other) =
            cluster.options.known.iter().find(holds).filter(|other| !is_recreated(&other.name))
        {
            let message = format!("`{name}` cannot go to {at}: `{}` still has that address", other.name);
            let hint = "give one of them a free address and apply that; then the other one can have it";
            found.push(against(operation, guard(message, hint)));
            continue;
        }
        if moves && let Contact::Maintenance | Contact::Unmanaged(_) = cluster.contact(at).await? {
            let message = format!("`{name}` cannot go to {at}: another machine answers there");
            found.push(against(operation, guard(message, "choose an address that nobody has")));
        }
    }
    Ok(found)
}

/// Machines of metal leave only while they can be reset.
async fn metal(cluster: &Cluster, operations: &[Operation]) -> Result<Vec<Finding>, ProviderError> {
    let goes = |one: &&Operation| {
        one.address.kind() == kinds::MACHINE && one.action == Action::Delete && !one.spec.contains_key("vm")
    };
    let mut found = Vec::new();
    for operation in operations.iter().filter(goes) {
        let (name, Some(at)) = (operation.address.name(), text(operation, "address")) else { continue };
        if let Contact::Unreachable(why) = cluster.contact(at).await?
            && let Some(node) = cluster.place(name)
        {
            found.push(against(operation, keeps_keys(cluster, &node, &why)));
        }
    }
    Ok(found)
}

/// What is left of etcd when all who are to go have gone.
async fn leaving(review: ClusterReview<'_>) -> Result<Option<Finding>, ProviderError> {
    let ClusterReview { cluster, operations, .. } = review;
    let goes = |one: &&Operation| one.action == Action::Delete && is_control_plane(one);
    let going: Vec<&Operation> = operations.iter().filter(goes).collect();
    let Some(first) = going.first().filter(|_| review.etcd_runs) else { return Ok(None) };
    let names: Vec<&str> = going.iter().map(|one| one.address.name()).collect();
    let etcd = cluster.etcd().await?;
    let unhealthy: Vec<&str> = etcd.unhealthy().into_iter().filter(|name| !names.contains(name)).collect();
    if unhealthy.is_empty() {
        // One after the other, in the order of the plan: at each step those that are left must be a majority.
        let mut left = etcd;
        for operation in going {
            if let Err(error) = left.may_leave(operation.address.name()) {
                return Ok(Some(against(operation, error)));
            }
            left = left.without(operation.address.name());
        }
        return Ok(None);
    }
    let message = format!(
        "`{}` would be removed from the cluster while etcd's member on `{}` is unhealthy",
        names.join("`, `"),
        unhealthy.join("`, `")
    );
    Ok(Some(against(first, guard(message, "bring it back first, or remove the unhealthy one"))))
}

/// Etcd is bootstrapped only where nobody holds data of it, and machines of control planes are made again only into an etcd that can
/// take them.
async fn rebuilding(cluster: &Cluster, operations: &[Operation]) -> Result<Option<Finding>, ProviderError> {
    if cluster.may_begin_again() {
        return Ok(None);
    }
    let known = |name: &str| cluster.options.known.iter().any(|node| node.control_plane && node.name == name);
    let made: Vec<&Operation> = operations.iter().filter(|one| one.action == Action::Create).collect();
    let is_rebuilt = |one: &&Operation| {
        cluster.options.bootstrapped && one.address.kind() == kinds::MACHINE && known(one.address.name())
    };
    let rebuilt: Vec<&Operation> = made.iter().copied().filter(is_rebuilt).collect();
    let begun = made.iter().find(|one| one.address.kind() == kinds::BOOTSTRAP).copied();
    let Some(first) = rebuilt.first().copied().or(begun) else { return Ok(None) };
    let names: Vec<&str> = rebuilt.iter().map(|one| one.address.name()).collect();
    if let Some(etcd) = cluster.membership().await? {
        let Some(why) = etcd.may_rebuild(&names).err().filter(|_| !rebuilt.is_empty()) else {
            return Ok(None);
        };
        let replaced = |name: &&str| {
            operations.iter().any(|one| {
                one.action == Action::Delete
                    && one.address.kind() == kinds::MACHINE
                    && one.address.name() == *name
            })
        };
        let (replaced, gone): (Vec<&str>, Vec<&str>) = names.into_iter().partition(replaced);
        let error = match etcd.may_rebuild(&gone) {
            Ok(()) => too_many(&replaced, &why),
            Err(_) => no_majority(cluster, &why),
        };
        return Ok(Some(against(first, error)));
    }
    let survey = cluster.survey().await?;
    let databases = cluster.databases(&survey.survivors).await;
    // Those that are about to be made cannot be asked yet; they are when etcd is to be bootstrapped.
    let mute = survey.refused.iter().find(|(node, _)| made.iter().all(|one| one.address.name() != node.name));
    let error = match mute {
        _ if survey.may_recover(&databases, cluster.control_planes().len()) => None,
        _ if !survey.survivors.is_empty() => Some(survived(cluster, &survey)),
        Some((node, why)) => Some(unsure(cluster, node, why)),
        None if cluster.options.bootstrapped => Some(match survey.refused.as_slice() {
            [] => lost(cluster),
            unseen => perhaps_lost(cluster, unseen),
        }),
        None => None,
    };
    Ok(error.map(|error| against(first, error)))
}

/// Etcd is healthy, and the plan would take its majority away.
fn too_many(replaced: &[&str], why: &str) -> ProviderError {
    let message = format!(
        "`{}` would be replaced in one plan, and etcd would lose its majority with them: after it {why}",
        replaced.join("`, `")
    );
    guard(
        message,
        "etcd is healthy now: take the change back (a VMID, `idBase` or a storage is chosen when a node is made), or replace one control plane at a time with `nodes.yaml`",
    )
}

/// Control planes go down only while the others can do without them. Members whose machines this plan brings back are not waited
/// for here, but when it is applied.
async fn disturbing(review: ClusterReview<'_>) -> Result<Option<Finding>, ProviderError> {
    let ClusterReview { cluster, operations, .. } = review;
    let own: BTreeSet<&str> = operations.iter().map(|one| one.address.name()).collect();
    let restarted: Vec<&Operation> =
        operations.iter().filter(|one| one.restart && !is_rejoin(one)).filter(is_control_plane).collect();
    if restarted.is_empty() || !review.etcd_runs {
        return Ok(None);
    }
    let Some(etcd) = cluster.membership().await? else { return Ok(None) };
    // A node that joins again in this plan is one more that votes by then.
    if operations.iter().any(is_rejoin) {
        return Ok(None);
    }
    let stays_unhealthy = |name: &str| review.seen(name).is_some() && !own.contains(name);
    if etcd.unhealthy().into_iter().any(|name| !stays_unhealthy(name)) {
        return Ok(None);
    }
    let refused = restarted.into_iter().find_map(|one| {
        let error = etcd.may_pause(one.address.name(), cluster.options.allow_even).err()?;
        Some(against(one, error))
    });
    Ok(refused)
}

#[cfg(test)]
mod tests;
