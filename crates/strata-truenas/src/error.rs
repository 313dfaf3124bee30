//! What went wrong with a call: what was tried, where, why, and what to do next.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use strata_net::{Cause, Delivery, NetError, TlsSetupError, Verdict};

/// The kinds of failure that a caller acts on differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No answer, and the request never left or nothing listens.
    Unreachable,
    /// The request may have been carried out; its answer was lost.
    AnswerLost,
    /// The server cannot prove who it is, or the settings for TLS cannot be used.
    Untrusted,
    /// The key is not accepted, or does not allow it.
    Refused,
    NotFound,
    /// It is there already.
    Exists,
    /// It holds something, and is therefore not deleted.
    NotEmpty,
    /// The server does not accept the values.
    Invalid,
    /// The server asks for patience.
    Throttled,
    /// The call failed on the server.
    Failed,
    /// It was not sent: the run may not write any more.
    Withheld,
    /// An answer that makes no sense, or a server that is too old or too new.
    Unreadable,
}

#[derive(Debug, Clone)]
pub struct TrueNasError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    trouble: Trouble,
    action: String,
    endpoint: String,
    reason: String,
    hint: Option<String>,
    unknown_method: bool,
    source: Option<Cause>,
}

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const TOO_MANY_CALLS: i64 = -32000;

impl TrueNasError {
    pub(crate) fn new(
        trouble: Trouble,
        action: impl Into<String>,
        endpoint: &str,
        reason: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            trouble,
            action: action.into(),
            endpoint: endpoint.to_owned(),
            reason: reason.into(),
            hint: None,
            unknown_method: false,
            source: None,
        }))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn net(action: &str, endpoint: &str, error: &NetError) -> Self {
        let trouble = match (error, error.delivery()) {
            (NetError::PinMismatch { .. } | NetError::Untrusted { .. } | NetError::Tls { .. }, _) => {
                Trouble::Untrusted
            }
            (_, Delivery::Unknown) => Trouble::AnswerLost,
            _ => Trouble::Unreachable,
        };
        let mut made = Self::new(trouble, action, endpoint, error.to_string());
        made.0.hint = error.hint();
        made.0.source = Some(Arc::new(error.clone()));
        made
    }

    pub(crate) fn setup(error: &TlsSetupError, endpoint: &str) -> Self {
        let mut made = Self::new(Trouble::Untrusted, "set up TLS", endpoint, error.to_string());
        made.0.source = Some(Arc::new(error.clone()));
        match error {
            // Said here because the server punishes it.
            TlsSetupError::Endpoint(_) => {
                made.with_hint("use `https://`: TrueNAS revokes an API key that is sent without TLS")
            }
            _ => made,
        }
    }

    /// From the `error` of an answer. Traces of the server's program are left out.
    pub(crate) fn rpc(action: &str, endpoint: &str, error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let text = |pointer: &str| error.pointer(pointer).and_then(Value::as_str);
        let errname = text("/data/errname").unwrap_or_default();
        let complaints = complaints(error);
        let reason = match complaints.as_slice() {
            [] => text("/data/reason").or(text("/message")).unwrap_or("an error without words").to_owned(),
            some => some.join("; "),
        };
        let trouble = match (code, errname) {
            (METHOD_NOT_FOUND, _) => Trouble::Unreadable,
            (TOO_MANY_CALLS, _) => Trouble::Throttled,
            (_, "ENOENT") => Trouble::NotFound,
            (_, "EEXIST") => Trouble::Exists,
            (_, "ENOTEMPTY") => Trouble::NotEmpty,
            (_, "EACCES" | "EPERM" | "ENOTAUTHENTICATED") => Trouble::Refused,
            _ if reason.contains("already exists") => Trouble::Exists,
            _ if reason.contains("does not exist") => Trouble::NotFound,
            (INVALID_PARAMS, _) => Trouble::Invalid,
            _ => Trouble::Failed,
        };
        let mut made = Self::new(trouble, action, endpoint, reason);
        made.0.unknown_method = code == METHOD_NOT_FOUND;
        match trouble {
            Trouble::Refused => {
                made.with_hint("give the user of the API key the roles that it needs: DATASET_WRITE, DATASET_DELETE, SNAPSHOT_READ")
            }
            _ => made,
        }
    }

    /// Whether the server does not know a method.
    pub(crate) fn is_unknown_method(error: &Value) -> bool {
        error.get("code").and_then(Value::as_i64) == Some(METHOD_NOT_FOUND)
    }

    /// Whether it failed because the server has no such method.
    pub(crate) fn is_unknown(&self) -> bool {
        self.0.unknown_method
    }

    pub fn trouble(&self) -> Trouble {
        self.0.trouble
    }

    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What a person can do about it, where there is something.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Whether the call may have had an effect although it failed.
    pub fn may_have_acted(&self) -> bool {
        matches!(self.0.trouble, Trouble::AnswerLost | Trouble::Failed | Trouble::Unreadable)
    }

    /// Whether the same call could succeed a moment later, without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(self.0.trouble, Trouble::Unreachable | Trouble::AnswerLost | Trouble::Throttled)
    }

    /// For reads.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.is_transient() { Verdict::Again } else { Verdict::Final }
    }

    /// For writes: only what never left is sent again.
    pub(crate) fn verdict_on_write(&self) -> Verdict {
        match self.0.trouble {
            Trouble::Unreachable | Trouble::Throttled => Verdict::Again,
            _ => Verdict::Final,
        }
    }
}

