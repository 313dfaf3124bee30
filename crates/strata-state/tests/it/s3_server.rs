//! As much of S3 as the store uses, in memory; honest about the conditions of a write, or not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use md5::Digest as _;

/// Which conditions are respected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Honesty {
    Whole,
    IgnoresIfNoneMatch,
    IgnoresIfMatch,
}

#[derive(Clone)]
pub(crate) struct S3Server {
    honesty: Honesty,
    /// By path, with the time of the write in seconds since 1970.
    objects: Arc<Mutex<BTreeMap<String, (Bytes, i64)>>>,
    /// How many writes from now on are carried out and their answers lost.
    lost: Arc<Mutex<u32>>,
    /// How many seconds its clock is ahead of ours.
    ahead: Arc<Mutex<i64>>,
    gate: Arc<Mutex<Option<Arc<Gate>>>>,
}

/// Where one write waits.
#[derive(Default)]
pub(crate) struct Gate {
    reached: tokio::sync::Notify,
    open: tokio::sync::Notify,
}

impl Gate {
    pub(crate) async fn reached(&self) {
        self.reached.notified().await;
    }

    pub(crate) fn go_on(&self) {
        self.open.notify_one();
    }
}

impl S3Server {
    pub(crate) fn new(honesty: Honesty) -> Self {
        Self {
            honesty,
            objects: Arc::default(),
            lost: Arc::default(),
            ahead: Arc::default(),
            gate: Arc::default(),
        }
    }

    /// Gives its address.
    pub(crate) async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    /// Cuts an object off in the middle.
    pub(crate) fn cut(&self, path: &str) {
        let mut objects = self.objects.lock().unwrap();
        let (bytes, _) = objects.get_mut(path).unwrap();
        *bytes = bytes.slice(..bytes.len() / 2);
    }

    /// Holds up the next write but those of locks, until it is released.
    pub(crate) fn stop_before_the_next_write(&self) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        *self.gate.lock().unwrap() = Some(gate.clone());
        gate
    }

    async fn pass(&self, path: &str) {
        if path.ends_with("/lock") {
            return;
        }
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            gate.reached.notify_one();
            gate.open.notified().await;
        }
    }

    pub(crate) fn put(&self, path: &str, bytes: Bytes) {
        let now = self.now();
        self.objects.lock().unwrap().insert(path.to_owned(), (bytes, now));
    }

    pub(crate) fn get(&self, path: &str) -> Bytes {
        self.objects.lock().unwrap()[path].0.clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    /// The object whose path begins like this.
    pub(crate) fn path(&self, start: &str) -> String {
        self.paths().into_iter().find(|path| path.starts_with(start)).unwrap()
    }

    pub(crate) fn remove(&self, path: &str) {
        self.objects.lock().unwrap().remove(path).unwrap();
    }

    /// Makes an object look as if it had been written long ago.
    pub(crate) fn age(&self, path: &str, seconds: i64) {
        self.objects.lock().unwrap().get_mut(path).unwrap().1 -= seconds;
    }

    pub(crate) fn set_clock(&self, ahead: i64) {
        *self.ahead.lock().unwrap() = ahead;
    }

    fn now(&self) -> i64 {
        jiff::Timestamp::now().as_second() + *self.ahead.lock().unwrap()
    }

    pub(crate) fn lose_answers(&self, writes: u32) {
        *self.lost.lock().unwrap() = writes;
    }

    fn write(&self, path: &str, headers: &HeaderMap, body: Bytes) -> Response {
        let mut objects = self.objects.lock().unwrap();
        let there = objects.get(path).map(|(bytes, _)| tag(bytes));
        let failed = StatusCode::PRECONDITION_FAILED.into_response();
        if headers.contains_key("if-none-match")
            && self.honesty != Honesty::IgnoresIfNoneMatch
            && there.is_some()
        {
            return failed;
        }
        if let Some(wanted) = headers.get("if-match")
            && self.honesty != Honesty::IgnoresIfMatch
            && there.as_deref() != wanted.to_str().ok()
        {
            return failed;
        }
        let new = tag(&body);
        objects.insert(path.to_owned(), (body, self.now()));
        let mut lost = self.lost.lock().unwrap();
        if *lost > 0 {
            *lost -= 1;
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        [("etag", new)].into_response()
    }

    fn list(&self, query: &str) -> Response {
        let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix=")).unwrap_or_default();
        let prefix = format!("/strata/{}", prefix.replace("%2F", "/"));
        let objects = self.objects.lock().unwrap();
        let found = objects.iter().filter(|(path, _)| path.starts_with(&prefix));
        let entry = |(path, (bytes, written)): (&String, &(Bytes, i64))| {
            let written = jiff::Timestamp::from_second(*written).unwrap();
            let (key, size) = (path.strip_prefix("/strata/").unwrap(), bytes.len());
            format!(
                "<Contents><Key>{key}</Key><LastModified>{written}</LastModified><ETag>{}</ETag><Size>{size}</Size></Contents>",
                tag(bytes)
            )
        };
        let contents: String = found.map(entry).collect();
        format!("<ListBucketResult><Name>strata</Name><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>")
            .into_response()
    }
}

fn tag(bytes: &[u8]) -> String {
    format!("\"{}\"", hex::encode(md5::Md5::digest(bytes)))
}

fn http_date(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds).unwrap();
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

async fn answer(
    State(server): State<S3Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path();
    match method {
        Method::PUT => {
            server.pass(path).await;
            server.write(path, &headers, body)
        }
        Method::DELETE => {
            server.objects.lock().unwrap().remove(path);
            StatusCode::NO_CONTENT.into_response()
        }
        Method::GET if path.trim_end_matches('/') == "/strata" => {
            server.list(uri.query().unwrap_or_default())
        }
        Method::GET => match server.objects.lock().unwrap().get(path) {
            Some((bytes, written)) => {
                let (written, now) = (http_date(*written), http_date(server.now()));
                let headers = [("etag", tag(bytes)), ("last-modified", written), ("date", now)];
                (headers, bytes.clone()).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        },
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}
