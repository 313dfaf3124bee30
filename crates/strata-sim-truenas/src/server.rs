//! WebSocket over TLS: one call after another, with their faults.

use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use strata_sim_core::{Verb, Verdict, Visit, server_config};
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::error::{EACCES, EBUSY, EEXIST, EFAULT, ENOENT, Error};
use super::rpc::{self, Call, Session};
use crate::StorageServer;

/// A message may be this long.
const MOST_MESSAGE: usize = 1 << 20;

/// Answers a connection until it ends.
pub async fn serve(server: Arc<StorageServer>, visit: Visit) {
    let tls = TlsAcceptor::from(server_config());
    let Ok(stream) = tls.accept(visit.stream).await else { return };
    let limits = WebSocketConfig::default().max_message_size(Some(MOST_MESSAGE));
    let Ok(mut socket) =
        tokio_tungstenite::accept_hdr_async_with_config(stream, check_path, Some(limits)).await
    else {
        return;
    };
    let mut session = Session::default();
    while let Some(Ok(message)) = socket.next().await {
        let text = match message {
            Message::Text(text) => text,
            Message::Close(_) => return,
            _ => continue,
        };
        let call = match Call::read(&text) {
            Ok(call) => call,
            Err(None) => continue,
            Err(Some(refusal)) => {
                if socket.send(Message::text(refusal.to_string())).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let Some(answer) = answer(&server, &visit.host, &mut session, &call).await else { return };
        if call.id.is_some() && socket.send(Message::text(answer.to_string())).await.is_err() {
            return;
        }
    }
}

/// Only the versioned API is served.
#[allow(clippy::result_large_err)]
fn check_path(request: &Request, response: Response) -> Result<Response, ErrorResponse> {
    let version = request.uri().path().strip_prefix("/api/").unwrap_or_default();
    if version == "current" || version.starts_with("v25") {
        return Ok(response);
    }
    let mut refusal = ErrorResponse::new(Some("404: Not Found".to_owned()));
    *refusal.status_mut() = http::StatusCode::NOT_FOUND;
    Err(refusal)
}

/// The error that stands for a status of HTTP.
fn number_of(status: u16) -> i64 {
    match status {
        401 | 403 => EACCES,
        404 => ENOENT,
        409 => EEXIST,
        429 | 503 => EBUSY,
        _ => EFAULT,
    }
}

/// None if the connection is to be cut.
async fn answer(server: &StorageServer, host: &str, session: &mut Session, call: &Call) -> Option<Value> {
    let shared = &server.shared;
    shared.count().add(call.verb(), format!("/truenas/{{host}}/{}", call.method));
    let id = call.id.clone().unwrap_or_default();
    let after = match shared.faults.arrive(call.verb(), &format!("/truenas/{host}/{}", call.method)).await {
        Verdict::Pass(after) => after,
        // There are no tasks here.
        Verdict::Task(_) => None,
        Verdict::Cut | Verdict::Late(_) => return None,
        Verdict::Refuse(status, text) => {
            return Some(rpc::answer(&id, Err(Error::Failed(number_of(status), text.trim_end().to_owned()))));
        }
    };
    let outcome = {
        let now = shared.clock().now();
        rpc::carry_out(&mut server.content(), session, call, now)
    };
    if call.verb() != Verb::Get {
        shared.changed();
    }
    if let Some(fault) = after
        && shared.faults.finish(fault).await
    {
        return None;
    }
    Some(rpc::answer(&id, outcome))
}
