//! A small server that answers as GitLab's API for Terraform states does: of a lock it keeps the id, the user and the time, and gives
//! everything else back as the one who asks had sent it; a state that was locked and never written is there and empty; who may not see
//! the project is told that there is none.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use serde_json::{Value, json};

/// The user whose token may write; `reader` may only read.
pub(crate) const USER: (&str, &str) = ("ann", "glpat-ann");
pub(crate) const READER: (&str, &str) = ("reader", "glpat-reader");

const PROJECT: &str = "/api/v4/projects/42/terraform/state/";
const LOCKED_AT: &str = "2026-01-02T03:04:05.678Z";

#[derive(Default)]
struct Kept {
    file: Option<Bytes>,
    /// The id of the lock, and whose it is.
    lock: Option<(String, String)>,
    serials: BTreeSet<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct GitLabServer {
    states: Arc<Mutex<HashMap<String, Kept>>>,
}

impl GitLabServer {
    /// Gives the address of its states, as it stands in strata.yaml.
    pub(crate) async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}{PROJECT}{{state}}")
    }

    /// The ids of all locks that were ever asked for and are held.
    pub(crate) fn locks(&self) -> Vec<String> {
        self.states.lock().unwrap().values().filter_map(|kept| kept.lock.clone()).map(|(id, _)| id).collect()
    }
}

fn told(status: StatusCode, message: &str) -> Response {
    (status, json!({"message": message}).to_string()).into_response()
}

fn user(headers: &HeaderMap) -> Result<&'static str, (StatusCode, &'static str)> {
    let Some(given) = headers.get("authorization") else {
        return Err((StatusCode::NOT_FOUND, "404 Project Not Found"));
    };
    let known = [USER, READER].into_iter().find(|(name, token)| {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{token}"));
        *given == format!("Basic {pair}")
    });
    known.map(|(name, _)| name).ok_or((StatusCode::UNAUTHORIZED, "401 Unauthorized"))
}

/// What a request has as JSON; GitLab takes parameters from there, and only if it is said to be JSON.
fn parameters(headers: &HeaderMap, body: &[u8]) -> Value {
    match headers.get("content-type") {
        Some(kind) if kind == "application/json" => serde_json::from_slice(body).unwrap_or_default(),
        _ => Value::Null,
    }
}

fn id_in_query(uri: &Uri) -> Option<String> {
    let pair = uri.query()?.split('&').find_map(|pair| pair.strip_prefix("ID="))?;
    Some(percent_decode(pair))
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&more[..2]).unwrap(), 16).unwrap());
            rest = &more[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

async fn answer(
    State(server): State<GitLabServer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let user = match user(&headers) {
        Ok(user) => user,
        Err((status, message)) => return told(status, message),
    };
    let Some(place) = uri.path().strip_prefix(PROJECT) else {
        return told(StatusCode::NOT_FOUND, "404 Project Not Found");
    };
    let (name, at_lock) = match place.strip_suffix("/lock") {
        Some(name) => (name, true),
        None => (place, false),
    };
    // A name is one segment.
    if name.is_empty() || name.contains('/') {
        return (StatusCode::NOT_FOUND, json!({"error": "404 Not Found"}).to_string()).into_response();
    }
    if method != Method::GET && user == READER.0 {
        return told(StatusCode::FORBIDDEN, "403 Forbidden");
    }
    let mut states = server.states.lock().unwrap();
    let given = parameters(&headers, &body);
    match (method.as_str(), at_lock) {
        ("GET", false) => match states.get(name) {
            None => told(StatusCode::NOT_FOUND, "404 Not found"),
            Some(Kept { file: None, .. }) => StatusCode::NO_CONTENT.into_response(),
            Some(Kept { file: Some(file), .. }) => file.clone().into_response(),
        },
        ("POST", true) => lock(states.entry(name.to_owned()).or_default(), user, &given),
        ("DELETE", true) => {
            let kept = states.entry(name.to_owned()).or_default();
            let id = given["ID"].as_str().map(str::to_owned).or_else(|| id_in_query(&uri));
            // A forced unlock sends no id.
            match (id, &kept.lock) {
                (Some(id), Some((held, _))) if id == *held => {}
                (Some(_), _) => return told(StatusCode::CONFLICT, "409 Conflict"),
                (None, _) => {}
            }
            kept.lock = None;
            StatusCode::OK.into_response()
        }
        ("POST", false) => {
            if body.is_empty() {
                return StatusCode::NO_CONTENT.into_response();
            }
            let kept = states.entry(name.to_owned()).or_default();
            let held = kept.lock.as_ref().map(|(id, _)| id.clone());
            if held != id_in_query(&uri) {
                return told(StatusCode::CONFLICT, "409 Conflict");
            }
            let Some(serial) = given["serial"].as_u64() else {
                return (StatusCode::BAD_REQUEST, json!({"error": "serial is missing"}).to_string())
                    .into_response();
            };
            // One version for each serial, for ever.
            if !kept.serials.insert(serial) {
                return told(StatusCode::UNPROCESSABLE_ENTITY, "Version has already been taken");
            }
            kept.file = Some(body);
            StatusCode::OK.into_response()
        }
        _ => {
            (StatusCode::METHOD_NOT_ALLOWED, json!({"error": "405 Not Allowed"}).to_string()).into_response()
        }
    }
}

fn lock(kept: &mut Kept, user: &str, given: &Value) -> Response {
    for name in ["ID", "Operation", "Info", "Who", "Version", "Created", "Path"] {
        if !given[name].is_string() {
            let error = format!("{name} is missing");
            return (StatusCode::BAD_REQUEST, json!({"error": error}).to_string()).into_response();
        }
    }
    let id = given["ID"].as_str().unwrap();
    if id.len() > 255 {
        return (StatusCode::BAD_REQUEST, json!({"error": "ID is too long"}).to_string()).into_response();
    }
    let status = if kept.lock.is_some() { StatusCode::LOCKED } else { StatusCode::OK };
    let (held, holder) = kept.lock.get_or_insert_with(|| (id.to_owned(), user.to_owned()));
    let shown = json!({
        "Operation": given["Operation"], "Info": given["Info"], "Version": given["Version"], "Path": given["Path"],
        "ID": held, "Who": holder, "Created": LOCKED_AT,
    });
    (status, shown.to_string()).into_response()
}
