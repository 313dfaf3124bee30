//! Someone else's changes: any call of the API as any user, and what only a shell on a node could do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::restore;
use crate::api::{Arg, Args, Caller, Effects, Refusal, Verb};
use crate::shared::Shared;
use crate::wire::execute;

/// How long a change waits for the task it started.
const PATIENCE: Duration = Duration::from_secs(60);

/// Carries out one change or a list of them, each after the other; stops at the first that is refused.
pub async fn apply(shared: &Arc<Shared>, input: &Value) -> Result<Value, String> {
    let Some(list) = input.as_array() else { return one(shared, input).await };
    let mut done = Vec::new();
    for change in list {
        let result = one(shared, change).await?;
        let refused = result.get("status").and_then(Value::as_u64).is_some_and(|s| s != 200);
        done.push(result);
        if refused {
            break;
        }
    }
    Ok(Value::Array(done))
}

async fn one(shared: &Arc<Shared>, change: &Value) -> Result<Value, String> {
    if let Some(change) = change.get("kubernetes") {
        return crate::kubernetes::change(shared, change);
    }
    if let Some(change) = change.get("truenas") {
        return crate::truenas::change(shared, change);
    }
    let Some(path) = change.get("path").and_then(Value::as_str) else {
        let result = restore::apply(&mut shared.world(), change);
        shared.changed();
        return result;
    };
    let method = change.get("method").and_then(Value::as_str).unwrap_or("PUT");
    let verb = Verb::parse(method).ok_or_else(|| format!("no method `{method}`"))?;
    let user = change.get("as").and_then(Value::as_str).unwrap_or("root@pam");
    let caller = Caller { id: Some(user.to_owned()), is_token: user.contains('!') };
    let params = change.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    let args = Args(params.iter().map(|(k, v)| (k.clone(), Arg::from_json(v))).collect());
    match execute(shared, verb, path, caller, args, Effects::default()).await {
        Ok(answer) => {
            let task = match answer.data.as_str() {
                Some(upid) if upid.starts_with("UPID:") => task_end(shared, upid).await,
                _ => None,
            };
            Ok(json!({ "status": 200, "data": answer.data, "exitstatus": task }))
        }
        Err(Refusal::Error { status, message, errors }) => {
            Ok(json!({ "status": status, "message": message, "errors": errors }))
        }
        Err(other) => Ok(json!({ "status": 500, "message": other.text() })),
    }
}

async fn task_end(shared: &Shared, upid: &str) -> Option<String> {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let exit = shared.world().tasks.get(upid).and_then(|task| task.exit.clone());
        if exit.is_some() || tokio::time::Instant::now() > end {
            return exit;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
