//! JSON-RPC: what comes in, and what goes out.

use serde_json::{Value, json};

/// The text is no JSON.
pub(crate) const NO_JSON: i32 = -32700;
/// It is JSON and no request.
pub(crate) const NO_REQUEST: i32 = -32600;
/// There is no such method.
pub(crate) const NO_METHOD: i32 = -32601;
/// The method is there, and its parameters are not what it takes.
pub(crate) const WRONG_PARAMETERS: i32 = -32602;

/// What one line asks.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// To be answered, with this id.
    Request { id: Value, method: String, params: Value },
    /// Not to be answered.
    Notification { method: String, params: Value },
    /// An answer to what was never asked.
    Answer,
}

impl Message {
    /// What a line says, or the answer to one that says nothing.
    pub(crate) fn read(line: &str) -> Result<Self, Value> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| failed(Value::Null, NO_JSON, error.to_string()))?;
        let id = value.get("id").cloned();
        let params = value.get("params").cloned().unwrap_or(Value::Null);
        let Some(method) = value.get("method").and_then(Value::as_str).map(str::to_owned) else {
            let answers = value.get("result").is_some() || value.get("error").is_some();
            return match answers {
                true => Ok(Self::Answer),
                false => Err(failed(id.unwrap_or_default(), NO_REQUEST, "a request names a method")),
            };
        };
        Ok(match id {
            Some(id) if id.is_string() || id.is_number() => Self::Request { id, method, params },
            Some(_) => return Err(failed(Value::Null, NO_REQUEST, "an id is a text or a number")),
            None => Self::Notification { method, params },
        })
    }
}

pub(crate) fn done(id: Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn failed(id: Value, code: i32, message: impl Into<String>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message.into()}})
}
