//! Etcd is begun once: never where there is one, never where one may be.

use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_state::Action;

use crate::cluster::{Cluster, NodePlace};
use crate::error::{guard, talos};
use crate::node::Contact;
use crate::restore;
use crate::wait::{Seen, until, until_done};

pub(crate) async fn execute(
    cluster: &Cluster,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    match operation.action {
        Action::Create | Action::Update => begin(cluster, context).await.map(|()| Outcome::default()),
        Action::Delete if cluster.options.ending => Ok(Outcome::default()),
        Action::Delete => Err(guard(
            "the cluster would get another etcd in the place of the one that it has",
            "`strata destroy` takes down a whole cluster",
        )),
    }
}

async fn begin(cluster: &Cluster, context: &dyn OperationContext) -> Result<(), ProviderError> {
    if cluster.membership().await?.is_none() {
        certainly_none(cluster).await?;
        let first = &first(cluster)?;
        if cluster.may_begin_again() {
            restore::clear_remains(cluster, context).await?;
        }
        match &cluster.options.restoring {
            Some(copy) => restore::from_copy(cluster, first, copy, context).await?,
            None => from_nothing(cluster, first, context).await?,
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

async fn from_nothing(
    cluster: &Cluster,
    first: &NodePlace,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    let waiting_for = format!("`{}` to take the bootstrap", first.name);
    until_done(context, &waiting_for, cluster.options.deadlines.join, || async {
        context.before_write()?;
        match cluster.talos(&first.address)?.bootstrap().await {
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
pub(crate) fn is_early(error: &strata_talos::api::TalosError) -> bool {
    matches!(error.reason, strata_talos::api::TalosReason::FailedPrecondition(_))
}

fn first(cluster: &Cluster) -> Result<NodePlace, ProviderError> {
    let first = cluster.options.nodes.iter().find(|node| node.control_plane);
    first.map(|node| cluster.now(node)).ok_or_else(|| {
        guard("the cluster has no control plane", "give `topology.controlPlane` a `count` of 1, 3 or 5")
    })
}

/// Bootstrapping a rebuilt control plane of a live cluster would make a second cluster: every one must say that it has none.
async fn certainly_none(cluster: &Cluster) -> Result<(), ProviderError> {
    if cluster.options.bootstrapped && !cluster.may_begin_again() {
        return Err(lost(cluster));
    }
    for node in cluster.control_planes() {
        let unsure = |why: String| {
            let message = format!("`{}` cannot be asked whether it has an etcd: {why}", node.name);
            guard(message, "bring it back; where its data are lost for good, take it out of the source first")
        };
        match cluster.contact(&node.address).await? {
            Contact::Running(_) => {}
            Contact::Maintenance => return Err(unsure("it has no configuration yet".to_owned())),
            Contact::Stranger(who) => return Err(unsure(who)),
            Contact::Silent(why) => return Err(unsure(why)),
        }
    }
    Ok(())
}

/// Etcd was begun once, and nobody has it any more.
pub(crate) fn lost(cluster: &Cluster) -> ProviderError {
    let message = format!(
        "the etcd of `{}` is lost: it was begun, and no control plane has it any more",
        cluster.name()
    );
    let stack = &cluster.options.stack;
    guard(
        message,
        format!(
            "`strata talos restore {stack} --snapshot FILE` brings it back from a copy; `--new-cluster` begins another one, with nothing in it"
        ),
    )
}
