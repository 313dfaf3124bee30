//! What every step is made of: a write, the task that it starts, and a look where the answer was lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use serde::de::DeserializeOwned;
use strata_engine::{ErrorClass, Operation, OperationContext, ProviderError};
use strata_net::{NetError, Verdict, retry};
use strata_resource::Value;

use super::effect;
use crate::api::{ApiErrorKind, Params, TaskFailure, TaskFailureKind, Upid};
use crate::client::{CallError, Client, Permit, Rights, TaskEnd, Trouble};
use crate::codec::{GuestKind, field_of};
use crate::guest::Guest;
use crate::interrupted_tasks::quiet_guest;

/// One operation under way.
pub(crate) struct Work<'a> {
    pub(crate) client: &'a Client,
    pub(crate) operation: &'a Operation,
    pub(crate) context: &'a dyn OperationContext,
}

/// A call that writes.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) params: Params,
    pub(crate) rights: Rights,
    /// Completes "cannot …".
    pub(crate) doing: String,
    pub(crate) patience: Duration,
}

impl Call {
    /// Whether it would send the same once more.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.method == other.method
            && self.path == other.path
            && self.params.encode() == other.params.encode()
    }
}

/// Whether what a call was worked out from is still so: a look, made before the call is sent again.
pub(crate) type Unchanged<'a> = &'a (dyn Fn() -> BoxFuture<'a, Result<(), ProviderError>> + Sync);

/// Why a step did not get to its end.
#[derive(Debug, Clone)]
pub(crate) enum StepError {
    /// The run may not go on.
    Stop(ProviderError),
    /// The server said no; `doing` completes "cannot …".
    Refused { error: CallError, doing: String },
    /// Nobody knows what the server did.
    Lost { error: CallError, doing: String },
    /// A task began and failed.
    Task(ProviderError),
}

impl StepError {
    pub(crate) fn kind(&self) -> Option<&ApiErrorKind> {
        match self {
            Self::Refused { error, .. } => error.kind(),
            _ => None,
        }
    }

    /// What was sent is written, and waits for a restart of the guest.
    pub(crate) fn is_not_hotplugged(&self) -> bool {
        match self {
            Self::Refused { error, .. } => error.kind() == Some(&ApiErrorKind::NotHotplugged),
            Self::Task(error) => task_kind(error) == Some(TaskFailureKind::NotHotplugged),
            Self::Stop(_) | Self::Lost { .. } => false,
        }
    }
}

impl From<StepError> for ProviderError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Stop(error) | StepError::Task(error) => error,
            StepError::Refused { error, doing } | StepError::Lost { error, doing } => error.explain(&doing),
        }
    }
}

impl<'a> Work<'a> {
    pub(crate) fn guest_kind(&self) -> GuestKind {
        GuestKind::of(self.operation.address.kind()).expect("only guests get here")
    }

    pub(crate) fn vmid(&self) -> Result<u32, ProviderError> {
        let vmid =
            self.operation.spec.get("vmid").and_then(Value::as_int).and_then(|vmid| u32::try_from(vmid).ok());
        vmid.ok_or_else(|| self.internal("its spec has no VMID"))
    }

