//! The control interface: plain HTTP on the loopback, for tests and rehearsals. It is not part of the simulated API.
//!
//! `GET /_sim/export`, `GET /_sim/talos`, `GET|DELETE /_sim/requests`, `GET|POST|DELETE /_sim/faults`, `POST /_sim/faults/ID/release`,
//! `GET /_sim/wait-fault`, `POST /_sim/change`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Shared;

const MOST_BODY: usize = 16 << 20;

type Body = Full<Bytes>;
/// What becomes of a change, or why it cannot be made.
pub type Changing<'a> = Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>>;

/// What only the whole simulator can tell and do: the parts put together.
pub trait Whole: Send + Sync + 'static {
    /// What is at `GET /_sim/NAME`, if there is such a thing: `export`, or what a part reports of itself.
    fn look(&self, name: &str) -> Option<Value>;

    /// Someone else's change, as `POST /_sim/change` takes it.
    fn change<'a>(&'a self, change: &'a Value) -> Changing<'a>;
}

/// Serves the control interface until told to stop.
pub async fn serve<W: Whole>(
    whole: Arc<W>,
    shared: Arc<Shared>,
    port: TcpListener,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            accepted = port.accept() => if let Ok((stream, _)) = accepted {
                let whole: Arc<dyn Whole> = Arc::clone(&whole) as _;
                tokio::spawn(connection(whole, Arc::clone(&shared), stream, stop.clone()));
            },
            _ = stop.changed() => return,
        }
    }
}

async fn connection(
    whole: Arc<dyn Whole>,
    shared: Arc<Shared>,
    stream: TcpStream,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(move |request| answer(Arc::clone(&whole), Arc::clone(&shared), request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        _ = connection => {}
        _ = stop.changed() => {}
    }
}

fn reply(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn bad(text: impl std::fmt::Display) -> Response<Body> {
    reply(StatusCode::BAD_REQUEST, &json!({ "error": text.to_string() }))
}

async fn answer(
    whole: Arc<dyn Whole>,
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, MOST_BODY).collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(error) => return Ok(bad(error)),
    };
    let input = if body.is_empty() {
        Value::Null
    } else {
        match serde_json::from_slice::<Value>(&body) {
            Ok(value) => value,
            Err(error) => return Ok(bad(error)),
        }
    };
    let query: Vec<(String, String)> = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    let ask = |key: &str| query.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
    Ok(match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/_sim/requests") => reply(StatusCode::OK, &shared.count().to_json()),
        (&Method::DELETE | &Method::POST, "/_sim/requests") => {
            shared.count().reset();
            reply(StatusCode::OK, &json!({}))
        }
        (&Method::GET, "/_sim/faults") => reply(StatusCode::OK, &shared.faults.to_json()),
        (&Method::POST, "/_sim/faults") => match shared.faults.add(&input) {
            Ok(id) => reply(StatusCode::OK, &json!({ "id": id })),
            Err(text) => bad(text),
        },
        (&Method::DELETE, "/_sim/faults") => {
            shared.faults.clear();
            reply(StatusCode::OK, &json!({}))
        }
        (&Method::GET, "/_sim/wait-fault") => {
            let seconds =
                ask("timeout").and_then(|t| t.parse::<f64>().ok()).unwrap_or(30.0).clamp(0.0, 600.0);
            let id = ask("id").and_then(|id| id.parse::<u64>().ok());
            let hit = shared.faults.wait_hit(id, Duration::from_secs_f64(seconds)).await;
            reply(StatusCode::OK, &json!({ "hit": hit }))
        }
        (&Method::POST, "/_sim/change") => match whole.change(&input).await {
            Ok(done) => reply(StatusCode::OK, &done),
            Err(text) => bad(text),
        },
        (&Method::POST, path) if path.starts_with("/_sim/faults/") && path.ends_with("/release") => {
            let id = path.trim_start_matches("/_sim/faults/").trim_end_matches("/release").parse::<u64>();
            match id {
                Ok(id) if shared.faults.release(id) => reply(StatusCode::OK, &json!({})),
                _ => bad("no such fault"),
            }
        }
        (&Method::GET, path) => match path.strip_prefix("/_sim/").and_then(|name| whole.look(name)) {
            Some(seen) => reply(StatusCode::OK, &seen),
            None => nothing_at(path),
        },
        (_, path) => nothing_at(path),
    })
}

fn nothing_at(path: &str) -> Response<Body> {
    reply(StatusCode::NOT_FOUND, &json!({ "error": format!("nothing at {path}") }))
}
