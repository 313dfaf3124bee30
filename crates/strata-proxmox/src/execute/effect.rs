//! Waiting until what was asked for is so. The end of a task proves nothing: high availability only queues what it is asked for,
//! a reboot ends while the guest is off, and a task that nobody remembers may have failed.

use std::time::Duration;

use strata_engine::{ErrorClass, ProviderError};

use super::work::Work;
use crate::api::{GuestStatus, Params, TaskRow, Upid};
use crate::client::{CallError, TaskEnd};
use crate::codec::GuestKind;
use crate::guest::Guest;

const FIRST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(2);
/// How long an effect may lag behind the end of its task where nobody else has to act.
const GRACE: Duration = Duration::from_secs(10);

/// Looks until `is_done`, for as long as the operation may take if high availability has to act, and else a moment.
pub(super) async fn wait_for<D>(
    work: &Work<'_>,
    guest: &Guest,
    doing: &str,
    patience: Duration,
    is_done: impl Fn() -> D,
) -> Result<(), ProviderError>
where
    D: Future<Output = Result<bool, CallError>>,
{
    let clock = work.client.clock();
    let begun = clock.monotonic();
    let (mut wait, mut told) = (FIRST_LOOK, false);
    loop {
        if is_done().await.map_err(|error| error.explain(&format!("see what became of {guest}")))? {
            return Ok(());
        }
        let status = status_if_any(work, guest).await?;
        let managed = status.as_ref().is_some_and(GuestStatus::is_ha_managed);
        if managed && !told {
            told = true;
            work.context.progress(&format!("waiting for high availability to {doing}"));
        }
        if status.as_ref().is_some_and(GuestStatus::is_in_ha_error) {
            return Err(given_up(work, guest, doing).await);
        }
        let most = if managed { patience } else { patience.min(GRACE) };
        if clock.monotonic() - begun >= most {
            return Err(without_effect(guest, doing, managed, most));
        }
        pause(work, &mut wait, managed.then_some(doing)).await?;
    }
}

/// The status, or none where the guest is not on this node.
async fn status_if_any(work: &Work<'_>, guest: &Guest) -> Result<Option<GuestStatus>, ProviderError> {
    match guest.status(work.client).await {
        Ok(status) => Ok(Some(status)),
        Err(error) if guest.is_said_missing(&error) => Ok(None),
        Err(error) => Err(error.explain(&format!("see what {guest} does"))),
    }
}

/// Sleeps, a little longer each time, unless the run is to end. What high availability was asked to do it does without us, in minutes:
/// nobody who said stop waits for that, and the next run sees what came of it.
async fn pause(work: &Work<'_>, wait: &mut Duration, queued: Option<&str>) -> Result<(), ProviderError> {
    work.context.may_go_on()?;
    let sleep = work.client.clock().sleep(*wait);
    match queued {
        None => sleep.await,
        Some(doing) => tokio::select! {
            biased;
            () = work.context.stopped() => {
                let message = format!("interrupted while it waited for high availability to {doing}");
                return Err(ProviderError::new(ErrorClass::Stopped, message));
            }
            () = sleep => {}
        },
    }
    *wait = (*wait * 3 / 2).min(LONGEST_LOOK);
    Ok(())
}

fn without_effect(guest: &Guest, doing: &str, managed: bool, after: Duration) -> ProviderError {
    let seconds = after.as_secs();
    if managed {
        let message = format!("cannot {doing}: high availability has not done it within {seconds} s");
        return ProviderError::new(ErrorClass::TaskFailed, message).hint(format!(
            "`ha-manager status` on a hypervisor says what it does about {guest}; apply again when it has, or set a longer timeout"
        ));
    }
    let message =
        format!("cannot {doing}: its task has ended, and after {seconds} s there is nothing to see of it");
    ProviderError::new(ErrorClass::TaskFailed, message)
        .hint(format!("look at the tasks of {guest} on `{}`, then apply again", guest.node))
}

async fn given_up(work: &Work<'_>, guest: &Guest, doing: &str) -> ProviderError {
    let sid = match guest.kind {
        GuestKind::Qemu => format!("vm:{}", guest.vmid),
        GuestKind::Lxc => format!("ct:{}", guest.vmid),
    };
    let message = format!("cannot {doing}: high availability has given {guest} up (state `error`)");
    let error = ProviderError::new(ErrorClass::TaskFailed, message)
        .hint(format!("remove the cause, then `ha-manager set {sid} --state disabled` and apply again"));
    match failed_start(work, guest, None).await {
        Some((_, log)) => error.log(log),
        None => error,
    }
}

/// Waits until a guest that was told to reboot runs again. `since` is when that was, by the clock of its node.
pub(super) async fn wait_for_start(
    work: &Work<'_>,
    guest: &Guest,
    before: &GuestStatus,
    since: Option<i64>,
    patience: Duration,
) -> Result<Restarted, ProviderError> {
    /// Somebody starts it within seconds, if anybody does.
    const UNAIDED: Duration = Duration::from_secs(30);
    let doing = format!("restart {guest}");
    let clock = work.client.clock();
    let begun = clock.monotonic();
    let (mut wait, mut told) = (FIRST_LOOK, false);
    loop {
        let status = guest.status(work.client).await;
        let status = status.map_err(|error| error.explain(&format!("see what {guest} does")))?;
        if status.is_started_since(before) {
            return Ok(Restarted::Yes);
        }
        if status.is_in_ha_error() {
            return Err(given_up(work, guest, &doing).await);
        }
        if !told {
            told = true;
            work.context.progress(&format!("waiting for {guest} to start again"));
        }
        let (managed, waited) = (status.is_ha_managed(), clock.monotonic() - begun);
        if !status.is_running() && !managed {
            if let Some((exit, log)) = failed_start(work, guest, since).await {
                let message = format!("cannot {doing}: it is off, and its start failed: {exit}");
                let error = ProviderError::new(ErrorClass::TaskFailed, message).log(log);
                return Err(error.hint("remove the cause, then apply again: it is started then"));
            }
            if waited >= UNAIDED.min(patience) {
                return Ok(Restarted::Off);
            }
        }
        if waited >= patience {
            return Err(without_effect(guest, &doing, managed, patience));
        }
        pause(work, &mut wait, managed.then_some(doing.as_str())).await?;
    }
}

/// What became of a guest that was told to reboot.
pub(super) enum Restarted {
    Yes,
    /// It went down and nobody starts it.
    Off,
}

/// The newest start of a guest that failed, whoever began it, with its last words. None also where others' tasks cannot be seen.
async fn failed_start(work: &Work<'_>, guest: &Guest, since: Option<i64>) -> Option<(String, Vec<String>)> {
    let kind = match guest.kind {
        GuestKind::Qemu => "qmstart",
        GuestKind::Lxc => "vzstart",
    };
    let mut query = Params::new()
        .with("vmid", guest.vmid)
        .with("typefilter", kind)
        .with("errors", 1)
        .with("source", "archive")
        .with("limit", 1);
    if let Some(since) = since {
        query.set("since", since);
    }
    let rows: Vec<TaskRow> = work.client.get(&format!("/nodes/{}/tasks", guest.node), query).await.ok()?;
    let upid = rows.first()?.upid.parse::<Upid>().ok()?;
    match work.client.follow(&upid, Duration::ZERO).await.ok()? {
        TaskEnd::Failed { failure, log } => Some((failure.status, log)),
        _ => None,
    }
}