    pub(crate) fn text(&self, field: &str) -> Result<&'a str, ProviderError> {
        let value = self.operation.spec.get(field).and_then(Value::as_text);
        value.ok_or_else(|| self.internal(&format!("its spec has no `{field}`")))
    }

    pub(crate) fn internal(&self, what: &str) -> ProviderError {
        ProviderError::new(ErrorClass::Internal, format!("`{}`: {what}", self.operation.address))
    }

    pub(crate) fn call(
        &self,
        method: Method,
        path: String,
        params: Params,
        doing: impl Into<String>,
    ) -> Call {
        Call {
            method,
            path,
            params,
            rights: Rights::Usual,
            doing: doing.into(),
            patience: Duration::from_secs(600),
        }
    }

    /// Writes, and sees the task that this starts to its end. A task that could not get a lock has done nothing: it is begun
    /// again.
    pub(crate) async fn run(&self, call: Call) -> Result<(), StepError> {
        self.run_task(call).await.map(|_| ())
    }

    /// The same; says whether the task is known to have ended well, and was not only forgotten.
    pub(crate) async fn run_known(&self, call: Call) -> Result<bool, StepError> {
        let attempt = || async {
            let Some(task) = self.write(&call).await? else { return Ok(false) };
            self.see_end(&task, &call.doing, call.patience).await
        };
        let held_up = |error: &StepError| match error {
            StepError::Task(failed) if task_kind(failed) == Some(TaskFailureKind::HeldUp) => Verdict::Again,
            _ => Verdict::Final,
        };
        retry(self.client.policy(), self.client.clock(), self.client.random(), attempt, held_up).await
    }

    /// The same; gives the task that was seen to its end.
    pub(crate) async fn run_task(&self, call: Call) -> Result<Option<Upid>, StepError> {
        let attempt = || async {
            let Some(task) = self.write(&call).await? else { return Ok(None) };
            self.see_through(&task, &call.doing, call.patience).await?;
            Ok(task.parse().ok())
        };
        let held_up = |error: &StepError| match error {
            StepError::Task(failed) if task_kind(failed) == Some(TaskFailureKind::HeldUp) => Verdict::Again,
            _ => Verdict::Final,
        };
        retry(self.client.policy(), self.client.clock(), self.client.random(), attempt, held_up).await
    }

    /// The same, for calls that take no digest: a lock or a connection can hold one up for long, so whatever it was worked out from is
    /// looked at again before each further attempt.
    pub(crate) async fn run_while(&self, call: Call, unchanged: Unchanged<'_>) -> Result<(), StepError> {
        let sent = AtomicBool::new(false);
        let attempt = || async {
            if sent.swap(true, Ordering::Relaxed) {
                unchanged().await.map_err(StepError::Stop)?;
            }
            let Some(task) = self.write_once(&call).await? else { return Ok(()) };
            self.see_through(&task, &call.doing, call.patience).await
        };
        let verdict = |error: &StepError| match error {
            StepError::Task(failed) if task_kind(failed) == Some(TaskFailureKind::HeldUp) => Verdict::Again,
            error => verdict_on_write(error),
        };
        retry(self.client.policy(), self.client.clock(), self.client.random(), attempt, verdict).await
    }

    /// One write, once: allowed first, and counted as done unless its answer proves that nothing was. Every write goes this way.
    pub(crate) async fn send<T>(
        &self,
        doing: &str,
        write: impl AsyncFnOnce(Permit<'_>) -> Result<T, CallError>,
    ) -> Result<T, StepError> {
        let permit = Permit::ask(&|| self.context.before_write()).map_err(StepError::Stop)?;
        let still = || self.context.may_go_on();
        let answer = write(permit.while_it_holds(&still)).await;
        if answer.as_ref().is_err_and(CallError::did_nothing) {
            self.context.write_refused();
        }
        answer.map_err(|error| self.step_error(error, doing))
    }

    /// Writes. Tried again only where nothing was done for certain: not delivered, or held up by a lock.
    pub(crate) async fn write(&self, call: &Call) -> Result<Option<String>, StepError> {
        let attempt = || self.write_once(call);
        let policy = self.client.policy();
        retry(policy, self.client.clock(), self.client.random(), attempt, verdict_on_write).await
    }

    async fn write_once(&self, call: &Call) -> Result<Option<String>, StepError> {
        let Call { method, path, params, rights, .. } = call;
        self.send(&call.doing, async |permit| {
            self.client.write(permit, method.clone(), path, params, *rights).await
        })
        .await
    }

    /// The same, where the answer matters.
    pub(crate) async fn write_for<T: DeserializeOwned>(&self, call: &Call) -> Result<T, StepError> {
        let attempt = || {
            self.send(&call.doing, async |permit| {
                self.client.write_for(permit, call.method.clone(), &call.path, &call.params).await
            })
        };
        let policy = self.client.policy();
        retry(policy, self.client.clock(), self.client.random(), attempt, verdict_on_write).await
    }

    pub(crate) fn step_error(&self, error: CallError, doing: &str) -> StepError {
        if let CallError::Net(NetError::Withheld(reason)) = error {
            return StepError::Stop(ProviderError::new(ErrorClass::Stopped, reason));
        }
        let doing = doing.to_owned();
        match error.trouble() {
            Trouble::AnswerLost => StepError::Lost { error, doing },
            _ => StepError::Refused { error, doing },
        }
    }

    /// Makes a task known to the journal and follows it.
    pub(crate) async fn see_through(
        &self,
        task: &str,
        doing: &str,
        patience: Duration,
    ) -> Result<(), StepError> {
        self.see_end(task, doing, patience).await.map(|_| ())
    }

    /// The same; says whether somebody remembers how it ended.
    async fn see_end(&self, task: &str, doing: &str, patience: Duration) -> Result<bool, StepError> {
        // Some calls answer with a text that is no task; then they are done.
        let Ok(upid) = task.parse::<Upid>() else { return Ok(true) };
        self.context.task_started(task).await.map_err(StepError::Stop)?;
        self.context.progress(doing);
        let lost = |error| StepError::Lost { error, doing: doing.to_owned() };
        match self.client.follow(&upid, patience).await.map_err(lost)? {
            // A task that nobody remembers has ended; what it did, whoever began it reads back.
            TaskEnd::Forgotten => Ok(false),
            TaskEnd::Done => Ok(true),
            TaskEnd::Warned { status, log } => {
                let said = if log.is_empty() { String::new() } else { format!(": {}", log.join("; ")) };
                self.context.warning(&format!("{doing}: the task ended with `{status}`{said}"));
                Ok(true)
            }
            TaskEnd::Failed { failure, log } => Err(StepError::Task(task_failed(doing, failure, log))),
            TaskEnd::StillRunning => Err(StepError::Task(
                ProviderError::new(
                    ErrorClass::TaskFailed,
                    format!("cannot {doing}: the task still runs after {} s", patience.as_secs()),
                )
                .hint(format!(
                    "it goes on by itself (`{upid}`); apply again when it has ended, or set a longer timeout"
                )),
            )),
        }
    }

    /// Does something about a guest (`doing` completes "cannot …") and looks until it is done. Where the answer is lost or the task
    /// fails, looks whether it has been done all the same.
    pub(crate) async fn ensure<A, D>(
        &self,
        guest: &Guest,
        doing: &str,
        patience: Duration,
        act: impl Fn() -> A,
        is_done: impl Fn() -> D,
    ) -> Result<(), ProviderError>
    where
        A: Future<Output = Result<(), StepError>>,
        D: Future<Output = Result<bool, CallError>>,
    {
        const ATTEMPTS: usize = 3;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let look = || format!("see what became of {guest}");
            let error = match act().await {
                Ok(()) => return effect::wait_for(self, guest, doing, patience, &is_done).await,
                Err(error @ StepError::Stop(_)) => return Err(error.into()),
                Err(error) => error,
            };
            if let StepError::Lost { .. } = error {
                quiet_guest(self.client, guest, None, patience, self.context).await?;
            }
            if is_done().await.map_err(|error| error.explain(&look()))? {
                return Ok(());
            }
            let again = matches!(error, StepError::Lost { .. });
            last = Some(error);
            if !again {
                break;
            }
        }
        Err(last.map_or_else(|| self.internal("it was not tried"), ProviderError::from))
    }

    /// Points an error about a parameter to the field that it came from.
    pub(crate) fn point_to_field(&self, mut error: ProviderError, cause: &CallError) -> ProviderError {
        if let (CallError::Api(api), Some(kind)) = (cause, GuestKind::of(self.operation.address.kind())) {
            let key = match &api.kind {
                ApiErrorKind::RootOnly { key } => Some(key.as_str()),
                _ => api.errors.keys().next().map(String::as_str),
            };
            if let Some(key) = key {
                error.field = field_of(kind, key).or_else(|| {
                    let options = self.operation.spec.get("options")?.as_map()?;
                    options.contains_key(key).then(|| format!("options.{key}"))
                });
            }
        }
        error
    }
}

/// A lock that somebody else holds may go away; the rest will not.
fn verdict_on_write(error: &StepError) -> Verdict {
    match error {
        StepError::Refused { error, .. } => match (error.trouble(), error.kind()) {
            (Trouble::NotDelivered, _) | (_, Some(ApiErrorKind::Locked { .. })) => Verdict::Again,
            _ => Verdict::Final,
        },
        _ => Verdict::Final,
    }
}

/// Why the task failed that is behind an error, if one is.
pub(super) fn task_kind(error: &ProviderError) -> Option<TaskFailureKind> {
    error.cause::<TaskFailure>().map(|failure| failure.kind)
}

fn task_failed(doing: &str, failure: TaskFailure, log: Vec<String>) -> ProviderError {
    let error = ProviderError::new(ErrorClass::TaskFailed, format!("cannot {doing}: {failure}")).log(log);
    let error = match failure.kind {
        TaskFailureKind::StorageFull => {
            error.hint("the storage is full: make room on it, or choose another one, then apply again")
        }
        _ => error,
    };
    error.because(failure)
}

#[cfg(test)]
mod tests;
