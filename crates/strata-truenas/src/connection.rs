//! One WebSocket, logged in: a call is sent, and the answer with its number is awaited.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use strata_net::TlsDialer;
use strata_secret::SecretString;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::{Trouble, TrueNasError};

/// The newest API that the server has. What is used of it has not changed since 25.04.
const PATH: &str = "/api/current";

pub(crate) struct Connection {
    socket: WebSocketStream<TlsStream<TcpStream>>,
    next: u64,
}

/// What a call came to.
pub(crate) enum Answer {
    Result(Value),
    /// The `error` of the answer.
    Error(Value),
}

/// Why there is no answer.
pub(crate) enum Lost {
    NotSent(String),
    Unknown(String),
}

impl Connection {
    pub(crate) async fn open(
        dialer: &TlsDialer,
        key: &SecretString,
        username: Option<&str>,
        timeout: Duration,
        gives_up_after: Option<Duration>,
    ) -> Result<Self, TrueNasError> {
        let action = "connect";
        let endpoint = dialer.endpoint();
        let stream = dialer.open().await.map_err(|error| TrueNasError::net(action, endpoint, &error))?;
        if let Some(patience) = gives_up_after {
            strata_net::give_up_after(stream.get_ref().0, patience);
        }
        let url = format!("wss://{endpoint}{PATH}");
        let handshake = tokio_tungstenite::client_async(url, stream);
        let unreachable = |reason: String| TrueNasError::new(Trouble::Unreachable, action, endpoint, reason);
        let socket = match tokio::time::timeout(timeout, handshake).await {
            Ok(Ok((socket, _))) => socket,
            Ok(Err(tungstenite::Error::Http(response))) if response.status().is_client_error() => {
                let reason = format!("`{PATH}` answers HTTP {}", response.status().as_u16());
                return Err(TrueNasError::new(Trouble::Unreadable, action, endpoint, reason)
                    .with_hint("this API comes with TrueNAS 25.04: check the address and the version"));
            }
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => return Err(unreachable(format!("no answer within {} s", timeout.as_secs()))),
        };
        let mut connection = Self { socket, next: 0 };
        connection.log_in(endpoint, key, username, timeout).await?;
        Ok(connection)
    }

    async fn log_in(
        &mut self,
        endpoint: &str,
        key: &SecretString,
        username: Option<&str>,
        timeout: Duration,
    ) -> Result<(), TrueNasError> {
        let action = "log in";
        // Without a name only the older way is open, which the server finds the name by.
        let (method, params) = match username {
            Some(username) => {
                let login =
                    json!({"mechanism": "API_KEY_PLAIN", "username": username, "api_key": key.expose()});
                ("auth.login_ex", json!([login]))
            }
            None => ("auth.login_with_api_key", json!([key.expose()])),
        };
        let answer = self
            .call(method, params, timeout)
            .await
            .map_err(|lost| TrueNasError::new(Trouble::Unreachable, action, endpoint, lost.reason()))?;
        let accepted = match answer {
            Answer::Result(Value::Bool(accepted)) => accepted,
            Answer::Result(result) => result.get("response_type").and_then(Value::as_str) == Some("SUCCESS"),
            Answer::Error(error) if TrueNasError::is_unknown_method(&error) => {
                let reason = format!("it has no `{method}`");
                return Err(TrueNasError::new(Trouble::Unreadable, action, endpoint, reason)
                    .with_hint("newer versions of TrueNAS want the name of the key's user: set `username`"));
            }
            Answer::Error(error) => return Err(TrueNasError::rpc(action, endpoint, &error)),
        };
        if accepted {
            return Ok(());
        }
        Err(TrueNasError::new(Trouble::Refused, action, endpoint, "the API key is not accepted").with_hint(
            "it may have expired, belong to another user, or have been revoked: TrueNAS revokes keys that were sent without TLS",
        ))
    }

    /// Sends a call and waits for its answer. After a failure the connection is of no use any more.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: Value,
        timeout: Duration,
    ) -> Result<Answer, Lost> {
        self.next += 1;
        let id = self.next;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let exchange = async {
            self.socket.send(Message::text(message)).await.map_err(|error| match error {
                // Closed before: nothing of it has left.
                tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => {
                    Lost::NotSent("the connection was closed".to_owned())
                }
                error => Lost::Unknown(error.to_string()),
            })?;
            self.answer(id).await
        };
        let timed_out = |_| Lost::Unknown(format!("no answer within {} s", timeout.as_secs()));
        tokio::time::timeout(timeout, exchange).await.map_err(timed_out)?
    }

    /// Whether the server still answers here.
    pub(crate) async fn is_alive(&mut self, timeout: Duration) -> bool {
        matches!(self.call("core.ping", json!([]), timeout).await, Ok(Answer::Result(_)))
    }

    async fn answer(&mut self, id: u64) -> Result<Answer, Lost> {
        while let Some(message) = self.socket.next().await {
            let text = match message.map_err(|error| Lost::Unknown(error.to_string()))? {
                Message::Text(text) => text,
                Message::Close(frame) => {
                    let why = frame.map(|frame| frame.reason.to_string()).filter(|why| !why.is_empty());
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    return Err(Lost::Unknown(format!("the server closed the connection{why}")));
                }
                _ => continue,
            };
            let mut answer: Value = serde_json::from_str(text.as_str())
                .map_err(|_| Lost::Unknown("the answer is not JSON".to_owned()))?;
            // Notifications have no number.
            if answer.get("id").and_then(Value::as_u64) != Some(id) {
                continue;
            }
            return Ok(match answer.get_mut("error").map(Value::take) {
                Some(error) if !error.is_null() => Answer::Error(error),
                _ => Answer::Result(answer.get_mut("result").map(Value::take).unwrap_or_default()),
            });
        }
        Err(Lost::Unknown("the server closed the connection".to_owned()))
    }
}

impl Lost {
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::NotSent(reason) | Self::Unknown(reason) => reason.clone(),
        }
    }
}
