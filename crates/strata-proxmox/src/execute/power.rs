//! Starting, shutting down, restarting.

use http::Method;
use strata_engine::ProviderError;

use super::Patience;
use super::work::{Call, StepError, Work};
use crate::api::Params;
use crate::guest::Guest;

/// What happens to a guest that does not shut down in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insist {
    /// It is left running, and that is an error.
    No,
    /// It is stopped.
    Stop,
}

pub(super) async fn start(work: &Work<'_>, guest: &Guest) -> Result<(), ProviderError> {
    let patience = Patience::Start.of(&work.operation.spec);
    work.ensure(
        guest,
        patience,
        || async {
            let call =
                work.call(Method::POST, guest.path("/status/start"), Params::new(), format!("start {guest}"));
            work.run(Call { patience, ..call }).await
        },
        || async { guest.is_running(work.client).await },
    )
    .await
}

pub(super) async fn shut_down(work: &Work<'_>, guest: &Guest, insist: Insist) -> Result<(), ProviderError> {
    let patience = Patience::Shutdown.of(&work.operation.spec);
    let mut params = Params::new().with("timeout", patience.as_secs());
    if insist == Insist::Stop {
        params.set("forceStop", 1);
        work.context
            .progress(&format!("shutting down {guest}; it is stopped after {} s", patience.as_secs()));
    }
    let done = work
        .ensure(
            guest,
            patience,
            || async {
                let doing = format!("shut down {guest}");
                let call = work.call(Method::POST, guest.path("/status/shutdown"), params.clone(), doing);
                // The server waits that long by itself, and then ends the task.
                work.run(Call { patience: patience * 2, ..call }).await
            },
            || async { Ok(!guest.is_running(work.client).await?) },
        )
        .await;
    done.map_err(|error| no_answer_hint(error, patience.as_secs()))
}

/// A restart by the server: what waits for one takes effect.
pub(super) async fn restart(work: &Work<'_>, guest: &Guest) -> Result<(), ProviderError> {
    const ATTEMPTS: usize = 3;
    let patience = Patience::Shutdown.of(&work.operation.spec);
    let uptime = || async {
        let up = guest.uptime(work.client).await;
        up.map_err(|error| error.explain(&format!("see how long {guest} has been up")))
    };
    let before = uptime().await?;
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        let params = Params::new().with("timeout", patience.as_secs());
        let call = work.call(Method::POST, guest.path("/status/reboot"), params, format!("restart {guest}"));
        // The server waits for the guest to shut down, and then starts it.
        let error = match work.run(Call { patience: patience * 2, ..call }).await {
            Ok(()) => return Ok(()),
            Err(error @ StepError::Lost { .. }) => error,
            Err(error) => return Err(no_answer_hint(error.into(), patience.as_secs())),
        };
        super::quiet(work.client, guest, None, patience * 2).await?;
        // A guest that had been up for a while and is so no longer has been restarted.
        if uptime().await?.zip(before).is_some_and(|(now, before)| now < before) {
            return Ok(());
        }
        lost = Some(error);
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}

fn no_answer_hint(error: ProviderError, seconds: u64) -> ProviderError {
    if !error.message.contains("got timeout") && !error.message.contains("timed out") {
        return error;
    }
    error.hint(format!(
        "the guest did not answer within {seconds} s: it needs ACPI support or the guest agent; set a longer `timeouts.shutdown`, or stop it by hand"
    ))
}
