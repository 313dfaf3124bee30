//! Starting, shutting down, restarting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::Value;

use super::Patience;
use super::effect::{self, Restarted};
use super::work::{Call, StepError, Work, task_kind};
use crate::api::{GuestStatus, Params, TaskFailureKind};
use crate::guest::Guest;

/// High availability takes up what it is asked for within two of its rounds.
const HA_DELAY: Duration = Duration::from_secs(60);

/// What happens to a guest that does not shut down in time. High availability always stops it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insist {
    /// It is left running, and that is an error.
    No,
    /// It is stopped.
    Stop,
}

pub(super) async fn start(work: &Work<'_>, guest: &Guest) -> Result<(), ProviderError> {
    let patience = Patience::Start.of(&work.operation.spec);
    let doing = format!("start {guest}");
    let call = work.call(Method::POST, guest.path("/status/start"), Params::new(), doing.clone());
    switch(work, guest, Power::On, patience, &Call { patience, ..call }).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    Off,
}

/// Asks for a guest to run or not, until it does so. Somebody may give it to high availability meanwhile: its manager undoes what it was not
/// asked for, and drops what it is asked about a guest that it does not know yet. Then it is asked again.
async fn switch(
    work: &Work<'_>,
    guest: &Guest,
    wanted: Power,
    patience: Duration,
    call: &Call,
) -> Result<(), ProviderError> {
    const ATTEMPTS: usize = 3;
    let (clock, doing) = (work.client.clock(), call.doing.as_str());
    for _ in 0..ATTEMPTS {
        let (asked, again) = (Mutex::new(None), AtomicBool::new(false));
        work.ensure(
            guest,
            doing,
            patience,
            || async {
                let task = work.run_task(call.clone()).await?;
                *lock(&asked) = task.map(|task| Asked { manager: task.is_of_ha(), at: clock.monotonic() });
                Ok(())
            },
            || async {
                let status = guest.status(work.client).await?;
                let done = status.is_running() == (wanted == Power::On);
                let asked = *lock(&asked);
                let undone = asked.is_some_and(|asked| asked.is_lost_on(&status, clock.monotonic()));
                again.store(!done && undone, Ordering::SeqCst);
                Ok(done || undone)
            },
        )
        .await?;
        if !again.into_inner() {
            return Ok(());
        }
        work.context.progress(&format!("high availability manages {guest} now and is asked to {doing}"));
    }
    let message = format!("cannot {doing}: high availability manages it and does not do it");
    Err(ProviderError::new(ErrorClass::TaskFailed, message).hint(format!(
        "`ha-manager status` on a hypervisor says what it does about {guest}; then apply again"
    )))
}

/// Who was asked for a guest to start or stop, and when.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// The manager of high availability, not the guest's hypervisor.
    manager: bool,
    at: Duration,
}