impl fmt::Display for TrueNasError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} at `{}`: {}", self.0.action, self.0.endpoint, self.0.reason)
    }
}

impl std::error::Error for TrueNasError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|error| error as &(dyn std::error::Error + 'static))
    }
}

/// What is wrong with which value: the server sends triples of name, message and number.
fn complaints(error: &Value) -> Vec<String> {
    let extra = error.pointer("/data/extra").and_then(Value::as_array);
    let complaint = |entry: &Value| {
        let (name, message) = (entry.get(0)?.as_str()?, entry.get(1)?.as_str()?);
        // The first part of the name is that of a schema.
        let name = name.split_once('.').map_or(name, |(_, name)| name);
        Some(format!("`{name}`: {message}"))
    };
    extra.into_iter().flatten().filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_is_wrong_with_which_value() {
        let error = json!({"code": -32602, "message": "Invalid params", "data": {"errname": "EINVAL", "reason": "long",
            "extra": [["pool_dataset_create.quota", "must be at least 1073741824", 22], ["pool_dataset_create.name", "bad", 22]]}});
        let error = TrueNasError::rpc("create dataset `tank/a`", "192.0.2.20:443", &error);
        assert_eq!(
            error.to_string(),
            "cannot create dataset `tank/a` at `192.0.2.20:443`: `quota`: must be at least 1073741824; `name`: bad"
        );
        assert_eq!(error.trouble(), Trouble::Invalid);
    }

    #[test]
    fn each_error_has_its_meaning() {
        for (code, errname, reason, expected) in [
            (-32001, "ENOENT", "x", Trouble::NotFound),
            (-32602, "EINVAL", "Path /mnt/tank/a already exists", Trouble::Exists),
            (-32001, "ENOTEMPTY", "x", Trouble::NotEmpty),
            (-32001, "EACCES", "x", Trouble::Refused),
            (-32001, "ENOTAUTHENTICATED", "x", Trouble::Refused),
            (-32001, "EFAULT", "x", Trouble::Failed),
            (-32000, "", "", Trouble::Throttled),
            (-32601, "", "", Trouble::Unreadable),
        ] {
            let error = json!({"code": code, "message": "m", "data": {"errname": errname, "reason": reason}});
            assert_eq!(TrueNasError::rpc("x", "a:1", &error).trouble(), expected, "{errname}");
        }
    }
}
