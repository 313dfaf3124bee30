//! What happens in a cluster by itself: nodes register, definitions become types, workloads get pods, Flux reports.

mod bootstrap;
pub mod budgets;
mod definitions;
mod flux;
mod garbage;
mod namespaces;
mod nodes;
mod pods;
mod schedule;
mod workloads;

use super::cluster::{Cluster, Moment};

/// More rounds than any chain of consequences needs.
const MOST_ROUNDS: usize = 50;

/// Does what is due, and gives the time of what comes next, in ms since 1970.
pub fn reconcile(cluster: &mut Cluster, moment: &Moment) -> Option<i64> {
    if !cluster.facts.api_up {
        return None;
    }
    let due = cluster.timers.values().any(|at| *at <= moment.ms);
    let same = |seen: &(u64, _)| seen.0 == cluster.store.revision() && seen.1 == cluster.facts;
    if cluster.settled.as_ref().is_some_and(same) && !due {
        return cluster.timers.values().min().copied();
    }
    cluster.older = std::mem::take(&mut cluster.timers);
    for _ in 0..MOST_ROUNDS {
        let before = cluster.store.revision();
        bootstrap::reconcile(cluster, moment);
        definitions::reconcile(cluster, moment);
        nodes::reconcile(cluster, moment);
        namespaces::reconcile(cluster, moment);
        workloads::reconcile(cluster, moment);
        schedule::reconcile(cluster, moment);
        pods::reconcile(cluster, moment);
        garbage::reconcile(cluster, moment);
        budgets::reconcile(cluster);
        flux::reconcile(cluster, moment);
        if cluster.store.revision() == before {
            break;
        }
    }
    // What was due has been done.
    cluster.older.clear();
    cluster.timers.retain(|_, at| *at > moment.ms);
    cluster.settled = Some((cluster.store.revision(), cluster.facts.clone()));
    cluster.timers.values().min().copied()
}
