//! HTTP: from a request to an answer. Who asks is found out first, then what is asked, then whether they may.

mod answer;
mod body;
mod call;
mod leases;
mod route;
mod states;
mod tofu;
mod versions;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use crate::access::{AccessKeeper, Denied};
use crate::audit::{Audit, AuditEntry};
use crate::denials::{Denial, Denials};
use crate::metrics::Metrics;
use crate::service::StateService;
use answer::{Answer, Problem};
use call::Call;
use route::Target;
use strata_storage::embedded::CommitStats;
pub(crate) use versions::rfc3339;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) service: StateService,
    pub(crate) access: AccessKeeper,
    pub(crate) audit: Audit,
    pub(crate) denials: Denials,
    pub(crate) metrics: Metrics,
    pub(crate) commits: Option<Arc<CommitStats>>,
    /// The largest state, in bytes.
    pub(crate) max_state: u64,
    pub(crate) open_metrics: bool,
    /// Comparisons hold two states in memory: one at a time.
    pub(crate) comparing: tokio::sync::Semaphore,
}

/// A request whose sender is not known is not waited for as long, and not for as much.
const DRAINED_OF_NOBODY: u64 = 1024 * 1024;
const PATIENCE_WITH_NOBODY: Duration = Duration::from_secs(5);

pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>, peer: IpAddr) -> Answer {
    let started = Instant::now();
    let is_head = request.method() == Method::HEAD;
    let from = shared.access.sender(request.headers(), peer);
    let (head, mut body) = request.into_parts();
    let asks_first = head.headers.contains_key(EXPECT);
    let served = serve(&shared, head, &mut body, from).await;
    let mut answer = served.answer;
    shared.metrics.answered(served.action, answer.status().as_u16(), started.elapsed());
    if is_head {
        *answer.body_mut() = answer::empty();
    }
    if body::is_left(&body) {
        let (limit, patience) = match served.known {
            true => (shared.max_state.saturating_mul(2), body::PATIENCE),
            false => (DRAINED_OF_NOBODY, PATIENCE_WITH_NOBODY),
        };
        // Who waits to be told to go on sending is answered at once. What was not read is not taken for the next request: the
        // connection ends, and the client is told that it does.
        if asks_first || !body::drain(&mut body, limit, patience).await {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    answer
}

/// An answer, and what it was for.
struct Served {
    action: &'static str,
    answer: Answer,
    /// The sender is a user.
    known: bool,
}

impl Served {
    fn nobody(action: &'static str, answer: Answer) -> Self {
        Self { action, answer, known: false }
    }

    fn user(action: &'static str, answer: Answer) -> Self {
        Self { action, answer, known: true }
    }
}

async fn serve(shared: &Shared, head: Parts, body: &mut Incoming, from: IpAddr) -> Served {
    match (head.uri.path(), &head.method) {
        ("/healthz", &Method::GET | &Method::HEAD) => return Served::nobody("health", answer::text("ok\n")),
        ("/readyz", &Method::GET | &Method::HEAD) => return Served::nobody("health", ready(shared).await),
        ("/metrics", &Method::GET) if shared.open_metrics => {
            return Served::nobody("metrics", metrics(shared));
        }
        _ => {}
    }
    let user = match shared.access.identify(&head.headers, from).await {
        Ok(user) => user,
        Err(denied) => return Served::nobody("denied", deny(shared, denied, from)),
    };
    if head.uri.path() == "/metrics" && head.method == Method::GET {
        return Served::user("metrics", metrics(shared));
    }
    let target = match Target::read(head.uri.path()) {
        Ok(target) => target,
        Err(problem) => return Served::user("unknown", problem.into_answer()),
    };
    let Some(verb) = target.verb(&head.method) else {
        return Served::user("unknown", Problem::unknown_method().into_answer());
    };
    let state = target.name().map(|name| name.as_str().to_owned());
    let mut call = match Call::new(shared, user, head, body) {
        Ok(call) => call,
        Err(problem) => return Served::user(verb.as_str(), problem.into_answer()),
    };
    let answer = match call.perform(&target, verb).await {
        Ok(answer) => answer,
        Err(problem) => problem.into_answer(),
    };
    let details = std::mem::take(&mut call.audit);
    let entry = AuditEntry {
        time: rfc3339(shared.service.unix()),
        user: call.user.name.clone(),
        from,
        action: verb.as_str(),
        state,
        status: answer.status().as_u16(),
        details,
    };
    shared.audit.record(&entry).await;
    Served::user(verb.as_str(), answer)
}

/// Somebody who is not let in leaves no line in the audit log, or it could be filled by anybody: such requests are counted by where they
/// came from, and the counts have a log of their own.
fn deny(shared: &Shared, denied: Denied, from: IpAddr) -> Answer {
    shared.metrics.denied.fetch_add(1, Ordering::Relaxed);
    let problem = match denied {
        // Who sends nothing tries nothing.
        Denied::Nobody => Problem::new(StatusCode::UNAUTHORIZED, "authentication required")
            .hint("send a token, or a name and a password"),
        Denied::Wrong => {
            shared.denials.count(from, Denial::Wrong, shared.service.unix());
            Problem::new(StatusCode::UNAUTHORIZED, "name, password or token are wrong")
        }
        Denied::TooMany(wait) => {
            shared.denials.count(from, Denial::Throttled, shared.service.unix());
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords").retry_after(wait)
        }
        Denied::Busy => {
            shared.denials.count(from, Denial::Throttled, shared.service.unix());
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many passwords are being checked")
                .hint("try again in a moment; a token is never made to wait")
                .retry_after(Duration::from_secs(1))
        }
    };
    problem.into_answer()
}

async fn ready(shared: &Shared) -> Answer {
    match shared.service.storage.ready().await {
        Ok(()) => answer::text("ready\n"),
        // Everybody may ask: the reason is in the answers that users get, and names hosts and files.
        Err(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the storage takes no writes").into_answer(),
    }
}

fn metrics(shared: &Shared) -> Answer {
    let mut further = vec![(
        "strata_audit_failures_total",
        "Lines of the audit log that could not be written.",
        shared.audit.failures(),
    )];
    if let Some(commits) = &shared.commits {
        further.push(("strata_commits_total", "Transactions.", commits.commits.load(Ordering::Relaxed)));
        further.push(("strata_jobs_total", "Requests to the writer.", commits.jobs.load(Ordering::Relaxed)));
    }
    answer::text(&shared.metrics.render(&further))
}
