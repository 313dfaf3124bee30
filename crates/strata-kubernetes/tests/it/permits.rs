//! Writes that must not come late, and attempts that are apart by chance.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use strata_kubernetes::{ApplyOptions, Deletion, KubeClient, KubeOptions, Object, ObjectRef, Trouble};
use strata_net::{Clock, WritePermit};

use crate::api::Api;

fn config_map() -> Object {
    Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "a"}, "data": {"k": "v"}})).unwrap()
}

fn writes(api: &Api) -> usize {
    api.log().iter().filter(|line| !line.starts_with("GET ")).count()
}

/// As long as the lease of a lock, and without one.
fn permits<'a>(may: &'a (dyn Fn() -> Result<(), String> + Send + Sync)) -> [WritePermit<'a>; 2] {
    [WritePermit::new(may, None), WritePermit::new(may, Some(Duration::from_secs(20)))]
}

/// The server fails, the client waits for its next attempt, and meanwhile the lease lapses: nothing more is sent.
#[tokio::test]
async fn a9_an_attempt_after_the_lease_is_not_sent() {
    for bounded in [0, 1] {
        let api = Api::start().await;
        let client = api.client();
        client.version().await.unwrap();
        api.with(|state| {
            state.hook = Some(Box::new(|asked, _| {
                (asked.method != "GET").then(|| (503, json!({"kind": "Status", "message": "not just now"})))
            }));
        });
        let left = AtomicUsize::new(1);
        let may = || match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err("the lease has lapsed".to_owned()),
        };
        let permit = &permits(&may)[bounded];
        let error = client.apply(permit, &config_map(), ApplyOptions::default()).await.unwrap_err();
        assert_eq!((error.trouble(), error.reason()), (Trouble::Withheld, "the lease has lapsed"));
        assert!(!error.is_transient() && !error.may_have_acted());
        assert_eq!(writes(&api), 1);
    }
}

#[tokio::test]
async fn a9_nothing_is_written_without_a_permit() {
    let api = Api::start().await;
    let client = api.client();
    let config_map = config_map();
    let what = ObjectRef::namespaced("v1", "ConfigMap", "a", "x");
    let no = || Err("the lease has lapsed".to_owned());
    for permit in &permits(&no) {
        let applied = client.apply(permit, &config_map, ApplyOptions::default()).await.err();
        let patched = client.patch(permit, &what, &json!({"data": {"k": "w"}})).await.err();
        let deleted = client.delete(permit, &what, None).await.err();
        for error in [applied, patched, deleted] {
            assert_eq!(error.unwrap().trouble(), Trouble::Withheld);
        }
    }
    assert_eq!(writes(&api), 0);
    let yes = || Ok(());
    for permit in &permits(&yes) {
        client.apply(permit, &config_map, ApplyOptions::default()).await.unwrap();
        assert_eq!(client.delete(permit, &what, None).await.unwrap(), Deletion::Begun);
    }
}

/// A clock that notes how long it was slept on.
#[derive(Default)]
struct Noting(Mutex<Vec<Duration>>);

#[async_trait]
impl Clock for Noting {
    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().iter().sum()
    }
    fn unix(&self) -> i64 {
        0
    }
    async fn sleep(&self, duration: Duration) {
        self.0.lock().unwrap().push(duration);
        tokio::task::yield_now().await;
    }
}

/// Many clients that failed together do not come back together.
#[tokio::test]
async fn a15_attempts_are_apart_by_chance() {
    let api = Api::start().await;
    let mut pauses = Vec::new();
    for chance in [1, 42] {
        api.with(|state| {
            state.faults.extend((0..3).map(|_| (503, json!({"kind": "Status", "message": "not just now"}))));
        });
        let clock = Arc::new(Noting::default());
        let options = KubeOptions { clock: clock.clone(), random: Arc::new(move || chance), ..api.options() };
        KubeClient::new(options).unwrap().version().await.unwrap();
        pauses.push(clock.0.lock().unwrap().clone());
    }
    assert_eq!((pauses[0].len(), pauses[1].len()), (3, 3));
    assert!(pauses[0].iter().zip(&pauses[1]).all(|(one, other)| one != other), "{pauses:?}");
}
