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
use std::time::Instant;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;

use crate::access::{AccessKeeper, Denied, User};
use crate::audit::{Audit, AuditDetails, AuditEntry};
use crate::metrics::Metrics;
use crate::service::StateService;
use crate::storage::embedded::CommitStats;
use answer::{Answer, Problem};
use call::Call;
use route::Target;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) service: StateService,
    pub(crate) access: AccessKeeper,
    pub(crate) audit: Audit,
    pub(crate) metrics: Metrics,
    pub(crate) commits: Option<Arc<CommitStats>>,
    /// The largest state, in bytes.
    pub(crate) max_state: u64,
    pub(crate) open_metrics: bool,
    /// Comparisons hold two states in memory: one at a time.
    pub(crate) comparing: tokio::sync::Semaphore,
}

pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>, from: IpAddr) -> Answer {
    let started = Instant::now();
    let is_head = request.method() == Method::HEAD;
    let (action, mut answer) = serve(&shared, request, from).await;
    shared.metrics.answered(action, answer.status().as_u16(), started.elapsed());
    if is_head {
        *answer.body_mut() = answer::empty();
    }
    answer
}

async fn serve(shared: &Shared, request: Request<Incoming>, from: IpAddr) -> (&'static str, Answer) {
    match (request.uri().path(), request.method()) {
        ("/healthz", &Method::GET | &Method::HEAD) => return ("health", answer::text("ok\n")),
        ("/readyz", &Method::GET | &Method::HEAD) => return ("health", ready(shared).await),
        ("/metrics", &Method::GET) if shared.open_metrics => return ("metrics", metrics(shared)),
        _ => {}
    }
    let user = match shared.access.identify(request.headers(), from).await {
        Ok(user) => user,
        Err(denied) => return ("denied", deny(shared, denied, from, &request).await),
    };
    if request.uri().path() == "/metrics" && request.method() == Method::GET {
        return ("metrics", metrics(shared));
    }
    let target = match Target::read(request.uri().path()) {
        Ok(target) => target,
        Err(problem) => return ("unknown", problem.into_answer()),
    };
    let Some(verb) = target.verb(request.method()) else {
        return ("unknown", Problem::unknown_method().into_answer());
    };
    let state = target.name().map(|name| name.as_str().to_owned());
    let mut call = match Call::new(shared, user, request) {
        Ok(call) => call,
        Err(problem) => return (verb.as_str(), problem.into_answer()),
    };
    let answer = match call.perform(&target, verb).await {
        Ok(answer) => answer,
        Err(problem) => {
            body::drain(&mut call.body, shared.max_state.saturating_mul(2)).await;
            problem.into_answer()
        }
    };
    let details = std::mem::take(&mut call.audit);
    record(shared, &call.user, from, verb.as_str(), state, answer.status(), details).await;
    (verb.as_str(), answer)
}

async fn record(
    shared: &Shared,
    user: &User,
    from: IpAddr,
    action: &'static str,
    state: Option<String>,
    status: StatusCode,
    details: AuditDetails,
) {
    let entry = AuditEntry {
        time: versions::rfc3339(shared.service.unix()),
        user: user.name.clone(),
        from,
        action,
        state,
        status: status.as_u16(),
        details,
    };
    shared.audit.record(&entry).await;
}

async fn deny(shared: &Shared, denied: Denied, from: IpAddr, request: &Request<Incoming>) -> Answer {
    shared.metrics.denied.fetch_add(1, Ordering::Relaxed);
    let problem = match denied {
        Denied::Nobody => Problem::new(StatusCode::UNAUTHORIZED, "who are you?")
            .hint("send a token, or a name and a password"),
        Denied::Wrong => Problem::new(StatusCode::UNAUTHORIZED, "name, password or token are wrong"),
        Denied::TooMany(wait) => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong passwords").retry_after(wait)
        }
    };
    let answer = problem.into_answer();
    // Who sends nothing tries nothing; a wrong secret is worth a line. The name is not: it may be a mistyped password.
    if request.headers().contains_key(http::header::AUTHORIZATION) {
        let nobody = User { name: String::new(), password: None, tokens: Vec::new(), rules: Vec::new() };
        record(shared, &nobody, from, "denied", None, answer.status(), AuditDetails::default()).await;
    }
    answer
}

async fn ready(shared: &Shared) -> Answer {
    match shared.service.storage.ready().await {
        Ok(()) => answer::text("ready\n"),
        Err(error) => Problem::from(error).status(StatusCode::SERVICE_UNAVAILABLE).into_answer(),
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
