//! The control interface: plain HTTP on the loopback, for tests and rehearsals. It is not part of the simulated API.
//!
//! `GET /_sim/export`, `GET /_sim/talos`, `GET|DELETE /_sim/requests`, `GET|POST|DELETE /_sim/faults`, `POST /_sim/faults/ID/release`,
//! `GET /_sim/wait-fault`, `POST /_sim/change`.

pub mod change;
pub mod faults;
pub mod requests;
pub mod restore;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::shared::Shared;
use crate::wire::{Body, Plain};

const MOST_BODY: usize = 16 << 20;

fn reply(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn bad(text: impl std::fmt::Display) -> Response<Body> {
    reply(StatusCode::BAD_REQUEST, &json!({ "error": text.to_string() }))
}

pub(crate) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Plain {
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
        (&Method::GET, "/_sim/export") => {
            shared.settle();
            reply(StatusCode::OK, &shared.world().export())
        }
        (&Method::GET, "/_sim/talos") => {
            shared.settle();
            reply(StatusCode::OK, &shared.world().talos_report())
        }
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
        (&Method::POST, "/_sim/change") => match change::apply(&shared, &input).await {
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
        (_, path) => reply(StatusCode::NOT_FOUND, &json!({ "error": format!("nothing at {path}") })),
    })
}
