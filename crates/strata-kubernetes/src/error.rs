//! What went wrong with a call: what was tried, where, why, and what to do next.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use strata_net::{Cause, CertificateFlaw, Delivery, NetError, TlsSetupError, Verdict};

/// The kinds of failure that a caller acts on differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No answer, and the request never left or nothing listens.
    Unreachable,
    /// The request may have been carried out; its answer was lost.
    AnswerLost,
    /// The server cannot prove who it is, or the settings for TLS cannot be used.
    Untrusted,
    /// The credentials are not accepted, or they do not allow it.
    Refused,
    /// Somebody else owns the fields, or the object has changed.
    Conflict,
    /// There is no such object, or no such kind.
    NotFound,
    /// The server does not accept the object.
    Invalid,
    /// The server asks for patience.
    Throttled,
    /// The server failed, or is not ready yet.
    Unavailable,
    /// An answer that makes no sense.
    Unreadable,
    /// It was not sent: the run may not write any more.
    Withheld,
    /// What was waited for did not come in time, or can no longer come.
    NotReady,
}

/// A field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    pub field: String,
    /// Who owns it, as far as the server says.
    pub manager: Option<String>,
}

/// Why a call failed. It never holds the content of an object.
#[derive(Debug, Clone)]
pub struct KubeError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    trouble: Trouble,
    action: String,
    endpoint: String,
    reason: String,
    hint: Option<String>,
    status: Option<u16>,
    conflicts: Vec<FieldConflict>,
    budgets: bool,
    source: Option<Cause>,
}

impl KubeError {
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
            status: None,
            conflicts: Vec::new(),
            budgets: false,
            source: None,
        }))
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    pub(crate) fn net(action: &str, endpoint: &str, error: &NetError) -> Self {
        let trouble = match (error, error.delivery()) {
            (NetError::Withheld(_), _) => Trouble::Withheld,
            (NetError::PinMismatch { .. } | NetError::Untrusted { .. } | NetError::Tls { .. }, _) => {
                Trouble::Untrusted
            }
            (_, Delivery::Unknown) => Trouble::AnswerLost,
            _ => Trouble::Unreachable,
        };
        let reason = error.to_string();
        let hint = match error {
            NetError::Untrusted { flaw: CertificateFlaw::Dates, .. } => Some(
                "compare the clocks of this machine and of the node: a certificate is only good within its dates".to_owned(),
            ),
            NetError::Untrusted { .. } => Some(
                "the certificate is not one of this cluster's CA: check that the address belongs to the cluster and that its secrets are the right ones"
                    .to_owned(),
            ),
            error => error.hint(),
        };
        let mut made = Self::new(trouble, action, endpoint, reason);
        made.0.hint = hint;
        made.0.source = Some(Arc::new(error.clone()));
        made
    }

    pub(crate) fn setup(error: &TlsSetupError, endpoint: &str) -> Self {
        let mut made = Self::new(Trouble::Untrusted, "set up TLS", endpoint, error.to_string());
        made.0.source = Some(Arc::new(error.clone()));
        made
    }

    /// From an answer that is not a success: a `Status` object, or whatever stands in the way of the server.
    pub(crate) fn status(action: &str, endpoint: &str, status: u16, reason: &str, body: &str) -> Self {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let text = |pointer: &str| parsed.as_ref()?.pointer(pointer)?.as_str().map(str::to_owned);
        let message = text("/message").filter(|message| !message.is_empty());
        let conflicts = parsed.as_ref().map(conflicts).unwrap_or_default();
        let said = message.unwrap_or_else(|| match shown(body) {
            Some(line) => format!("HTTP {status} {reason}: {line}"),
            None => format!("HTTP {status} {reason}"),
        });
        let trouble = trouble(status, text("/reason").as_deref());
        let budgets = status == 500 && said.contains("PodDisruptionBudget");
        let mut error = Self::new(trouble, action, endpoint, said);
        error.0.budgets = budgets;
        error.0.status = Some(status);
        error.0.hint = hint(trouble, status, &conflicts);
        error.0.conflicts = conflicts;
        error
    }

    pub fn trouble(&self) -> Trouble {
        self.0.trouble
    }

    /// The HTTP status, if an answer came.
    pub fn http_status(&self) -> Option<u16> {
        self.0.status
    }

    /// A pod has more than one disruption budget, which an eviction answers with 500 and a sentence.
    pub(crate) fn is_about_budgets(&self) -> bool {
        self.0.budgets
    }

    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// What a person can do about it, where there is something.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    pub fn conflicts(&self) -> &[FieldConflict] {
        &self.0.conflicts
    }

    /// Whether the request may have had an effect although it failed.
    pub fn may_have_acted(&self) -> bool {
        matches!(self.0.trouble, Trouble::AnswerLost | Trouble::Unavailable | Trouble::Unreadable)
    }

    /// Whether the same call could succeed a moment later, without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self.0.trouble,
            Trouble::Unreachable | Trouble::AnswerLost | Trouble::Throttled | Trouble::Unavailable
        )
    }

    /// For requests that can be sent twice: reads, server-side apply, deletes and patches that say what shall be.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.0.trouble {
            Trouble::Unreachable | Trouble::AnswerLost | Trouble::Throttled => Verdict::Again,
            Trouble::Unavailable => Verdict::AtMost(5),
            _ => Verdict::Final,
        }
    }
}

