//! Errors of the API. What their texts mean is told apart in [`super::classify`], and nowhere else.

use std::collections::BTreeMap;

use strata_net::Response;
use strata_secret::Redactor;

use super::answers::Failure;
use super::classify::classify;

/// What an error means for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// 401: the token or the ticket is not accepted.
    NotAuthenticated,
    /// 403: `privileges` (any of them) are missing on `path`.
    Denied {
        path: String,
        privileges: Vec<String>,
    },
    /// The key can only be set by root@pam with a ticket.
    RootOnly {
        key: String,
    },
    /// 400: by parameter.
    BadParameter,
    /// Something that the call needs does not exist. Which of them is proven by the exact text alone: see `says_no_guest` and its
    /// like.
    Missing,
    /// The name of the node does not resolve: there is none, or its name service fails. Nothing was done.
    NoSuchNode,
    AlreadyExists,
    /// The digest sent with the request is not the current one.
    Changed,
    /// The guest is locked by a running operation.
    Locked {
        lock: String,
    },
    /// The lock of the configuration was waited for and not got: nothing was done.
    LockTimeout,
    /// The worker for a task could not be started. What the call did before it began the task stays: see `leaves_a_lock`.
    NoWorker,
    /// The node that should answer could not be reached: nothing was done.
    NodeUnreachable,
    /// The node was reached and did not answer: what it did is unknown.
    AnswerLost,
    /// The value is written, and the running guest did not take it: it waits for a restart.
    NotHotplugged,
    /// The guest is in the pool already, or not in it: nothing was done.
    PoolAsAsked,
    Other,
}

/// An answer that is no success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ApiError {
    pub status: u16,
    /// The first line of the message, without a newline.
    pub reason: String,
    /// The other lines of the message: the reason is often there.
    pub details: Vec<String>,
    /// What is wrong with single parameters.
    pub errors: BTreeMap<String, String>,
    pub kind: ApiErrorKind,
    pub method: String,
    pub path: String,
}

impl ApiError {
    /// What a server refused a request with, without the secrets that it may repeat. Every answer that is no success is read here.
    pub(crate) fn redacted(redactor: &Redactor, method: &str, path: &str, response: &Response) -> Self {
        let phrase = redactor.redact(&response.reason);
        let body = String::from_utf8_lossy(&response.body);
        let body = redactor.redact(&body);
        let mut error = Self::read(method, path, response.status, &phrase, body.as_bytes());
        // What was escaped twice shows only now.
        let texts = error.errors.values_mut().chain(&mut error.details);
        for text in texts.chain(std::iter::once(&mut error.reason)) {
            *text = redactor.redact(text).into_owned();
        }
        error
    }

    /// Reads an error from an answer. The reason phrase is used where there is no body, as with 401.
    pub(crate) fn read(method: &str, path: &str, status: u16, phrase: &str, body: &[u8]) -> Self {
        let failure: Failure = serde_json::from_slice(body).unwrap_or_default();
        let message = failure.message.unwrap_or_default();
        let reason =
            message.lines().next().filter(|line| !line.is_empty()).unwrap_or(phrase).trim().to_owned();
        let lines = message.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        let details: Vec<String> = lines.skip(1).collect();
        let errors: BTreeMap<String, String> = failure
            .errors
            .unwrap_or_default()
            .into_iter()
            .map(|(key, text)| (key, text.as_str().split_whitespace().collect::<Vec<_>>().join(" ")))
            .collect();
        let kind = classify(status, &reason, &errors);
        Self { status, reason, details, errors, kind, method: method.to_owned(), path: path.to_owned() }
    }

    /// What the server said: the reason, or better, what is wrong with which parameter.
    pub fn text(&self) -> String {
        if self.errors.is_empty() {
            let reason = match self.reason.is_empty() {
                true => format!("status {}", self.status),
                false => self.reason.clone(),
            };
            return std::iter::once(reason)
                .chain(self.details.iter().cloned())
                .collect::<Vec<_>>()
                .join("; ");
        }
        let errors = self.errors.iter().map(|(key, text)| format!("`{key}`: {text}"));
        errors.collect::<Vec<_>>().join("; ")
    }

    /// A create or clone claims its VMID with a lock before it begins its task.
    pub(crate) fn leaves_a_lock(&self) -> bool {
        let makes = ["/qemu", "/lxc", "/clone"].iter().any(|end| self.path.ends_with(end));
        self.kind == ApiErrorKind::NoWorker && self.method == "POST" && makes
    }

    /// The server did nothing, for certain.
    pub(crate) fn did_nothing(&self) -> bool {
        // 501: there is no such method.
        let unknown =
            matches!(self.kind, ApiErrorKind::AnswerLost | ApiErrorKind::NotHotplugged | ApiErrorKind::Other);
        self.status == 501 || !(unknown || self.leaves_a_lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, phrase: &str, body: &str) -> ApiError {
        ApiError::read("GET", "/x", status, phrase, body.as_bytes())
    }

    #[test]
    fn single_parameters_are_named() {
        let error = read(
            400,
            "Parameter verification failed.",
            r#"{"data":null,"errors":{"name":"invalid format - value does not look like a valid DNS name\n"},"message":"Parameter verification failed.\n"}"#,
        );
        assert_eq!(error.kind, ApiErrorKind::BadParameter);
        assert_eq!(error.text(), "`name`: invalid format - value does not look like a valid DNS name");
        let error = read(400, "", r#"{"errors":{"skiplock":"Only root may use this option."}}"#);
        assert_eq!(error.kind, ApiErrorKind::RootOnly { key: "skiplock".into() });
        assert_eq!(read(400, "", r#"{"errors":{"upid":"no such task"}}"#).kind, ApiErrorKind::Missing);
    }

    #[test]
    fn an_empty_body_leaves_the_reason_phrase() {
        let error = read(401, "Authentication failed!", "");
        assert_eq!(
            (error.kind.clone(), error.text().as_str()),
            (ApiErrorKind::NotAuthenticated, "Authentication failed!")
        );
        assert_eq!(read(501, "", "<html>").text(), "status 501");
    }
}
