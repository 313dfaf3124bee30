//! A request and its answer, as data.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// What is sent with a request.
#[derive(Clone, Default)]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes, sent as they are.
    Bytes {
        /// What they are.
        content_type: String,
        /// The bytes.
        bytes: Bytes,
    },
}

/// A request, as data.
#[derive(Clone)]
pub struct Request {
    /// What is asked.
    pub method: Method,
    /// Path below the endpoint, already encoded; starts with `/`.
    pub path: String,
    /// Already encoded, without `?`.
    pub query: String,
    /// Besides those that every request has.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What is sent with it.
    pub body: Body,
    /// Instead of the client's own.
    pub timeout: Option<Duration>,
}

impl Request {
    /// A request with nothing but method and path.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            query: String::new(),
            headers: Vec::new(),
            body: Body::Empty,
            timeout: None,
        }
    }
}

/// Bodies and headers can hold secrets: not even `Debug` shows them.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// An answer, read to its end.
#[derive(Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The reason phrase as the server wrote it, empty if it wrote none.
    pub reason: String,
    /// What its head says.
    pub headers: HeaderMap,
    /// All of its body.
    pub body: Bytes,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.status, self.reason, self.body.len())
    }
}
