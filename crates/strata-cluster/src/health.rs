//! How a cluster is, for people: every node, etcd, Kubernetes.

use crate::cluster::{Cluster, NodePlace};
use crate::node::Contact;

/// How one node is.
#[derive(Debug, Clone)]
pub struct NodeHealth {
    pub name: String,
    pub address: String,
    pub control_plane: bool,
    /// The version of Talos; none if it does not answer.
    pub version: Option<String>,
    /// The version of its kubelet; none if Kubernetes does not know the node.
    pub kubelet: Option<String>,
    /// What is wrong; nothing if it is healthy.
    pub trouble: Option<String>,
}

/// A member of etcd.
#[derive(Debug, Clone)]
pub struct MemberHealth {
    pub name: String,
    pub id: u64,
    pub learner: bool,
    /// It votes and follows a leader.
    pub healthy: bool,
}

#[derive(Debug, Clone)]
pub struct ClusterHealth {
    pub nodes: Vec<NodeHealth>,
    /// Nobody, if etcd cannot be asked.
    pub members: Vec<MemberHealth>,
    /// What is wrong with etcd as a whole.
    pub etcd_trouble: Option<String>,
    /// The version of the Kubernetes API.
    pub kubernetes: Option<String>,
    pub kubernetes_trouble: Option<String>,
}

impl ClusterHealth {
    pub fn is_healthy(&self) -> bool {
        self.etcd_trouble.is_none()
            && self.kubernetes_trouble.is_none()
            && self.nodes.iter().all(|node| node.trouble.is_none())
    }
}

/// Asks everybody; whoever does not answer is part of the answer.
pub async fn health(cluster: &Cluster) -> ClusterHealth {
    // First: whoever has etcd shows that the cluster lives, whatever the state says.
    let (members, etcd_trouble) = etcd(cluster).await;
    let places = cluster.places();
    let nodes = futures::future::join_all(places.iter().map(|node| node_health(cluster, node)));
    let (nodes, (kubernetes, kubernetes_trouble)) = futures::future::join(nodes, kubernetes(cluster)).await;
    ClusterHealth { nodes, members, etcd_trouble, kubernetes, kubernetes_trouble }
}

async fn node_health(cluster: &Cluster, node: &NodePlace) -> NodeHealth {
    let (version, trouble) = match cluster.contact(&node.address).await {
        Ok(Contact::Running(running)) => {
            let trouble = cluster.trouble(node).await.unwrap_or_else(|error| Some(error.to_string()));
            (Some(running.version), trouble)
        }
        Ok(Contact::Maintenance) => {
            (None, Some("it waits for a configuration (maintenance mode)".to_owned()))
        }
        Ok(Contact::Unmanaged(who)) => (None, Some(who)),
        Ok(Contact::Unreachable(why)) => (None, Some(why)),
        Err(error) => (None, Some(error.to_string())),
    };
    let known = match cluster.is_alive() {
        true => cluster.kube().node(&node.name).await.ok().flatten(),
        false => None,
    };
    NodeHealth {
        name: node.name.clone(),
        address: node.address.clone(),
        control_plane: node.control_plane,
        version,
        kubelet: known.and_then(|node| node.kubelet_version),
        trouble,
    }
}

async fn etcd(cluster: &Cluster) -> (Vec<MemberHealth>, Option<String>) {
    let membership = match cluster.membership().await {
        Ok(Some(membership)) => membership,
        Ok(None) if !cluster.is_alive() => {
            return (Vec::new(), Some("it is not bootstrapped yet".to_owned()));
        }
        Ok(None) => return (Vec::new(), Some("no majority of it answers".to_owned())),
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    cluster.now_alive();
    let members: Vec<MemberHealth> = membership
        .members
        .iter()
        .map(|member| MemberHealth {
            name: member.hostname.clone(),
            id: member.id,
            learner: member.is_learner,
            healthy: membership.healthy.contains(&member.id),
        })
        .collect();
    let unhealthy = members.iter().find(|member| !member.healthy).map(|member| match member.learner {
        true => format!("its member on `{}` is still learning", member.name),
        false => format!("its member on `{}` is unhealthy", member.name),
    });
    let unknown = members.iter().find(|member| cluster.place(&member.name).is_none());
    let unknown = unknown.map(|member| format!("its member on `{}` is no node of the cluster", member.name));
    let trouble = match unhealthy.or(unknown) {
        Some(trouble) => Some(trouble),
        None => match cluster.alarms().await {
            Ok(alarms) => alarms.first().map(|alarm| alarm.meaning()),
            Err(error) => Some(error.message),
        },
    };
    (members, trouble)
}

async fn kubernetes(cluster: &Cluster) -> (Option<String>, Option<String>) {
    if !cluster.is_alive() {
        return (None, Some("it is not bootstrapped yet".to_owned()));
    }
    match (cluster.kube().ready().await, cluster.kube().version().await) {
        (Ok(()), Ok(version)) => (Some(version.git_version), None),
        (Err(error), version) => (version.ok().map(|version| version.git_version), Some(error.to_string())),
        (_, Err(error)) => (None, Some(error.to_string())),
    }
}

/// On which nodes etcd has its members; nobody, if no majority of it answers.
pub async fn etcd_members(cluster: &Cluster) -> Result<Vec<String>, strata_engine::ProviderError> {
    let membership = cluster.membership().await?;
    let members = membership.into_iter().flat_map(|membership| membership.members);
    Ok(members.map(|member| member.hostname).collect())
}

/// The addresses of the members of the etcd that these control planes are part of, whoever's they are: they have the cluster's keys.
/// None if none of them tells.
pub async fn member_addresses(
    cluster: &Cluster,
    control_planes: &[String],
) -> Result<Option<Vec<String>>, strata_engine::ProviderError> {
    for address in control_planes {
        if let Ok(members) = cluster.talos(address)?.etcd_members().await
            && !members.is_empty()
        {
            let urls = members.iter().flat_map(|member| &member.peer_urls);
            return Ok(Some(urls.map(|url| host(url).to_owned()).collect()));
        }
    }
    Ok(None)
}

/// `https://192.0.2.41:2380`, `https://[2001:db8::1]:2380`.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => rest.split([':', '/']).next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn the_host_of_a_peer() {
        assert_eq!(host("https://192.0.2.41:2380"), "192.0.2.41");
        assert_eq!(host("https://[2001:db8::1]:2380"), "2001:db8::1");
        assert_eq!(host("cp-1.example/"), "cp-1.example");
    }
}
