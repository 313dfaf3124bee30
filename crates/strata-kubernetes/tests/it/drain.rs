//! Draining: who leaves, who stays, who blocks, and that budgets are kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use strata_kubernetes::{DrainError, DrainOptions, Patience};
use strata_net::WritePermit;

use crate::api::{Api, silent};

fn pod(name: &str, owner: Option<&str>, rest: Value) -> (String, Value) {
    let mut metadata = json!({"name": name, "namespace": "a", "uid": name});
    if let Some(kind) = owner {
        metadata["ownerReferences"] = json!([{"kind": kind, "name": "o", "controller": true}]);
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
    for (pointer, value) in rest.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    (format!("/api/v1/namespaces/a/pods/{name}"), pod)
}

fn options() -> DrainOptions {
    DrainOptions::new(Patience::seconds(60))
}

fn free() -> Result<WritePermit<'static>, String> {
    Ok(WritePermit::unbound())
}

async fn api() -> Api {
    let api = Api::start().await;
    api.with(|state| {
        state.objects.extend([
            pod("web-1", Some("ReplicaSet"), json!({})),
            pod("web-2", Some("ReplicaSet"), json!({"/spec/volumes": [{"name": "cache", "emptyDir": {}}]})),
            pod("agent", Some("DaemonSet"), json!({})),
            pod(
                "apiserver",
                Some("Node"),
                json!({"/metadata/annotations": {"kubernetes.io/config.mirror": "x"}}),
            ),
            pod("job", Some("Job"), json!({"/status/phase": "Succeeded"})),
            pod("elsewhere", Some("ReplicaSet"), json!({"/spec/nodeName": "n2"})),
        ]);
    });
    api
}

fn evictions(api: &Api) -> Vec<String> {
    api.log().into_iter().filter(|line| line.starts_with("POST")).collect()
}

#[tokio::test]
async fn pods_leave_and_those_of_the_node_stay() {
    let api = api().await;
    let asked = AtomicUsize::new(0);
    let guard = || {
        asked.fetch_add(1, Ordering::Relaxed);
        free()
    };
    let report = api.client().drain("n1", &options(), &guard, &silent).await.unwrap();
    let names: Vec<_> = report.evicted.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-1", "web-2"]);
    assert_eq!(asked.into_inner(), 4, "before two looks and two evictions");
    let sent = api.with(|state| state.objects.keys().filter(|path| path.contains("/pods/")).count());
    assert_eq!(sent, 4);
}

#[tokio::test]
async fn a_budget_is_waited_for() {
    let api = api().await;
    let mut refusals = 0;
    api.with(|state| {
        state.hook = Some(Box::new(move |asked, _| {
            let blocked = asked.path.ends_with("web-1/eviction") && refusals < 3;
            refusals += usize::from(blocked);
            blocked.then(|| (429, json!({"reason": "TooManyRequests", "message": "Cannot evict pod as it would violate the pod's disruption budget."})))
        }));
    });
    api.client().drain("n1", &options(), &free, &silent).await.unwrap();
    assert_eq!(evictions(&api).iter().filter(|line| line.contains("web-1")).count(), 4);
}

#[tokio::test]
async fn a_budget_that_never_gives_way_is_named() {
    let api = api().await;
    api.with(|state| {
        state.hook = Some(Box::new(|asked, _| {
            asked
                .path
                .ends_with("web-1/eviction")
                .then(|| (429, json!({"message": "the disruption budget web needs 2 healthy pods"})))
        }));
    });
    let error = api.client().drain("n1", &options(), &free, &silent).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "node `n1` cannot be drained: pod `a/web-1`: the disruption budget web needs 2 healthy pods"
    );
    let DrainError::Blocked(report) = error else { panic!("not blocked") };
    assert_eq!(report.evicted.len(), 1);
}

#[tokio::test]
async fn what_would_be_lost_blocks_before_anything_leaves() {
    let api = api().await;
    api.with(|state| state.objects.extend([pod("alone", None, json!({}))]));
    let error = api.client().drain("n1", &options(), &free, &silent).await.unwrap_err();
    assert!(
        error.to_string().contains("pod `a/alone`: no controller would start it again elsewhere"),
        "{error}"
    );
    assert!(evictions(&api).is_empty());
    let all = DrainOptions { unmanaged: true, ..options() };
    assert_eq!(api.client().drain("n1", &all, &free, &silent).await.unwrap().evicted.len(), 3);
    let api = self::api().await;
    let careful = DrainOptions { local_data: false, ..options() };
    let plan = api.client().plan_drain("n1", &careful).await.unwrap();
    assert_eq!(plan.block[0].why, "its data in an `emptyDir` would be lost");
    assert_eq!((plan.evict.len(), plan.stay.len()), (1, 3));
}

#[tokio::test]
async fn nothing_is_written_after_a_no() {
    let api = api().await;
    let no = || Err("the lease has lapsed".to_owned());
    let error = api.client().drain("n1", &options(), &no, &silent).await.unwrap_err();
    assert!(matches!(error, DrainError::Stopped(reason) if reason == "the lease has lapsed"));
    assert!(evictions(&api).is_empty());
}
