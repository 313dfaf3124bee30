//! The two ways a call ends, and the pauses it may ask for on the way.

use serde_json::{Map, Value};

use crate::task::LockKey;

/// What a call answers with status 200.
#[derive(Debug, Default)]
pub struct Answer {
    pub data: Value,
    /// Sits beside `data`; the API leaves it out when it is zero.
    pub total: Option<usize>,
    /// The diff of staged network changes, beside `data`.
    pub changes: Option<String>,
}

impl From<Value> for Answer {
    fn from(data: Value) -> Self {
        Self { data, ..Self::default() }
    }
}

impl From<()> for Answer {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Value::String(text).into()
    }
}

/// Why a call was not answered with data.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// A status and a message; for 400 also the text for each parameter. `message` ends with a newline wherever the
    /// API's own does, because clients compare it.
    Error { status: u16, message: String, errors: Option<Map<String, Value>> },
    /// Someone holds this lock: wait for it (bounded), then run the call again from the start.
    Busy(LockKey),
    /// The call needs this loopback URL's content: fetch it, then run the call again from the start.
    Fetch { url: String, head: bool },
    /// Real time passes before the answer: wait (scaled by the pace), then give the inner refusal.
    After { seconds: u64, then: Box<Refusal> },
}

impl Refusal {
    /// The message without its final newline: what a task that fails for this reason shows.
    pub fn text(&self) -> String {
        match self {
            Self::Error { message, errors, .. } => match errors {
                None => message.trim_end_matches('\n').to_owned(),
                Some(map) => {
                    let mut lines = vec![message.trim_end_matches('\n').to_owned()];
                    lines.extend(map.iter().map(|(k, v)| format!("{k}: {}", v.as_str().unwrap_or_default())));
                    lines.join("\n")
                }
            },
            Self::Busy(key) => key.timeout_text(),
            Self::Fetch { url, .. } => format!("unable to fetch {url}"),
            Self::After { then, .. } => then.text(),
        }
    }
}

/// Tasks report plain text.
impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.text()
    }
}

/// 500 with this message, which is how the API says nearly everything.
pub fn no(message: impl Into<String>) -> Refusal {
    let mut message = message.into();
    message.push('\n');
    Refusal::Error { status: 500, message, errors: None }
}

/// 403 `Permission check failed (…)`.
pub fn forbidden(what: impl AsRef<str>) -> Refusal {
    let what = what.as_ref();
    let message = if what.is_empty() {
        "Permission check failed\n".to_owned()
    } else {
        format!("Permission check failed ({what})\n")
    };
    Refusal::Error { status: 403, message, errors: None }
}

/// 400 for one parameter.
pub fn wrong(param: impl Into<String>, text: impl Into<String>) -> Refusal {
    let mut errors = Map::new();
    errors.insert(param.into(), Value::String(text.into()));
    wrong_many(errors)
}

/// 400 for several parameters.
pub fn wrong_many(errors: Map<String, Value>) -> Refusal {
    Refusal::Error {
        status: 400,
        message: "Parameter verification failed.\n".to_owned(),
        errors: Some(errors),
    }
}

/// A plain refusal with any status, message taken as it is.
pub fn fuse(status: u16, message: impl Into<String>) -> Refusal {
    Refusal::Error { status, message: message.into(), errors: None }
}
