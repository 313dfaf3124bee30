//! Errors in the form in which the middleware sends them.

use serde_json::{Value, json};

pub const ENOENT: i64 = 2;
pub const EACCES: i64 = 13;
pub const EFAULT: i64 = 14;
pub const EBUSY: i64 = 16;
pub const EEXIST: i64 = 17;
pub const EINVAL: i64 = 22;
pub const ENOTEMPTY: i64 = 39;
pub const ENOTAUTHENTICATED: i64 = 207;

fn name(errno: i64) -> &'static str {
    match errno {
        ENOENT => "ENOENT",
        EACCES => "EACCES",
        EFAULT => "EFAULT",
        EBUSY => "EBUSY",
        EEXIST => "EEXIST",
        EINVAL => "EINVAL",
        ENOTEMPTY => "ENOTEMPTY",
        ENOTAUTHENTICATED => "ENOTAUTHENTICATED",
        _ => "EUNKNOWN",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// A message that is no call, or a call of nothing: code and text.
    Protocol(i64, String),
    /// What is wrong with which attribute.
    Invalid(Vec<Wrong>),
    /// The call failed: errno and text.
    Failed(i64, String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    pub attribute: Option<String>,
    pub text: String,
    pub errno: i64,
}

pub type Outcome<T> = Result<T, Error>;

pub fn wrong(attribute: &str, text: impl Into<String>) -> Wrong {
    Wrong { attribute: Some(attribute.to_owned()), text: text.into(), errno: EINVAL }
}

pub fn invalid(attribute: &str, text: impl Into<String>) -> Error {
    Error::Invalid(vec![wrong(attribute, text)])
}

/// An object that is asked for by its id is not there.
pub fn no_instance(text: String) -> Error {
    Error::Invalid(vec![Wrong { attribute: None, text, errno: ENOENT }])
}

impl Error {
    /// The `error` member of the answer.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Protocol(code, message) => json!({ "code": code, "message": message }),
            Self::Invalid(list) => {
                let texts: Vec<String> = list
                    .iter()
                    .map(|w| {
                        format!(
                            "[{}] {}: {}",
                            name(w.errno),
                            w.attribute.as_deref().unwrap_or("None"),
                            w.text
                        )
                    })
                    .collect();
                let reason = if list.len() == 1 && list[0].attribute.is_none() {
                    texts.concat()
                } else {
                    texts.iter().map(|text| format!("{text}\n")).collect()
                };
                let extra: Vec<Value> = list.iter().map(|w| json!([w.attribute, w.text, w.errno])).collect();
                json!({ "code": -32602, "message": "Invalid params",
                    "data": data(EINVAL, &reason, "ValidationErrors", json!(extra)) })
            }
            Self::Failed(errno, text) => {
                let reason = format!("[{}] {text}", name(*errno));
                json!({ "code": -32001, "message": "Method call error",
                    "data": data(*errno, &reason, "CallError", Value::Null) })
            }
        }
    }
}

fn data(errno: i64, reason: &str, class: &str, extra: Value) -> Value {
    let trace = json!({ "class": class, "formatted": "", "repr": format!("{class}({reason:?})") });
    json!({ "error": errno, "errname": name(errno), "reason": reason, "trace": trace, "extra": extra })
}
