//! The requests of the S3 client, sent by the HTTP client that everything else uses: one way to pin, dial and trace.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use http_body_util::BodyExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient as S3Client, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use strata_net::{Body, HttpClient, HttpOptions, NetError, Request, Response, TlsSetupError};

/// The time of the server that gave an answer, in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerTime(pub(super) i64);

/// One client for each server: the credentials may come from another one than the objects.
#[derive(Clone)]
pub(super) struct Connector {
    options: HttpOptions,
    clients: Arc<Mutex<HashMap<String, HttpClient>>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unusable(String);

/// The server has no room, or no more of it for this bucket; Amazon's is endless.
#[derive(Debug, thiserror::Error)]
#[error("the server has no space left: {0}")]
pub(super) struct NoSpace(String);

impl NoSpace {
    /// As MinIO and Ceph say it.
    const CODES: [&str; 2] = ["XMinioStorageFull", "QuotaExceeded"];

    fn told(answer: &Response) -> Option<Self> {
        let body = || String::from_utf8_lossy(&answer.body).into_owned();
        match answer.status {
            ..400 => None,
            507 => Some(Self(body())),
            _ => error_code(&body())
                .filter(|code| Self::CODES.contains(code))
                .map(|code| Self(code.to_owned())),
        }
    }

    pub(super) fn is_behind(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<Self>())
    }
}

/// `<Code>` of an answer that says no.
fn error_code(body: &str) -> Option<&str> {
    body.split_once("<Code>")?.1.split_once("</Code>").map(|(code, _)| code.trim())
}

impl Connector {
    pub(super) fn new(options: HttpOptions) -> Self {
        Self { options, clients: Arc::default() }
    }

    pub(super) fn client(&self, origin: &str) -> Result<HttpClient, TlsSetupError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(origin) {
            return Ok(client.clone());
        }
        let options = HttpOptions { endpoint: origin.to_owned(), ..self.options.clone() };
        let client = HttpClient::new(options)?;
        clients.insert(origin.to_owned(), client.clone());
        Ok(client)
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<S3Client> {
        Ok(S3Client::new(self.clone()))
    }
}

fn kind(error: &NetError) -> HttpErrorKind {
    match error {
        NetError::Connect { .. } | NetError::ConnectTimeout { .. } => HttpErrorKind::Connect,
        NetError::Timeout { .. } => HttpErrorKind::Timeout,
        NetError::Broken { .. } => HttpErrorKind::Interrupted,
        NetError::TooLarge { .. } => HttpErrorKind::Decode,
        _ => HttpErrorKind::Unknown,
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let unusable = |reason: String| HttpError::new(HttpErrorKind::Unknown, Unusable(reason));
        let (Some(scheme), Some(authority)) = (head.uri.scheme_str(), head.uri.authority()) else {
            return Err(unusable(format!("`{}` is not a whole address", head.uri)));
        };
        let client = self
            .client(&format!("{scheme}://{authority}"))
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut own = Request::new(head.method, head.uri.path());
        own.query = head.uri.query().unwrap_or_default().to_owned();
        let mut content_type = "application/octet-stream".to_owned();
        for (name, value) in &head.headers {
            match name.as_str() {
                "host" | "content-length" | "user-agent" => {}
                "content-type" => content_type = value.to_str().unwrap_or_default().to_owned(),
                _ => own.headers.push((name.clone(), value.clone())),
            }
        }
        let bytes = body.collect().await?.to_bytes();
        if !bytes.is_empty() {
            own.body = Body::Bytes { content_type, bytes };
        }
        let answer = client.send(&own).await.map_err(|error| HttpError::new(kind(&error), error))?;
        if let Some(full) = NoSpace::told(&answer) {
            return Err(HttpError::new(HttpErrorKind::Unknown, full));
        }
        let time = answer.headers.get("date").and_then(|date| date.to_str().ok()).and_then(time_of);
        let mut response = http::Response::builder().status(answer.status);
        if let Some(headers) = response.headers_mut() {
            *headers = answer.headers;
        }
        if let Some(time) = time {
            response = response.extension(ServerTime(time));
        }
        response
            .body(HttpResponseBody::from(answer.body))
            .map_err(|error| HttpError::new(HttpErrorKind::Decode, error))
    }
}

fn time_of(date: &str) -> Option<i64> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok().map(|time| time.as_second())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_full_server_is_known_by_its_code() {
        let body = "<Error><Code> QuotaExceeded </Code><Message>no</Message></Error>";
        assert_eq!(super::error_code(body), Some("QuotaExceeded"));
        assert_eq!(super::error_code("<html>"), None);
    }

    #[test]
    fn a_server_tells_the_time() {
        assert_eq!(super::time_of("Thu, 01 Jan 1970 00:01:00 GMT"), Some(60));
        assert_eq!(super::time_of("yesterday"), None);
    }
}
