//! Etcd is bootstrapped once: never where there is one, never where one may be.

use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_state::Action;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, talos};
use crate::restore;
use crate::shared_address;
use crate::survivors::Survey;
use crate::wait::{Seen, permit, until, until_done};

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    match operation.action {
        Action::Create | Action::Update => begin(cluster, context).await.map(|()| Outcome::default()),
        Action::Delete if cluster.options.ending => Ok(Outcome::default()),
        // The same etcd, recorded under a name that it has no more.
        Action::Delete
            if operation.address.name() != cluster.name()
                && cluster.options.bootstrapped_as.contains(cluster.name()) =>
        {
            Ok(Outcome::default())
        }
        Action::Delete => Err(guard(
            "the cluster would get another etcd in the place of the one that it has",
            "`strata destroy` takes down a whole cluster",
        )),
    }
}

async fn begin(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    if cluster.membership().await?.is_some() {
        came_back(cluster)?;
    } else {
        let survey = cluster.complete_survey(context).await?;
        if restore::recovers(cluster, &survey, context).await? || cluster.membership().await?.is_some() {
            came_back(cluster)?;
        } else {
            certainly_none(cluster, &survey)?;
            restore::clear_remains(cluster, &survey, context).await?;
            let first = &first(cluster)?;
            match &cluster.options.restoring {
                Some(copy) => restore::from_copy(cluster, first, copy, context).await?,
                None => {
                    shared_address::refuse_taken(cluster).await?;
                    from_nothing(cluster, first, context).await?;
                }
            }
        }
    }
    cluster.now_alive();
    // The others were told where to join and do so by themselves, one after the other: etcd takes one learner at a time.
    for node in cluster.control_planes() {
        until(context, &format!("etcd on `{}`", node.name), cluster.options.deadlines.join, || async {
            Ok(match cluster.voter_trouble(&node).await? {
                None => Seen::Done(()),
                Some(trouble) => Seen::NotYet(trouble),
            })
        })
        .await?;
    }
    until(context, "the Kubernetes API", cluster.options.deadlines.join, || async {
        Ok(match cluster.kube().ready().await {
            Ok(()) => Seen::Done(()),
            Err(error) if error.is_transient() => Seen::NotYet(error.to_string()),
            Err(error) => return Err(crate::error::kube(error)),
        })
    })
    .await
}

/// Etcd has a leader. Whoever wanted to begin it again is told, and nothing is wiped.
fn came_back(cluster: &Cluster) -> Result<(), ProviderError> {
    cluster.now_alive();
    if cluster.may_begin_again() { Err(restore::recovered(cluster)) } else { Ok(()) }
}

async fn from_nothing(
    cluster: &Cluster,
    first: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let waiting_for = format!("`{}` to take the bootstrap", first.name);
    until_done(context, &waiting_for, cluster.options.deadlines.join, || async {
        match cluster.talos(&first.address)?.bootstrap(&permit(context)?).await {
            Ok(()) => Ok(Seen::Done(())),
            // A lost answer: it has data now.
            Err(error) if error.is_already_exists() => Ok(Seen::Done(())),
            Err(error) if error.is_transient() || error.is_unreachable() || is_early(&error) => {
                Ok(Seen::NotYet(error.to_string()))
            }
            Err(error) => Err(talos(error)),
        }
    })
    .await
}

/// The node has just booted and its services are not there yet.
pub(crate) fn is_early(error: &strata_talos_client::TalosError) -> bool {
    matches!(error.reason, strata_talos_client::TalosReason::FailedPrecondition(_))
}

fn first(cluster: &Cluster) -> Result<NodePlace, ProviderError> {
    let first = cluster.options.nodes.iter().find(|node| node.control_plane);
    first.map(|node| cluster.now(node)).ok_or_else(|| {
        guard("the cluster has no control plane", "give `topology.controlPlane` a `count` of 1, 3 or 5")
    })
}

/// Bootstrapping a rebuilt control plane of a live cluster would make a second cluster: every one must say itself that it holds no data.
fn certainly_none(cluster: &Cluster, survey: &Survey) -> Result<(), ProviderError> {
    if let Some((node, why)) = survey.unknown.first() {
        return Err(unsure(cluster, node, why));
    }
    if cluster.may_begin_again() {
        return Ok(());
    }
    if !survey.survivors.is_empty() {
        return Err(survived(cluster, survey));
    }
    if cluster.options.bootstrapped { Err(lost(cluster)) } else { Ok(()) }
}

/// A control plane that may hold data of etcd.
pub(crate) fn unsure(cluster: &Cluster, node: &NodePlace, why: &str) -> ProviderError {
    let message = format!(
        "etcd is not bootstrapped: whether `{}` holds data of the etcd of `{}` is not known: {why}",
        node.name,
        cluster.name()
    );
    guard(message, "bring it back; where its data are lost for good, remove it from the source first")
}

/// Control planes that hold data, and are no majority.
pub(crate) fn survived(cluster: &Cluster, survey: &Survey) -> ProviderError {
    let stack = &cluster.options.stack;
    let verb = if survey.survivors.len() == 1 { "holds" } else { "hold" };
    let message = format!(
        "etcd is not bootstrapped: {} still {verb} data of the etcd of `{}`, without a majority",
        survey.names(),
        cluster.name()
    );
    guard(
        message,
        format!(
            "bring the other control planes back; where they are lost for good, `strata talos snapshot {stack}` saves what is left, and `strata talos restore {stack} --snapshot FILE` begins again from it"
        ),
    )
}

/// Etcd was bootstrapped once, and every control plane says that it holds nothing of it.
pub(crate) fn lost(cluster: &Cluster) -> ProviderError {
    let message = format!(
        "the etcd of `{}` is lost: it was bootstrapped, and no control plane holds data of it any more",
        cluster.name()
    );
    let stack = &cluster.options.stack;
    guard(
        message,
        format!(
            "`strata talos restore {stack} --snapshot FILE` brings it back from a snapshot; `--new-cluster` begins another one, with nothing in it"
        ),
    )
}

/// Etcd was bootstrapped once, and those that could hold data of it have no configuration: nobody sees what is on their disks.
pub(crate) fn perhaps_lost(cluster: &Cluster, unseen: &[(NodePlace, String)]) -> ProviderError {
    let names: Vec<&str> = unseen.iter().map(|(node, _)| node.name.as_str()).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let message = format!(
        "whether the etcd of `{}` is lost is not known: `{}` {verb} in maintenance mode, and may have kept data of it; nobody else has any",
        cluster.name(),
        names.join("`, `")
    );
    let stack = &cluster.options.stack;
    guard(
        message,
        format!(
            "`strata talos restore {stack} --snapshot FILE` configures the control planes and looks: data that are there are kept, and nothing is restored; `--new-cluster` does the same without a snapshot, and begins with nothing where there are none"
        ),
    )
}
