//! A small server that speaks the protocol of OpenTofu's backend `http` and nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use md5::Digest as _;
use serde_json::Value;

#[derive(Default)]
struct Kept {
    state: Option<Bytes>,
    lock: Option<Value>,
    serials: BTreeSet<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct TofuServer {
    states: Arc<Mutex<HashMap<String, Kept>>>,
}

impl TofuServer {
    /// Gives its address, without a slash at the end.
    pub(crate) async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    /// Changes what is kept behind everybody's back.
    pub(crate) fn tamper(&self, path: &str, change: impl FnOnce(Value) -> Value) {
        let mut states = self.states.lock().unwrap();
        let kept = states.get_mut(path).unwrap();
        let value = serde_json::from_slice(kept.state.as_ref().unwrap()).unwrap();
        kept.state = Some(serde_json::to_vec(&change(value)).unwrap().into());
    }
}

async fn answer(
    State(server): State<TofuServer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if headers.get("authorization").is_none_or(|value| value != "Basic bWU6c2VjcmV0") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut states = server.states.lock().unwrap();
    let (path, at_lock) = match uri.path().strip_suffix("/lock") {
        Some(path) => (path, true),
        None => (uri.path(), false),
    };
    if path.starts_with("/v1/") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let kept = states.entry(path.to_owned()).or_default();
    match (method.as_str(), at_lock) {
        ("GET", false) => match &kept.state {
            Some(state) => state.clone().into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        },
        ("LOCK", false) | ("POST", true) => match &kept.lock {
            Some(holder) => (StatusCode::LOCKED, holder.to_string()).into_response(),
            None => {
                kept.lock = Some(serde_json::from_slice(&body).unwrap());
                StatusCode::OK.into_response()
            }
        },
        ("UNLOCK", false) | ("DELETE", true) => {
            let info: Value = serde_json::from_slice(&body).unwrap_or_default();
            match kept.lock.take() {
                Some(holder) if holder["ID"] != info["ID"] => {
                    kept.lock = Some(holder);
                    StatusCode::CONFLICT.into_response()
                }
                _ => StatusCode::OK.into_response(),
            }
        }
        ("POST", false) => {
            let sum = base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(&body));
            if headers.get("content-md5").is_none_or(|given| *given != sum) {
                return StatusCode::BAD_REQUEST.into_response();
            }
            let id = uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ID=")));
            match (&kept.lock, id) {
                (Some(holder), Some(id)) if holder["ID"] == id => {}
                (Some(holder), _) => return (StatusCode::LOCKED, holder.to_string()).into_response(),
                (None, _) => return StatusCode::CONFLICT.into_response(),
            }
            let state: Value = serde_json::from_slice(&body).unwrap();
            // One document for each serial, for ever.
            if !kept.serials.insert(state["serial"].as_u64().unwrap()) {
                return StatusCode::BAD_REQUEST.into_response();
            }
            kept.state = Some(body);
            StatusCode::OK.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
