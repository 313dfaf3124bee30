//! Whether a guest works again after a restart or a start, by the check that the source names. Those of its group that come after it wait for that.

use std::time::Duration;

use serde::de::IgnoredAny;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{Spec, Value};

use super::Patience;
use super::work::Work;
use crate::api::{ApiErrorKind, Params};
use crate::client::CallError;
use crate::guest::Guest;

/// How long one connection may take.
const CONNECT: Duration = Duration::from_secs(2);

/// What is asked of a guest.
enum Check<'s> {
    /// Its agent answers.
    Agent,
    /// It accepts a connection here.
    Tcp(&'s str),
}

impl<'s> Check<'s> {
    fn of(spec: &'s Spec) -> Option<Self> {
        let check = spec.get("rollout")?.as_map()?.get("check")?.as_map()?;
        match check.get("tcp").and_then(Value::as_text) {
            Some(place) => Some(Self::Tcp(place)),
            None => check.get("agent").and_then(Value::as_bool)?.then_some(Self::Agent),
        }
    }

    fn spoken(&self) -> String {
        match self {
            Self::Agent => "its guest agent".to_owned(),
            Self::Tcp(place) => format!("`{place}`"),
        }
    }
}

/// Waits until the check holds, as long as a start may take. Without a check, or for a guest that does not run, it holds at once.
pub(super) async fn wait(work: &Work<'_>) -> Result<(), ProviderError> {
    let spec = &work.operation.spec;
    let Some(check) =
        Check::of(spec).filter(|_| spec.get("power").and_then(Value::as_text) == Some("running"))
    else {
        return Ok(());
    };
    let guest = Guest { kind: work.guest_kind(), node: work.text("node")?.to_owned(), vmid: work.vmid()? };
    let (patience, what) = (Patience::Start.of(spec), check.spoken());
    let clock = work.client.clock();
    let (begun, mut pause) = (clock.monotonic(), Duration::from_millis(50));
    work.context.progress(&format!("waiting for {what}"));
    while !holds(work, &guest, &check).await? {
        if clock.monotonic().saturating_sub(begun) >= patience {
            let seconds = patience.as_secs();
            let again =
                if work.operation.restart || work.operation.replacement { "restarted" } else { "started" };
            let message = format!("{guest} was {again}, and {what} did not answer within {seconds} s");
            return Err(ProviderError::new(ErrorClass::TaskFailed, message)
                .hint("the others of its group were not restarted: see what it does, then apply again"));
        }
        work.context.may_go_on()?;
        tokio::select! {
            biased;
            () = work.context.stopped() => {
                let message = format!("interrupted while it waited for {what}");
                return Err(ProviderError::new(ErrorClass::Stopped, message));
            }
            () = clock.sleep(pause) => {}
        }
        pause = (pause * 2).min(CONNECT);
    }
    Ok(())
}

async fn holds(work: &Work<'_>, guest: &Guest, check: &Check<'_>) -> Result<bool, ProviderError> {
    match check {
        Check::Tcp(place) => {
            let connected = tokio::time::timeout(CONNECT, work.client.dial().connect(place)).await;
            Ok(matches!(connected, Ok(Ok(_))))
        }
        Check::Agent => {
            let path = guest.path("/agent/network-get-interfaces");
            let answer: Result<IgnoredAny, CallError> = work.client.get(&path, Params::new()).await;
            match answer {
                Ok(_) => Ok(true),
                Err(error) if matches!(error.kind(), Some(ApiErrorKind::Denied { .. })) => {
                    Err(error.explain(&format!("ask the guest agent of {guest}")))
                }
                // It is not there yet, or its hypervisor is busy with the start.
                Err(CallError::Api(_)) => Ok(false),
                Err(error) => Err(error.explain(&format!("ask the guest agent of {guest}"))),
            }
        }
    }
}