impl fmt::Display for KubeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} at `{}`: {}", self.0.action, self.0.endpoint, self.0.reason)
    }
}

impl std::error::Error for KubeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|error| error as &(dyn std::error::Error + 'static))
    }
}

/// Why several writes in a row ended early. `G` is the error of the caller's own look before each write.
#[derive(Debug, Clone)]
pub enum Guarded<G> {
    /// The caller said that nothing more may be written.
    Stopped(G),
    Kube(KubeError),
}

impl<G> From<KubeError> for Guarded<G> {
    fn from(error: KubeError) -> Self {
        Self::Kube(error)
    }
}

impl<G: fmt::Display> fmt::Display for Guarded<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(error) => error.fmt(f),
            Self::Kube(error) => error.fmt(f),
        }
    }
}

impl<G: fmt::Debug + fmt::Display> std::error::Error for Guarded<G> {}

fn trouble(status: u16, reason: Option<&str>) -> Trouble {
    match status {
        401 | 403 => Trouble::Refused,
        404 | 410 => Trouble::NotFound,
        // The server says this while a namespace is being deleted.
        409 => Trouble::Conflict,
        429 => Trouble::Throttled,
        500.. if reason == Some("Invalid") => Trouble::Invalid,
        500.. => Trouble::Unavailable,
        _ => Trouble::Invalid,
    }
}

fn hint(trouble: Trouble, status: u16, conflicts: &[FieldConflict]) -> Option<String> {
    let hint = match trouble {
        Trouble::Refused if status == 401 => {
            "the client certificate is not accepted: it may have expired, belong to another cluster, or the clocks differ"
                .to_owned()
        }
        Trouble::Refused => "the credentials do not allow this: use those of a cluster administrator".to_owned(),
        Trouble::Conflict if !conflicts.is_empty() => {
            let mut managers: Vec<&str> =
                conflicts.iter().filter_map(|conflict| conflict.manager.as_deref()).collect();
            managers.sort_unstable();
            managers.dedup();
            let managers = managers.join("`, `");
            format!("the fields belong to `{managers}`: leave them to it, or take them over with force")
        }
        _ => return None,
    };
    Some(hint)
}

/// Who owns the fields that an apply wanted. The server puts the name into a sentence, in quotes.
fn conflicts(status: &Value) -> Vec<FieldConflict> {
    let causes = status.pointer("/details/causes").and_then(Value::as_array);
    let of = |cause: &Value| {
        if cause.get("reason")?.as_str()? != "FieldManagerConflict" {
            return None;
        }
        let message = cause.get("message").and_then(Value::as_str).unwrap_or_default();
        let manager = message.split('"').nth(1).map(str::to_owned);
        let field = cause.get("field").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(FieldConflict { field, manager })
    };
    causes.into_iter().flatten().filter_map(of).collect()
}

/// The first line of an answer that is no JSON, cut to what a message can hold.
fn shown(body: &str) -> Option<String> {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_names_the_other_manager() {
        let body = r#"{"kind":"Status","status":"Failure","message":"Apply failed with 1 conflict: conflict with \"helm\" using apps/v1: .spec.replicas","reason":"Conflict","code":409,
            "details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"helm\" using apps/v1","field":".spec.replicas"}]}}"#;
        let error = KubeError::status("apply Deployment `a/b`", "192.0.2.40:6443", 409, "Conflict", body);
        assert_eq!(error.trouble(), Trouble::Conflict);
        assert_eq!(
            error.conflicts(),
            [FieldConflict { field: ".spec.replicas".to_owned(), manager: Some("helm".to_owned()) }]
        );
        assert!(
            error.to_string().starts_with("cannot apply Deployment `a/b` at `192.0.2.40:6443`: Apply failed")
        );
        assert!(error.hint().unwrap().contains("`helm`"), "{:?}", error.hint());
    }

    #[test]
    fn answers_that_are_no_status_are_shown_in_one_line() {
        let error =
            KubeError::status("read the version", "a:1", 502, "Bad Gateway", "<html>\n<body>nginx</body>");
        assert_eq!(error.to_string(), "cannot read the version at `a:1`: HTTP 502 Bad Gateway: <html>");
        assert_eq!(error.trouble(), Trouble::Unavailable);
        assert!(error.is_transient());
    }

    #[test]
    fn each_status_has_its_meaning() {
        for (status, expected) in [
            (401, Trouble::Refused),
            (403, Trouble::Refused),
            (404, Trouble::NotFound),
            (409, Trouble::Conflict),
            (400, Trouble::Invalid),
            (415, Trouble::Invalid),
            (422, Trouble::Invalid),
            (429, Trouble::Throttled),
            (500, Trouble::Unavailable),
            (503, Trouble::Unavailable),
        ] {
            assert_eq!(KubeError::status("x", "a:1", status, "", "").trouble(), expected, "{status}");
        }
    }
}