impl Asked {
    /// Whether the manager has the guest and was not asked, or has not taken up what it was asked.
    fn is_lost_on(self, status: &GuestStatus, now: Duration) -> bool {
        status.is_ha_managed()
            && (!self.manager || (status.is_in_ha_order() && now.saturating_sub(self.at) >= HA_DELAY / 2))
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) async fn shut_down(work: &Work<'_>, guest: &Guest, insist: Insist) -> Result<(), ProviderError> {
    let patience = Patience::Shutdown.of(&work.operation.spec);
    let mut params = Params::new().with("timeout", patience.as_secs());
    if insist == Insist::Stop && work.operation.replacement {
        check_replaceable(work, guest).await?;
    }
    let mut path = "/status/shutdown";
    if insist == Insist::Stop && work.operation.spec.get("force_stop").and_then(Value::as_bool) == Some(true)
    {
        // The source asks for it: nobody waits for the guest's system.
        (params, path) = (Params::new(), "/status/stop");
        work.context.progress(&format!("stopping {guest}"));
    } else if insist == Insist::Stop {
        params.set("forceStop", 1);
        work.context
            .progress(&format!("shutting down {guest}; it is stopped after {} s", patience.as_secs()));
    }
    let doing = format!("shut down {guest}");
    let call = work.call(Method::POST, guest.path(path), params, doing);
    // The server waits that long by itself, and then ends the task.
    let call = Call { patience: patience * 2, ..call };
    // High availability needs its time to begin, and then waits as long as it was told to.
    let done = switch(work, guest, Power::Off, patience + HA_DELAY, &call).await;
    done.map_err(|error| no_answer_hint(error, patience.as_secs()))
}

/// A guest of high availability is deleted only with `purge`, which a replacement does not send: it would be off for nothing. Every
/// token that sees the guest sees this, other than the list of the resources that the plan looks at.
async fn check_replaceable(work: &Work<'_>, guest: &Guest) -> Result<(), ProviderError> {
    let status = guest.status(work.client).await;
    if !status.map_err(|error| error.explain(&format!("see what {guest} does")))?.is_ha_managed() {
        return Ok(());
    }
    let message = format!("high availability manages {guest}: Proxmox does not delete it for a replacement");
    let mut refused = ProviderError::new(ErrorClass::Guard, message)
        .hint("remove it from high availability, apply, then add it again");
    refused.nothing_done = true;
    Err(refused)
}

/// A restart by the server: what waits for one takes effect. It is done when the guest runs again.
pub(super) async fn restart(work: &Work<'_>, guest: &Guest) -> Result<(), ProviderError> {
    const ATTEMPTS: usize = 3;
    let patience = Patience::Shutdown.of(&work.operation.spec);
    let status = || async {
        let status = guest.status(work.client).await;
        status.map_err(|error| error.explain(&format!("see how long {guest} has been up")))
    };
    let before = status().await?;
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        let params = Params::new().with("timeout", patience.as_secs());
        let call = work.call(Method::POST, guest.path("/status/reboot"), params, format!("restart {guest}"));
        // The server waits for the guest to shut down.
        let error = match work.run_task(Call { patience: patience * 2, ..call }).await {
            Ok(task) => return come_up(work, guest, &before, task.map(|upid| upid.started)).await,
            Err(error @ StepError::Lost { .. }) => error,
            Err(error) => return Err(no_answer_hint(error.into(), patience.as_secs())),
        };
        crate::interrupted_tasks::quiet_guest(work.client, guest, None, patience * 2, work.context).await?;
        let now = status().await?;
        if now.is_started_since(&before) {
            return Ok(());
        }
        if !now.is_running() {
            return come_up(work, guest, &before, None).await;
        }
        lost = Some(error);
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}

/// The task of a reboot, or of the move of a container, ends when the guest is off: somebody else starts it, and may fail to.
pub(super) async fn come_up(
    work: &Work<'_>,
    guest: &Guest,
    before: &GuestStatus,
    since: Option<i64>,
) -> Result<(), ProviderError> {
    let patience = Patience::Start.of(&work.operation.spec);
    match effect::wait_for_start(work, guest, before, since, patience).await? {
        Restarted::Yes => Ok(()),
        Restarted::Off => start(work, guest).await,
    }
}

fn no_answer_hint(error: ProviderError, seconds: u64) -> ProviderError {
    if task_kind(&error) != Some(TaskFailureKind::NoAnswer) {
        return error;
    }
    error.hint(format!(
        "the guest did not answer within {seconds} s: it needs ACPI support or the guest agent; set a longer `timeouts.shutdown`, or stop it by hand"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::TaskFailure;

    /// Only a guest that did not answer is helped by a longer time.
    #[test]
    fn a_longer_time_is_hinted_at_only_after_a_time_out() {
        let hint = |status: &str| {
            let failed = ProviderError::new(ErrorClass::TaskFailed, status);
            no_answer_hint(failed.because(TaskFailure::read(status)), 180).hint
        };
        for message in ["VM quit/powerdown failed - got timeout", "lxc-stop timed out"] {
            assert!(hint(message).is_some_and(|hint| hint.contains("within 180 s")), "{message}");
        }
        assert_eq!(hint("can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout"), None);
    }
}
