//! Evictions: a pod is deleted unless a disruption budget forbids it.

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::delete::remove;
use super::failure::{Failure, Outcome, bad_request, conflict};
use super::handle::{Ask, Reply};
use super::object::{has_condition, is_terminating, name, namespace, text};
use super::resource;
use super::selector::Selector;

pub fn evict(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome<Reply> {
    let eviction = ask.request.object("application/json, application/yaml")?;
    if text(&eviction, "/kind") != "Eviction" {
        return Err(bad_request("the body of an eviction is an object of kind Eviction"));
    }
    let pod = ask.object(cluster)?.clone();
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let wanted = text(&options, "/preconditions/uid");
    if !wanted.is_empty() && wanted != super::object::uid(&pod) {
        return Err(conflict(&ask.resource, ask.name(), "Precondition failed: UID differs"));
    }
    // What does not run disturbs nobody.
    let runs = text(&pod, "/status/phase") == "Running" && !is_terminating(&pod);
    if runs {
        check_budgets(cluster, &pod)?;
    }
    if !ask.request.is_dry(Some(&options))? {
        remove(cluster, &ask.resource, &ask.key(), &options, &ask.moment);
        super::controllers::budgets::reconcile(cluster);
    }
    Ok(Reply::Object(
        201,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
    ))
}

fn check_budgets(cluster: &Cluster, pod: &Value) -> Outcome<()> {
    let prefix = format!("{}{}/", resource::of("poddisruptionbudgets").prefix(), namespace(pod));
    let budgets: Vec<&Value> = cluster
        .store
        .list(&prefix)
        .map(|(_, budget)| budget)
        .filter(|budget| Selector::from_object(&budget["spec"]["selector"]).matches(pod))
        .collect();
    match budgets.as_slice() {
        [] => Ok(()),
        [budget] => {
            let ready = has_condition(pod, "Ready", "True");
            let state = super::controllers::budgets::count(cluster, budget);
            // A pod that is not ready counts for nothing as long as enough others do.
            let allowed = state.allowed() > 0 || (!ready && state.healthy >= state.desired);
            if allowed {
                return Ok(());
            }
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            let cause = json!({ "reason": "DisruptionBudget", "message": format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                name(budget), state.desired, state.healthy
            ) });
            Err(Failure::new(429, "TooManyRequests", message).with_causes(vec![cause]))
        }
        _ => {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            Err(Failure::new(500, "InternalError", message))
        }
    }
}
