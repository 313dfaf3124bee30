//! Errors as the API server tells them: a `Status` object with reason, code and details.

use serde_json::{Value, json};

use super::resource::Resource;

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({ "name": name, "kind": resource.plural });
        if !resource.group.is_empty() {
            details["group"] = json!(resource.group);
        }
        self.details = Some(details);
        self
    }

    pub fn with_causes(mut self, causes: Vec<Value>) -> Self {
        let mut details = self.details.take().unwrap_or_else(|| json!({}));
        details["causes"] = Value::Array(causes);
        self.details = Some(details);
        self
    }

    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

pub fn not_found(resource: &Resource, name: &str) -> Failure {
    Failure::new(404, "NotFound", format!("{} \"{name}\" not found", resource.qualified()))
        .about(resource, name)
}

pub fn already_exists(resource: &Resource, name: &str) -> Failure {
    let message = format!("{} \"{name}\" already exists", resource.qualified());
    Failure::new(409, "AlreadyExists", message).about(resource, name)
}

pub fn conflict(resource: &Resource, name: &str, why: &str) -> Failure {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
    Failure::new(409, "Conflict", message).about(resource, name)
}

/// The object changed since the client read it.
pub fn stale(resource: &Resource, name: &str) -> Failure {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

/// One field that is wrong: its path, the reason of the cause, and what is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    pub field: String,
    pub reason: &'static str,
    pub message: String,
}

impl Cause {
    pub fn required(field: impl Into<String>) -> Self {
        Self { field: field.into(), reason: "FieldValueRequired", message: "Required value".to_owned() }
    }

    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
        }
    }
}

pub fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Failure {
    let texts: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
    let texts = match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let kind = if resource.group.is_empty() {
        resource.kind.clone()
    } else {
        format!("{}.{}", resource.kind, resource.group)
    };
    let mut failure = Failure::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {texts}"));
    failure.details = Some(json!({ "name": name, "group": resource.group, "kind": resource.kind }));
    failure.with_causes(
        causes
            .iter()
            .map(|c| json!({ "reason": c.reason, "message": c.message, "field": c.field }))
            .collect(),
    )
}

pub fn bad_request(message: impl Into<String>) -> Failure {
    Failure::new(400, "BadRequest", message)
}

pub fn unknown_path() -> Failure {
    let mut failure = Failure::new(404, "NotFound", "the server could not find the requested resource");
    failure.details = Some(json!({}));
    failure
}

pub fn not_allowed() -> Failure {
    let message = "the server does not allow this method on the requested resource";
    let mut failure = Failure::new(405, "MethodNotAllowed", message);
    failure.details = Some(json!({}));
    failure
}

pub fn unauthorized() -> Failure {
    Failure::new(401, "Unauthorized", "Unauthorized")
}

pub fn unsupported(kind: &str, accepted: &str) -> Failure {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted} (got {kind:?})"
    );
    Failure::new(415, "UnsupportedMediaType", message)
}

pub fn expired(message: impl Into<String>) -> Failure {
    Failure::new(410, "Expired", message)
}

pub fn unavailable() -> Failure {
    Failure::new(503, "ServiceUnavailable", "etcdserver: no leader")
}

/// The reason that goes with a status of HTTP.
pub fn reason_of(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}
