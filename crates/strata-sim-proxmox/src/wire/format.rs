//! How answers look: JSON, the variant for the web interface, and the plain texts of errors outside the API.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, PRAGMA, SERVER};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;
use serde_json::{Map, Value, json};

use crate::api::{Answer, Refusal, Reply};

pub(crate) type Body = Full<Bytes>;

/// What comes after `/api2/` in a path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Format {
    Json,
    ExtJs,
    Html,
}

impl Format {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "extjs" => Some(Self::ExtJs),
            "html" => Some(Self::Html),
            _ => None,
        }
    }
}

/// A response with the original's headers; the reason phrase is the first line of `reason`.
fn response(status: u16, reason: &str, content_type: Option<&'static str>, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=0"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(SERVER, HeaderValue::from_static("pve-api-daemon/3.0"));
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    let first = reason.lines().next().unwrap_or_default();
    if status != 200
        && let Ok(phrase) = ReasonPhrase::try_from(first.as_bytes())
    {
        response.extensions_mut().insert(phrase);
    }
    response
}

/// An error that never reached the API: plain text, no type, and the connection closes.
pub(crate) fn plain_error(status: u16, text: &str) -> Response<Body> {
    let mut response = response(status, text, None, text.as_bytes().to_vec());
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Nothing but a status and a reason, as for a refused login.
pub(crate) fn bare(status: u16, reason: &str) -> Response<Body> {
    let mut response = response(status, reason, None, Vec::new());
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(crate) fn page(text: String) -> Response<Body> {
    response(200, "OK", Some("text/html;charset=UTF-8"), text.into_bytes())
}

/// The answer of the API in the form that was asked for.
pub(crate) fn render(format: Format, reply: &Reply) -> Response<Body> {
    const JSON: &str = "application/json;charset=UTF-8";
    let (status, message, body) = envelope(format, reply);
    match format {
        Format::Json => response(status, &message, Some(JSON), body.to_string().into_bytes()),
        Format::ExtJs => response(200, "OK", Some(JSON), body.to_string().into_bytes()),
        Format::Html => page(html(&body)),
    }
}

fn envelope(format: Format, reply: &Reply) -> (u16, String, Value) {
    let mut body = Map::new();
    match reply {
        Ok(Answer { data, total, changes, .. }) => {
            body.insert("data".into(), data.clone());
            if let Some(total) = total.filter(|n| *n > 0) {
                body.insert("total".into(), json!(total));
            }
            if let Some(changes) = changes {
                body.insert("changes".into(), json!(changes));
            }
            if format == Format::ExtJs {
                body.insert("success".into(), json!(1));
            }
            (200, "OK".to_owned(), Value::Object(body))
        }
        Err(refusal) => {
            let (status, message, errors) = match refusal {
                Refusal::Error { status, message, errors } => (*status, message.clone(), errors.clone()),
                other => (500, other.text() + "\n", None),
            };
            body.insert("data".into(), Value::Null);
            body.insert("message".into(), json!(message));
            if let Some(errors) = errors {
                body.insert("errors".into(), Value::Object(errors));
            }
            if format == Format::ExtJs {
                body.insert("success".into(), json!(0));
                body.insert("status".into(), json!(status.to_string()));
            }
            (status, message, Value::Object(body))
        }
    }
}

fn html(body: &Value) -> String {
    let text = serde_json::to_string_pretty(body).unwrap_or_default();
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><title>Proxmox VE API</title></head><body><pre>{text}</pre></body></html>\n"
    )
}
