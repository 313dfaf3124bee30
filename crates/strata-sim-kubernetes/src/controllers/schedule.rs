//! Pods get nodes: ready ones that are not cordoned, whose taints they tolerate and whose labels they select.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::object::{
    has_condition, is_terminating, labels, list, member, name, pairs, set_condition, text,
};
use crate::cluster::{Cluster, Moment};
use crate::resource::of;

/// Whether a pod's tolerations cover a taint.
pub fn tolerates(spec: &Value, taint: &Value) -> bool {
    if text(taint, "/effect") == "PreferNoSchedule" {
        return true;
    }
    list(spec, "/tolerations").iter().any(|toleration| {
        let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
        let exists = text(toleration, "/operator") == "Exists";
        (effect.is_empty() || effect == text(taint, "/effect"))
            && (key == text(taint, "/key") || (key.is_empty() && exists))
            && (exists || text(toleration, "/value") == text(taint, "/value"))
    })
}

/// Whether a node has the labels that a pod selects.
pub fn selects(spec: &Value, node: &Value) -> bool {
    pairs(spec.get("nodeSelector")).all(|wanted| labels(node).any(|label| label == wanted))
}

pub fn reconcile(cluster: &mut Cluster, moment: &Moment) {
    let pods = of("pods");
    let waiting: Vec<(String, Value)> = cluster
        .store
        .list(&pods.prefix())
        .filter(|(_, pod)| text(pod, "/spec/nodeName").is_empty() && !is_terminating(pod))
        .map(|(key, pod)| (key.to_owned(), pod.clone()))
        .collect();
    if waiting.is_empty() {
        return;
    }
    let nodes: Vec<Value> = cluster.store.list(&of("nodes").prefix()).map(|(_, node)| node.clone()).collect();
    let mut load: BTreeMap<String, usize> = BTreeMap::new();
    for (_, pod) in cluster.store.list(&pods.prefix()) {
        *load.entry(text(pod, "/spec/nodeName").to_owned()).or_default() += 1;
    }
    let now = moment.text();
    for (key, pod) in waiting {
        let fits = |node: &&Value| {
            node["spec"]["unschedulable"] != true
                && has_condition(node, "Ready", "True")
                && list(node, "/spec/taints").iter().all(|taint| tolerates(&pod["spec"], taint))
                && selects(&pod["spec"], node)
        };
        let chosen = nodes.iter().filter(fits).map(|node| name(node).to_owned());
        let chosen = chosen.min_by_key(|node| (load.get(node).copied().unwrap_or_default(), node.clone()));
        match chosen {
            Some(node) => {
                *load.entry(node.clone()).or_default() += 1;
                cluster.change(&key, |pod| {
                    member(pod, "spec").insert("nodeName".to_owned(), json!(node));
                    set_condition(pod, "PodScheduled", "True", "", "", &now);
                });
            }
            None => {
                let message = format!("0/{} nodes are available.", nodes.len());
                cluster.change(&key, |pod| {
                    set_condition(pod, "PodScheduled", "False", "Unschedulable", &message, &now);
                });
            }
        }
    }
}
