//! Waiting: until it is so, until it cannot be, until the time is over.

use std::sync::Mutex;

use serde_json::json;
use strata_kubernetes::{ObjectRef, Patience, Trouble, Until};

use crate::api::{Api, silent};

const PATH: &str = "/apis/apps/v1/namespaces/a/deployments/d";

fn deployment() -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "Deployment", "a", "d")
}

fn live(available: &str) -> serde_json::Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "a", "generation": 1},
        "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "updatedReplicas": 1,
            "conditions": [{"type": "Available", "status": available, "reason": "Minimum", "message": "no pod runs"}]}})
}

#[tokio::test]
async fn looks_until_it_is_so_and_tells_what_is_missing() {
    let api = Api::start().await;
    let mut looks = 0;
    api.with(|state| {
        state.hook = Some(Box::new(move |asked, state| {
            if asked.path != PATH {
                return None;
            }
            looks += 1;
            match looks {
                1 => return None,
                2 => drop(state.objects.insert(PATH.to_owned(), live("False"))),
                3 => return Some((503, json!({"message": "etcd leader changed"}))),
                _ => drop(state.objects.insert(PATH.to_owned(), live("True"))),
            }
            None
        }));
    });
    let told = Mutex::new(Vec::new());
    let progress = |progress: &strata_kubernetes::Progress<'_>| {
        told.lock().unwrap().push(format!("{}: {}", progress.waiting_for, progress.seen));
    };
    let found =
        api.client().wait_until(&deployment(), &Until::Available, Patience::seconds(60), &progress).await;
    assert_eq!(found.unwrap().unwrap().name(), "d");
    let told = told.into_inner().unwrap();
    assert_eq!(told[0], "Deployment `a/d`: it is not there");
    assert_eq!(told[1], "Deployment `a/d`: Minimum: no pod runs");
}

#[tokio::test]
async fn the_end_of_patience_says_what_was_seen_last() {
    let api = Api::start().await;
    api.with(|state| state.objects.insert(PATH.to_owned(), live("False")));
    let error = api
        .client()
        .wait_until(&deployment(), &Until::Available, Patience::seconds(20), &silent)
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::NotReady);
    assert_eq!(
        error.to_string(),
        "cannot wait for Deployment `a/d` at `192.0.2.40:6443`: not within 20 s; last seen: Minimum: no pod runs"
    );
}

#[tokio::test]
async fn what_cannot_come_is_not_waited_for() {
    let api = Api::start().await;
    api.with(|state| {
        state.hook =
            Some(Box::new(|asked, _| (asked.path == PATH).then(|| (403, json!({"message": "forbidden"})))))
    });
    let error = api
        .client()
        .wait_until(&deployment(), &Until::Exists, Patience::seconds(60), &silent)
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Trouble::Refused);
    assert_eq!(api.log().iter().filter(|line| line.ends_with(PATH)).count(), 1);
}

#[tokio::test]
async fn an_api_that_is_starting_is_waited_for() {
    let api = Api::start().await;
    api.with(|state| state.faults.extend((0..30).map(|_| (503, json!("starting")))));
    api.client().wait_ready(Patience::seconds(600), &silent).await.unwrap();
    api.with(|state| state.faults.extend((0..3000).map(|_| (503, json!("starting")))));
    let error = api.client().wait_ready(Patience::seconds(60), &silent).await.unwrap_err();
    assert!(error.to_string().ends_with("HTTP 503 Service Unavailable: starting"), "{error}");
}
