//! What is refused before anything is begun: lost majorities, even numbers, versions that do not follow each other.

use strata_engine::{Operation, ProviderError};
use strata_resource::{Kind, Value};
use strata_state::Action;
use strata_talos::{Version, check_kubernetes_upgrade, check_pair, check_talos_upgrade};

use crate::bootstrap::lost;
use crate::cluster::Cluster;
use crate::error::guard;
use crate::etcd::no_majority;

pub(crate) async fn preflight(
    cluster: &Cluster,
    operations: &[Operation],
) -> Result<Vec<ProviderError>, ProviderError> {
    if cluster.options.ending {
        return Ok(Vec::new());
    }
    let mut found = versions(cluster, operations);
    found.extend(majority(cluster, operations));
    found.extend(leaving(cluster, operations).await?);
    found.extend(rebuilding(cluster, operations).await?);
    Ok(found)
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

fn versions(cluster: &Cluster, operations: &[Operation]) -> Vec<ProviderError> {
    let mut found = Vec::new();
    let talos =
        operations.iter().filter(|one| one.address.kind() == Kind::Machine && one.action == Action::Update);
    let mut told = std::collections::BTreeSet::new();
    for operation in talos {
        let (Some(from), Some(to)) = (read(live(operation, "version")), read(text(operation, "version")))
        else {
            continue;
        };
        if from != to
            && let Err(error) = check_talos_upgrade(&from, &to)
            && told.insert(error.to_string())
        {
            found.push(guard(error.to_string(), "go one minor version at a time, and apply each"));
        }
    }
    for operation in operations.iter().filter(|one| one.address.kind() == Kind::Kubernetes) {
        let (Some(to), Some(talos)) =
            (read(text(operation, "version")), read(Some(&cluster.options.talos_version)))
        else {
            continue;
        };
        let checked = match read(live(operation, "version")).filter(|from| *from != to) {
            Some(from) => check_kubernetes_upgrade(&from, &to, &talos),
            None => check_pair(&talos, &to),
        };
        if let Err(error) = checked {
            found.push(guard(
                error.to_string(),
                "choose versions that fit, one minor version after the other",
            ));
        }
    }
    found
}

/// An even number survives no more losses than the odd one below it, and is easier to lose.
fn majority(cluster: &Cluster, operations: &[Operation]) -> Option<ProviderError> {
    let count = cluster.options.nodes.iter().filter(|node| node.control_plane).count();
    let changes =
        operations.iter().any(|one| one.address.kind() == Kind::Machine && one.action != Action::Update);
    if !changes || count % 2 == 1 || cluster.options.allow_even {
        return None;
    }
    let message = format!(
        "{count} control planes are asked for: an even number survives no more losses than {}",
        count - 1
    );
    Some(guard(message, "ask for an odd number, or set `topology.allowEven: true`"))
}

/// What is left of etcd when all who are to go have gone.
async fn leaving(
    cluster: &Cluster,
    operations: &[Operation],
) -> Result<Option<ProviderError>, ProviderError> {
    let goes = |one: &&Operation| {
        one.address.kind() == Kind::Machine
            && one.action == Action::Delete
            && text(one, "role") == Some("controlplane")
    };
    let going: Vec<&str> = operations.iter().filter(goes).map(|one| one.address.name()).collect();
    if going.is_empty() || !cluster.is_alive() {
        return Ok(None);
    }
    let etcd = cluster.etcd().await?;
    let unwell: Vec<&str> = etcd.unwell().into_iter().filter(|name| !going.contains(name)).collect();
    if unwell.is_empty() {
        return Ok(None);
    }
    let message = format!(
        "`{}` would be taken out while etcd's member on `{}` is not well",
        going.join("`, `"),
        unwell.join("`, `")
    );
    Ok(Some(guard(message, "bring it back first, or take out the one that is not well")))
}

/// Machines of control planes are made again only into an etcd that can take them.
async fn rebuilding(
    cluster: &Cluster,
    operations: &[Operation],
) -> Result<Option<ProviderError>, ProviderError> {
    if !cluster.options.bootstrapped || cluster.may_begin_again() {
        return Ok(None);
    }
    let made = |one: &&Operation| one.action == Action::Create;
    let known = |name: &str| cluster.options.known.iter().any(|node| node.control_plane && node.name == name);
    let rebuilt: Vec<&str> = operations
        .iter()
        .filter(made)
        .filter(|one| one.address.kind() == Kind::Machine && known(one.address.name()))
        .map(|one| one.address.name())
        .collect();
    let begun = operations.iter().filter(made).any(|one| one.address.kind() == Kind::Bootstrap);
    if rebuilt.is_empty() && !begun {
        return Ok(None);
    }
    match cluster.membership().await? {
        Some(etcd) => Ok(etcd.may_rebuild(cluster.name(), &rebuilt).err()),
        None if cluster.has_etcd().await? => {
            Ok(Some(no_majority(cluster.name(), "none of its members has a leader")))
        }
        None => Ok(Some(lost(cluster))),
    }
}
