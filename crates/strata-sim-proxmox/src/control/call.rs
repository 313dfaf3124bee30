//! Any call of the API, as any user.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use strata_sim_core::Verb;

use super::shell;
use crate::api::{Arg, Args, Caller, Effects, Refusal};
use crate::datacenter::Datacenter;
use crate::wire::execute;

/// How long a change waits for the task it started.
const PATIENCE: Duration = Duration::from_secs(60);

/// Carries a change out, and waits for its task.
pub async fn apply(datacenter: &Arc<Datacenter>, change: &Value) -> Result<Value, String> {
    let Some(path) = change.get("path").and_then(Value::as_str) else {
        let result = shell::apply(&mut datacenter.world(), change);
        datacenter.shared.changed();
        return result;
    };
    let method = change.get("method").and_then(Value::as_str).unwrap_or("PUT");
    let verb = Verb::parse(method).ok_or_else(|| format!("no method `{method}`"))?;
    let user = change.get("as").and_then(Value::as_str).unwrap_or("root@pam");
    let caller = Caller { id: Some(user.to_owned()), is_token: user.contains('!') };
    let params = change.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    let args = Args(params.iter().map(|(k, v)| (k.clone(), Arg::from_json(v))).collect());
    match execute(datacenter, verb, path, caller, args, Effects::default()).await {
        Ok(answer) => {
            let task = match answer.data.as_str() {
                Some(upid) if upid.starts_with("UPID:") => task_end(datacenter, upid).await,
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

async fn task_end(datacenter: &Datacenter, upid: &str) -> Option<String> {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let exit = datacenter.world().tasks.get(upid).and_then(|task| task.exit.clone());
        if exit.is_some() || tokio::time::Instant::now() > end {
            return exit;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
