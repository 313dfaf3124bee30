//! Limits, faults, and what is said of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use strata_forge::{ErrorKind, Forge, ForgeOptions, Outcome, Status, connect};
use strata_net::{Clock, TlsTrust};
use strata_testkit::{Dialect, FakeForge, Fault};

use crate::conformance::{commit, options};

/// A clock on which sleeping costs nothing and is remembered.
#[derive(Default)]
struct Slept(Mutex<Vec<Duration>>);

const NOW: i64 = 1_790_000_000;

#[async_trait::async_trait]
impl Clock for Slept {
    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().iter().sum()
    }
    fn unix(&self) -> i64 {
        NOW
    }
    async fn sleep(&self, duration: Duration) {
        self.0.lock().unwrap().push(duration);
    }
}

struct Desk {
    server: FakeForge,
    forge: Box<dyn Forge>,
    clock: Arc<Slept>,
}

fn desk(dialect: Dialect) -> Desk {
    let server = FakeForge::start(dialect);
    let token = server.user("strata", true, false);
    server.user("ann", true, false);
    server.open("ann", &commit('a'));
    let clock = Arc::new(Slept::default());
    let own = options(dialect, server.url(), &token);
    let forge = connect(ForgeOptions { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..own }).unwrap();
    Desk { server, forge, clock }
}

fn fault(status: u16, headers: &[(&'static str, &str)]) -> Fault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Fault { status, headers, is_done: false }
}

#[tokio::test]
async fn a_forge_is_given_the_time_that_it_asks_for() {
    for dialect in Dialect::ALL {
        let Desk { server, forge, clock } = desk(dialect);
        server.fault(fault(429, &[("retry-after", "7")]));
        server.fault(fault(
            403,
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &(NOW + 60).to_string())],
        ));
        // Even a comment: it was not written.
        forge.add_comment(1, "hello").await.unwrap();
        assert_eq!(
            *clock.0.lock().unwrap(),
            [Duration::from_secs(7), Duration::from_secs(61)],
            "{dialect:?}"
        );
        assert_eq!(server.comments(1).len(), 1, "{dialect:?}");
        // An hour is too long for a pipeline.
        server.fault(fault(429, &[("retry-after", "3600")]));
        let error = forge.request(1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Limited, "{dialect:?}: {error}");
        assert!(error.to_string().contains("3600 s"), "{dialect:?}: {error}");
    }
}

#[tokio::test]
async fn what_may_have_arrived_is_sent_again_only_where_that_is_harmless() {
    for dialect in Dialect::ALL {
        let Desk { server, forge, .. } = desk(dialect);
        server.fault(fault(502, &[]));
        server.fault(fault(503, &[]));
        forge.request(1).await.unwrap();
        server.fault(fault(504, &[]));
        let status = Status { outcome: Outcome::Success, context: "c".into(), description: "d".into() };
        forge.set_status(&commit('a'), &status).await.unwrap();
        server.fault(fault(502, &[]));
        let error = forge.add_comment(1, "hello").await.unwrap_err();
        assert!(error.may_have_arrived && server.comments(1).is_empty(), "{dialect:?}: {error}");
        for _ in 0..4 {
            server.fault(fault(502, &[]));
        }
        assert_eq!(forge.request(1).await.unwrap_err().kind, ErrorKind::Unexpected, "{dialect:?}");
    }
}

#[tokio::test]
async fn every_failure_has_a_kind_and_says_what_helps() {
    for dialect in Dialect::ALL {
        let Desk { server, forge, .. } = desk(dialect);
        for (status, kind) in
            [(401, ErrorKind::Unauthorized), (403, ErrorKind::Forbidden), (404, ErrorKind::NotFound)]
        {
            server.fault(fault(status, &[]));
            let error = forge.request(1).await.unwrap_err();
            assert_eq!(error.kind, kind, "{dialect:?}");
            assert!(error.hint().unwrap().contains("_TOKEN`"), "{dialect:?}: {:?}", error.hint());
            assert!(
                !format!("{error} {error:?} {:?}", error.hint()).contains("token-of-"),
                "{dialect:?}: {error:?}"
            );
        }
        server.fault(fault(422, &[]));
        assert_eq!(forge.request(1).await.unwrap_err().kind, ErrorKind::Rejected, "{dialect:?}");
        // Pages are followed at the endpoint itself, wherever the answer points.
        server.comment(1, "ann", "1");
        for text in ["2", "3", "4", "5", "6", "7"] {
            server.comment(1, "ann", text);
        }
        assert_eq!(forge.comments(1).await.unwrap().len(), 7, "{dialect:?}");
        let gone = server.url().to_owned();
        drop(server);
        let forge =
            connect(ForgeOptions { patience: Duration::ZERO, ..options(dialect, &gone, "t") }).unwrap();
        let error = forge.request(1).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unreachable, "{dialect:?}: {error}");
    }
}

#[test]
fn what_is_no_repository_is_refused_before_anything_is_sent() {
    for name in ["infra", "ops/../infra", "ops//infra", "", "a/b/c"] {
        let own = ForgeOptions {
            repository: name.to_owned(),
            ..options(Dialect::GitHub, "https://192.0.2.1", "t")
        };
        assert_eq!(connect(own).err().map(|error| error.kind), Some(ErrorKind::Settings), "{name}");
    }
    let tls = TlsTrust::Ca(b"no certificate".to_vec());
    let own = ForgeOptions { tls, ..options(Dialect::Gitea, "https://192.0.2.1", "t") };
    assert_eq!(connect(own).err().map(|error| error.kind), Some(ErrorKind::Settings));
    let own = options(Dialect::GitHub, "https://192.0.2.1", "a\nb");
    assert_eq!(connect(own).err().map(|error| error.kind), Some(ErrorKind::Settings));
}
