//! HTTP over TLS: connections of clients, requests with their faults, and the streams of watches.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, UnixTime};
use strata_sim_core::{Cut, Verb, Verdict, Visit};
use tokio::sync::mpsc;

use super::failure::Failure;
use super::handle::{Reply, handle};
use super::request::{Query, Request, ResourcePath};
use super::tls;
use super::watch::Watch;
use crate::Clusters;

/// Larger bodies are refused, as etcd would.
const MOST_BODY: usize = 3 << 20;
/// A watch looks for changes at least this often.
const LOOK: Duration = Duration::from_millis(100);
/// Without another word a watch ends after this many seconds.
const LONGEST_WATCH: u64 = 1800;

type Answer = Response<Either<Full<Bytes>, Lines>>;

/// The body of a watch.
struct Lines(mpsc::Receiver<Bytes>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|line| line.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// One client: its certificates, and where it connected to.
struct Peer {
    host: String,
    cluster: String,
    certificates: Vec<CertificateDer<'static>>,
}

/// Answers a connection until it ends.
pub async fn serve(clusters: Arc<Clusters>, visit: Visit) {
    clusters.shared.advance();
    let facts = clusters.state().facts_at(&visit.host);
    let Some(facts) = facts else { return };
    // Without a usable authority there is no API server.
    let Ok(acceptor) = tls::acceptor(&facts, &visit.host) else { return };
    let Ok(stream) = acceptor.accept(visit.stream).await else { return };
    let shown = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let certificates = shown.iter().map(|certificate| certificate.clone().into_owned()).collect();
    let peer = Arc::new(Peer { host: visit.host, cluster: facts.id, certificates });
    let service = service_fn(move |request| answer(Arc::clone(&clusters), Arc::clone(&peer), request));
    // A connection that was cut ends with an error, which is the point.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    clusters: Arc<Clusters>,
    peer: Arc<Peer>,
    request: http::Request<Incoming>,
) -> Result<Answer, Cut> {
    let request = match read(request).await {
        Ok(request) => request,
        Err(failure) => return Ok(object(failure.code, &failure.to_json())),
    };
    let verb = match request.method.as_str() {
        "GET" | "HEAD" => Verb::Get,
        "POST" => Verb::Post,
        "PUT" => Verb::Put,
        "PATCH" => Verb::Patch,
        "DELETE" => Verb::Delete,
        _ => return Ok(object(405, &super::failure::not_allowed().to_json())),
    };
    let template =
        ResourcePath::parse(&request.path).map_or_else(|| request.path.clone(), |place| place.template());
    let shared = &clusters.shared;
    shared.count().add(verb, format!("/kubernetes/{{host}}{template}"));
    let after = match shared.faults.arrive(verb, &format!("/kubernetes/{}{}", peer.host, request.path)).await
    {
        Verdict::Pass(after) => after,
        // There are no tasks here.
        Verdict::Task(_) => None,
        Verdict::Cut | Verdict::Late(_) => return Err(Cut),
        Verdict::Refuse(status, text) => {
            let failure = Failure::new(status, super::failure::reason_of(status), text.trim_end());
            return Ok(object(status, &failure.to_json()));
        }
    };
    // Once it arrived, a request is carried out even if its client goes away.
    let task = tokio::spawn(carry_out(Arc::clone(&clusters), peer, request));
    let reply = task.await.map_err(|_| Cut)?;
    let cut = match after {
        Some(fault) => shared.faults.finish(fault).await,
        None => false,
    };
    if cut { Err(Cut) } else { reply }
}

async fn read(request: http::Request<Incoming>) -> Result<Request, Failure> {
    let (parts, body) = request.into_parts();
    let text = |headers: &HeaderMap, name: HeaderName| {
        headers.get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned()).unwrap_or_default()
    };
    let body = match Limited::new(body, MOST_BODY).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => {
            let message = format!("Request entity too large: limit is {MOST_BODY} ({error})");
            return Err(Failure::new(413, "RequestEntityTooLarge", message));
        }
    };
    // Tokens of service accounts are not given out, so none is good.
    if parts.headers.contains_key(AUTHORIZATION) {
        return Err(super::failure::unauthorized());
    }
    Ok(Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        content_type: text(&parts.headers, CONTENT_TYPE),
        accept: text(&parts.headers, ACCEPT),
        user_agent: text(&parts.headers, USER_AGENT),
        body,
        user: None,
    })
}

async fn carry_out(clusters: Arc<Clusters>, peer: Arc<Peer>, mut request: Request) -> Result<Answer, Cut> {
    let reply = {
        clusters.shared.advance();
        let moment = clusters.moment();
        let mut state = clusters.state();
        // The server that was connected to may be down by now, or belong to another cluster.
        let facts = state.facts_at(&peer.host).filter(|facts| facts.id == peer.cluster).ok_or(Cut)?;
        let seconds = u64::try_from(moment.ms / 1000).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        request.user = tls::user(&peer.certificates, &facts.ca_pem, now);
        let cluster = state.clusters.get_mut(&peer.cluster).ok_or(Cut)?;
        let reply = handle(cluster, &request, moment);
        state.advance(&moment);
        reply
    };
    if request.method != "GET" {
        clusters.shared.changed();
    }
    Ok(match reply {
        Reply::Object(status, value) => object(status, &value),
        Reply::Text(status, text) => {
            response(status, "text/plain; charset=utf-8", Either::Left(Full::new(Bytes::from(text))))
        }
        Reply::Watch(watch) => {
            let (lines, body) = mpsc::channel(16);
            tokio::spawn(follow(clusters, peer, *watch, lines));
            response(200, "application/json", Either::Right(Lines(body)))
        }
    })
}

fn object(status: u16, value: &serde_json::Value) -> Answer {
    let mut answer =
        response(status, "application/json", Either::Left(Full::new(Bytes::from(format!("{value}\n")))));
    if status == 429 {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

fn response(status: u16, kind: &'static str, body: Either<Full<Bytes>, Lines>) -> Answer {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Sends what changes until the client goes, the time is over, or the server is.
async fn follow(clusters: Arc<Clusters>, peer: Arc<Peer>, mut watch: Watch, lines: mpsc::Sender<Bytes>) {
    let seconds = watch.seconds.unwrap_or(LONGEST_WATCH).min(LONGEST_WATCH);
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    loop {
        let changed = clusters.shared.until_changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let text = {
            clusters.shared.advance();
            let state = clusters.state();
            let here = state.facts_at(&peer.host).is_some_and(|facts| facts.id == peer.cluster);
            match state.clusters.get(&peer.cluster) {
                Some(cluster) if here => watch.follow(cluster),
                _ => watch.ended = true,
            }
            watch.take()
        };
        if let Some(text) = text
            && lines.send(Bytes::from(text)).await.is_err()
        {
            return;
        }
        if watch.ended || tokio::time::Instant::now() >= end {
            return;
        }
        tokio::select! {
            () = changed => {}
            () = tokio::time::sleep(LOOK) => {}
            () = tokio::time::sleep_until(end) => {}
            () = lines.closed() => return,
        }
    }
}
