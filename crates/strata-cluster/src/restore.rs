//! Etcd from a copy, where no control plane has it any more.

use strata_engine::{OperationContext, ProviderError};
use strata_secret::SecretBytes;

use crate::cluster::Cluster;
use crate::error::{guard, talos};
use crate::node::Contact;
use crate::wait::{JOIN, Seen, until};

/// Gives the copy to the first control plane and begins etcd from it. The others then join by themselves.
pub async fn restore(
    cluster: &Cluster,
    copy: SecretBytes,
    context: &dyn OperationContext,
) -> Result<(), ProviderError> {
    if let Some(etcd) = cluster.membership().await? {
        let names: Vec<&str> = etcd.members.iter().map(|member| member.hostname.as_str()).collect();
        let message =
            format!("etcd runs, with members on `{}`: nothing has to be restored", names.join("`, `"));
        return Err(guard(
            message,
            "`strata talos health` shows every node; `strata apply` rebuilds one that is lost",
        ));
    }
    let node = cluster.options.nodes.iter().find(|node| node.control_plane);
    let Some(node) = node else {
        return Err(guard(
            "the cluster has no control plane",
            "give `topology.controlPlane` a `count` of 1, 3 or 5",
        ));
    };
    if !matches!(cluster.contact(&node.address).await?, Contact::Running(_)) {
        let message = format!("`{}` does not run with the cluster's keys yet", node.name);
        return Err(guard(message, "`strata apply --restore` makes the machines first"));
    }
    context.before_write()?;
    context.progress(&format!("the copy goes to `{}`", node.name));
    let client = cluster.talos(&node.address)?;
    client.etcd_recover(std::io::Cursor::new(copy.expose().to_vec())).await.map_err(talos)?;
    until(context, "etcd to begin from the copy", JOIN, || async {
        context.before_write()?;
        match client.bootstrap_recovered(false).await {
            Ok(()) => Ok(Seen::Done(())),
            Err(error) if error.is_already_exists() => Ok(Seen::Done(())),
            Err(error) if error.is_transient() || error.is_unreachable() => {
                Ok(Seen::NotYet(error.to_string()))
            }
            Err(error) => Err(talos(error)),
        }
    })
    .await?;
    cluster.now_alive();
    until(context, "etcd", JOIN, || async {
        Ok(match cluster.voter_trouble(node).await? {
            None => Seen::Done(()),
            Some(trouble) => Seen::NotYet(trouble),
        })
    })
    .await
}
