//! Requests to a forge: what is sent again, for how long a forge is given time, page after page.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue, LINK, RETRY_AFTER};
use http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strata_net::{Body, Delivery, HttpClient, Random, Request, Response};

use crate::{ErrorKind, ForgeError, ForgeOptions, Kind};

/// Attempts at a request that got no answer, or that of a gateway.
const ATTEMPTS: u32 = 4;
/// More pages than any request of people has.
const PAGES: u32 = 200;
const PER_PAGE: u32 = 50;
/// Characters of what a forge says for itself.
const LONGEST_REASON: usize = 200;

/// Whether a request that may have arrived can be sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twice {
    Harmless,
    Never,
}

pub(crate) struct Api {
    kind: Kind,
    client: HttpClient,
    headers: Vec<(HeaderName, HeaderValue)>,
    random: Random,
    patience: Duration,
}

impl Api {
    pub(crate) fn new(client: HttpClient, options: &ForgeOptions) -> Result<Self, ForgeError> {
        let token = options.token.text.expose().trim();
        let (name, value) = match options.kind {
            Kind::GitHub => (AUTHORIZATION, format!("Bearer {token}")),
            Kind::GitLab if options.token.is_of_job => {
                (HeaderName::from_static("job-token"), token.to_owned())
            }
            Kind::GitLab => (HeaderName::from_static("private-token"), token.to_owned()),
            Kind::Gitea => (AUTHORIZATION, format!("token {token}")),
        };
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            let reason = "it has characters that no token has";
            ForgeError::new(ErrorKind::Settings, options.kind, "take this token", reason)
        })?;
        value.set_sensitive(true);
        let mut headers = vec![(name, value)];
        if options.kind == Kind::GitHub {
            headers.push((ACCEPT, HeaderValue::from_static("application/vnd.github+json")));
            headers.push((
                HeaderName::from_static("x-github-api-version"),
                HeaderValue::from_static("2022-11-28"),
            ));
        }
        let random = options.random.clone();
        Ok(Self { kind: options.kind, client, headers, random, patience: options.patience })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ForgeError> {
        let request = self.request(Method::GET, path, "", None);
        let answer = self.send(&request, Twice::Harmless).await?;
        self.read(&request, &answer)
    }

    /// The same, where nothing may be there.
    pub(crate) async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, ForgeError> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every page of a listing.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Vec<T>, ForgeError> {
        let size = if self.kind == Kind::Gitea { "limit" } else { "per_page" };
        let mut all: Vec<T> = Vec::new();
        for page in 1..=PAGES {
            let query =
                format!("{query}{}{size}={PER_PAGE}&page={page}", if query.is_empty() { "" } else { "&" });
            let request = self.request(Method::GET, path, &query, None);
            let answer = self.send(&request, Twice::Harmless).await?;
            let rows: Vec<T> = self.read(&request, &answer)?;
            let is_empty = rows.is_empty();
            all.extend(rows);
            if is_empty || !has_more(&answer.headers, all.len()) {
                return Ok(all);
            }
        }
        // Half of a list could leave out the very thing that is looked for.
        Err(self.error(
            ErrorKind::Unexpected,
            "end a listing",
            format!("`{path}` has more than {PAGES} pages"),
        ))
    }

    pub(crate) async fn write(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        twice: Twice,
    ) -> Result<Value, ForgeError> {
        let request = self.request(method, path, "", Some(body));
        let answer = self.send(&request, twice).await?;
        if answer.body.is_empty() { Ok(Value::Null) } else { self.read(&request, &answer) }
    }

    pub(crate) fn error(&self, kind: ErrorKind, what: &str, reason: String) -> ForgeError {
        ForgeError::new(kind, self.kind, what, reason)
    }

    fn request(&self, method: Method, path: &str, query: &str, body: Option<&Value>) -> Request {
        let mut request = Request { query: query.to_owned(), ..Request::new(method, path) };
        request.headers.clone_from(&self.headers);
        if let Some(body) = body {
            let bytes = Bytes::from(body.to_string());
            request.body = Body::Bytes { content_type: "application/json".to_owned(), bytes };
        }
        request
    }

    fn read<T: DeserializeOwned>(&self, request: &Request, answer: &Response) -> Result<T, ForgeError> {
        serde_json::from_slice(&answer.body)
            .map_err(|error| ForgeError::unreadable(self.kind, what(request), error))
    }

    async fn send(&self, request: &Request, twice: Twice) -> Result<Response, ForgeError> {
        let clock = self.client.clock();
        let end = clock.monotonic() + self.patience;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let backoff = Duration::from_millis((500 << attempt.min(6)) + (self.random)() % 500);
            let (error, wait) = match self.client.send(request).await {
                Err(error) => {
                    let again = error.is_transient()
                        && (error.delivery() == Delivery::NotSent || twice == Twice::Harmless);
                    let wait = (again && attempt < ATTEMPTS).then_some(backoff);
                    (ForgeError::net(self.kind, what(request), error), wait)
                }
                Ok(answer) if (200..300).contains(&answer.status) => return Ok(answer),
                Ok(answer) => match limit(&answer, clock.unix()) {
                    // What was refused for its number was not done.
                    Some(asked) => {
                        let seconds = asked.map_or(backoff.as_secs(), |asked| asked.as_secs());
                        let reason = format!("too many requests: it asks for {seconds} s of patience");
                        (
                            ForgeError::new(ErrorKind::Limited, self.kind, what(request), reason),
                            Some(asked.unwrap_or(backoff)),
                        )
                    }
                    None => {
                        let again = matches!(answer.status, 502..=504)
                            && twice == Twice::Harmless
                            && attempt < ATTEMPTS;
                        (self.refused(request, &answer), again.then_some(backoff))
                    }
                },
            };
            match wait {
                Some(wait) if clock.monotonic() + wait <= end => clock.sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    fn refused(&self, request: &Request, answer: &Response) -> ForgeError {
        let kind = match answer.status {
            401 => ErrorKind::Unauthorized,
            403 => ErrorKind::Forbidden,
            404 | 410 => ErrorKind::NotFound,
            400..=499 => ErrorKind::Rejected,
            _ => ErrorKind::Unexpected,
        };
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let said = match (&said["message"], &said["error"]) {
            (Value::Null, Value::Null) => String::new(),
            (Value::Null, Value::String(text)) | (Value::String(text), _) => format!(": {text}"),
            (Value::Null, other) | (other, _) => format!(": {other}"),
        };
        let said: String =
            said.chars().filter(|character| !character.is_control()).take(LONGEST_REASON).collect();
        let reason = format!("{} {}{said}", answer.status, answer.reason);
        let mut error = ForgeError::new(kind, self.kind, what(request), reason.trim().to_owned());
        error.may_have_arrived = answer.status >= 500;
        error
    }
}

fn what(request: &Request) -> String {
    format!("answer {} {}", request.method, request.path)
}

/// How long a forge asks to wait, if it refused the request for the number of requests.
fn limit(answer: &Response, now: i64) -> Option<Option<Duration>> {
    let number = |name: &str| answer.headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let after = number(RETRY_AFTER.as_str());
    let is_used_up = number("x-ratelimit-remaining").or(number("ratelimit-remaining")) == Some(0);
    let is_limited = match answer.status {
        429 => true,
        // GitHub says so with the status of a missing permission.
        403 => after.is_some() || is_used_up,
        503 => after.is_some(),
        _ => false,
    };
    let until = || {
        number("x-ratelimit-reset")
            .or(number("ratelimit-reset"))
            .filter(|_| is_used_up)
            .map(|at| at - now + 1)
    };
    is_limited.then(|| after.or_else(until).map(|seconds| Duration::from_secs(seconds.max(1).unsigned_abs())))
}

/// Whether there are more rows than these.
fn has_more(headers: &HeaderMap, seen: usize) -> bool {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if let Some(total) = text("x-total-count").and_then(|total| total.parse::<usize>().ok()) {
        return seen < total;
    }
    text(LINK.as_str()).is_some_and(|links| links.split(',').any(|link| link.contains("rel=\"next\"")))
}

/// A part of a path.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte))
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// What a status may say everywhere.
pub(crate) fn cut(text: &str) -> String {
    const MOST: usize = 140;
    match text.chars().count() > MOST {
        false => text.to_owned(),
        true => text.chars().take(MOST - 1).chain(['…']).collect(),
    }
}
