//! An answer that is read while it is being written: watches, logs, large downloads.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::response::Parts;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::client::reason_of;
use crate::{NetError, Request};

/// An answer whose body is still to come.
pub struct Streamed {
    /// The status code.
    pub status: u16,
    /// The reason phrase as the server wrote it, empty if it wrote none.
    pub reason: String,
    /// What its head says.
    pub headers: HeaderMap,
    body: Incoming,
    endpoint: String,
    method: String,
    path: String,
}

impl Streamed {
    pub(crate) fn new(head: Parts, body: Incoming, endpoint: &str, request: &Request) -> Self {
        Self {
            status: head.status.as_u16(),
            reason: reason_of(&head),
            headers: head.headers,
            body,
            endpoint: endpoint.to_owned(),
            method: request.method.to_string(),
            path: request.path.clone(),
        }
    }

    /// The next piece, however the server cut it; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, NetError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| NetError::Broken {
                endpoint: self.endpoint.clone(),
                method: self.method.clone(),
                path: self.path.clone(),
                source: Arc::new(error),
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}
