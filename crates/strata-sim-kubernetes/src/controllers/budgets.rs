//! Disruption budgets: how many pods may be missing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::object::{has_condition, int, is_terminating, list, member, namespace};
use crate::cluster::Cluster;
use crate::resource::of;
use crate::selector::Selector;

pub struct Count {
    pub healthy: i64,
    pub desired: i64,
    pub expected: i64,
}

impl Count {
    pub fn allowed(&self) -> i64 {
        (self.healthy - self.desired).max(0)
    }
}

pub fn reconcile(cluster: &mut Cluster) {
    let budgets: Vec<(String, Value)> = cluster
        .store
        .list(&of("poddisruptionbudgets").prefix())
        .map(|(key, budget)| (key.to_owned(), budget.clone()))
        .collect();
    for (key, budget) in budgets {
        let state = count(cluster, &budget);
        cluster.change(&key, |object| {
            let generation = object["metadata"]["generation"].clone();
            let status = member(object, "status");
            status.insert("currentHealthy".to_owned(), json!(state.healthy));
            status.insert("desiredHealthy".to_owned(), json!(state.desired));
            status.insert("expectedPods".to_owned(), json!(state.expected));
            status.insert("disruptionsAllowed".to_owned(), json!(state.allowed()));
            status.insert("observedGeneration".to_owned(), generation);
        });
    }
}

/// What the budget says of the pods that are there.
pub fn count(cluster: &Cluster, budget: &Value) -> Count {
    let selector = Selector::from_object(&budget["spec"]["selector"]);
    let prefix = format!("{}{}/", of("pods").prefix(), namespace(budget));
    let (mut healthy, mut single) = (0, 0);
    let mut owners: BTreeMap<String, i64> = BTreeMap::new();
    for (_, pod) in cluster.store.list(&prefix).filter(|(_, pod)| selector.matches(pod)) {
        if has_condition(pod, "Ready", "True") && !is_terminating(pod) {
            healthy += 1;
        }
        let owner = list(pod, "/metadata/ownerReferences").iter().find(|r| r["controller"] == true);
        let replicas = owner.and_then(|owner| {
            let plural = if owner["kind"] == "StatefulSet" { "statefulsets" } else { "replicasets" };
            let owner = cluster.store.get(&of(plural).key(namespace(budget), owner["name"].as_str()?))?;
            Some((super::super::object::uid(owner).to_owned(), int(owner, "/spec/replicas")))
        });
        match replicas {
            Some((uid, replicas)) => {
                owners.insert(uid, replicas);
            }
            None => single += 1,
        }
    }
    let expected = owners.values().sum::<i64>() + single;
    let share = |value: &Value| match (value.as_i64(), value.as_str()) {
        (Some(number), _) => Some(number),
        (_, Some(text)) => {
            let percent: i64 = text.trim_end_matches('%').parse().ok()?;
            Some((expected * percent + 99) / 100)
        }
        _ => None,
    };
    let spec = &budget["spec"];
    let desired = match (share(&spec["minAvailable"]), share(&spec["maxUnavailable"])) {
        (Some(least), _) => least,
        (None, Some(most)) => (expected - most).max(0),
        (None, None) => (expected - 1).max(0),
    };
    Count { healthy, desired, expected }
}
