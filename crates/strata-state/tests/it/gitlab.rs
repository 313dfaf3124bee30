//! States on GitLab.

use strata_state::{HttpStore, HttpStoreOptions, ProcessMark, Store, StoreError};

use crate::conformance::{self, KEYS, begin, owner};
use crate::gitlab_server::{GitLabServer, READER, USER};

fn store(url: &str, user: (&str, &str)) -> HttpStore {
    let known = KEYS.map(str::to_owned).to_vec();
    let options = HttpStoreOptions { known, ..HttpStoreOptions::new(url) };
    HttpStore::new(options.basic(user.0, &user.1.into())).unwrap()
}

#[tokio::test]
async fn gitlab_keeps_the_promises() {
    let url = GitLabServer::default().start().await;
    conformance::run_terse(&store(&url, USER)).await;
}

#[tokio::test]
async fn the_holder_is_told_as_far_as_gitlab_knows_it() {
    let server = GitLabServer::default();
    let store = store(&server.start().await, USER);
    let lock = store.lock("dev/web", owner("1")).await.unwrap();
    let error = store.lock("dev/web", owner("2")).await.err().expect("it is locked").to_string();
    assert_eq!(error, "the state `dev/web` is locked by ann since 2026-01-02T03:04:05.678Z");
    let holder = store.holder("dev/web").await.unwrap().unwrap();
    assert_eq!(holder.to_string(), "ann since 2026-01-02T03:04:05.678Z");
    assert_eq!(holder.owner.id, "1");
    store.break_lock("dev/web", "1").await.unwrap();
    assert!(matches!(lock.append_journal(&[begin(1)]).await, Err(StoreError::LockLost { .. })));
    assert_eq!(server.locks(), [] as [String; 0]);
}

/// What is needed to know that a holder is dead goes into the id, which has to fit.
#[tokio::test]
async fn the_id_of_a_lock_names_the_process() {
    let server = GitLabServer::default();
    let store = store(&server.start().await, USER);
    let process = ProcessMark::of(std::process::id());
    assert!(process.is_some());
    let alive = strata_state::LockOwner { pid: std::process::id(), process, ..owner("0123456789abcdef") };
    let lock = store.lock("dev/web", alive.clone()).await.unwrap();
    let [id] = server.locks().try_into().unwrap();
    assert!(id.starts_with("0123456789abcdef~") && id.len() < 200, "{id}");
    lock.append_journal(&[begin(1)]).await.unwrap();
    let error = store.lock("dev/web", owner("2")).await.err().expect("its process is alive");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    lock.release().await.unwrap();
    assert_eq!(server.locks(), [] as [String; 0]);
}

#[tokio::test]
async fn a_project_that_may_not_be_seen_is_not_taken_for_an_empty_state() {
    let url = GitLabServer::default().start().await;
    for (url, user) in
        [(url.clone(), None), (url.replace("/42/", "/43/"), Some(USER)), (url, Some(("ann", "wrong")))]
    {
        let store = match user {
            Some(user) => store(&url, user),
            None => HttpStore::new(HttpStoreOptions::new(&url)).unwrap(),
        };
        let error = store.read("dev/web").await.expect_err("nothing can be known of the state");
        let StoreError::Remote { hint, reason, .. } = error else { panic!("{error}") };
        assert!(reason.contains("404 Project Not Found") || reason.contains("401"), "{reason}");
        assert!(hint.is_some(), "{reason}");
        assert!(store.lock("dev/web", owner("1")).await.is_err());
    }
}

#[tokio::test]
async fn who_may_only_read_is_told_so() {
    let server = GitLabServer::default();
    let url = server.start().await;
    let lock = store(&url, USER).lock("dev/web", owner("1")).await.unwrap();
    lock.append_journal(&[begin(1)]).await.unwrap();
    lock.release().await.unwrap();
    let reader = store(&url, READER);
    assert_eq!(reader.read_journal("dev/web").await.unwrap(), [begin(1)]);
    let error = reader.lock("dev/web", owner("2")).await.err().expect("a reader may not lock");
    assert!(error.to_string().contains("403 Forbidden"), "{error}");
}
