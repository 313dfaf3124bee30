//! What tests do to clusters, through the control interface.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::PORT;
use super::cluster::Cluster;
use super::handle::{Reply, handle};
use super::request::{Query, Request, User};
use crate::Clusters;
use crate::facts::KubernetesCluster;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Change {
    /// The name or the identity of the cluster; the only one if left out.
    cluster: Option<String>,
    /// A cluster that no machines make, and that answers at port 6443 of its nodes.
    standalone: Option<KubernetesCluster>,
    /// A call as a master.
    call: Option<Call>,
    /// A glob of images that cannot be pulled, or can be again.
    image: Option<Image>,
    /// Whether there is a network for pods; null lets what runs decide.
    #[serde(default, with = "there")]
    cni: Option<Option<bool>>,
    /// Sources at such URLs fail with this text, or work again.
    source: Option<Source>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Call {
    method: String,
    path: String,
    #[serde(default)]
    body: Value,
    content_type: Option<String>,
    manager: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    glob: String,
    missing: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    url: String,
    error: Option<String>,
}

/// Tells `null` from nothing.
mod there {
    use serde::{Deserialize, Deserializer};

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<bool>>, D::Error> {
        Option::<bool>::deserialize(deserializer).map(Some)
    }
}

/// Carries out `{"kubernetes": …}` of a change.
pub fn apply(clusters: &Arc<Clusters>, change: &Value) -> Result<Value, String> {
    let change: Change = serde_json::from_value(change.clone()).map_err(|error| error.to_string())?;
    if let Some(facts) = change.standalone {
        stand_up(clusters, facts);
        return Ok(json!({}));
    }
    clusters.shared.advance();
    let moment = clusters.moment();
    let mut state = clusters.state();
    let wanted = change.cluster.as_deref();
    let mut found = state.clusters.values_mut().filter(|cluster| {
        wanted.is_none_or(|wanted| cluster.facts.id == wanted || cluster.facts.name == wanted)
    });
    let cluster = found.next().ok_or("no such cluster")?;
    if wanted.is_none() && found.next().is_some() {
        return Err("there are several clusters, name one in `cluster`".to_owned());
    }
    if let Some(image) = change.image {
        cluster.orders.no_images.retain(|glob| *glob != image.glob);
        if image.missing {
            cluster.orders.no_images.push(image.glob);
        }
    }
    if let Some(cni) = change.cni {
        cluster.orders.cni = cni;
    }
    if let Some(source) = change.source {
        match source.error {
            Some(error) => cluster.orders.bad_sources.insert(source.url, error),
            None => cluster.orders.bad_sources.remove(&source.url),
        };
    }
    cluster.settled = None;
    let done = change.call.map(|call| {
        let reply = handle(cluster, &request(call), moment);
        match reply {
            Reply::Object(status, object) => json!({ "status": status, "object": object }),
            Reply::Text(status, text) => json!({ "status": status, "text": text }),
            Reply::Watch(_) => json!({ "status": 400, "text": "nothing is watched here" }),
        }
    });
    state.advance(&moment);
    drop(state);
    clusters.shared.changed();
    // Like the changes of Proxmox: 200 is what is not refused.
    Ok(done.map_or_else(
        || json!({}),
        |mut done| {
            if done["status"] == 201 {
                done["status"] = json!(200);
            }
            done
        },
    ))
}

fn request(call: Call) -> Request {
    let (path, query) = call.path.split_once('?').unwrap_or((&call.path, ""));
    let manager = call.manager.unwrap_or_else(|| "someone".to_owned());
    let usual = if call.method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    Request {
        method: call.method,
        path: path.to_owned(),
        query: Query::parse(query),
        accept: String::new(),
        content_type: call.content_type.unwrap_or_else(|| usual.to_owned()),
        user_agent: manager,
        body: if call.body.is_null() { Bytes::new() } else { Bytes::from(call.body.to_string()) },
        user: Some(User { name: "someone".to_owned(), groups: vec!["system:masters".to_owned()] }),
    }
}

fn stand_up(clusters: &Arc<Clusters>, facts: KubernetesCluster) {
    listen(clusters, &facts);
    let moment = clusters.moment();
    let mut state = clusters.state();
    let entry = state.clusters.entry(facts.id.clone());
    let cluster = entry.or_insert_with(|| Cluster::new(facts.clone()));
    cluster.facts = facts;
    cluster.orders.standalone = true;
    state.advance(&moment);
    drop(state);
    clusters.shared.changed();
}

/// Its API answers at port 6443 of its control planes and of the shared address.
pub fn listen(clusters: &Arc<Clusters>, facts: &KubernetesCluster) {
    let own = facts.nodes.iter().filter(|node| node.control_plane).flat_map(|node| &node.addresses);
    for host in own.chain(&facts.vip) {
        clusters.shared.network.register(host, PORT, clusters.listener());
    }
}
