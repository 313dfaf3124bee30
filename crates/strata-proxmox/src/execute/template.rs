//! Making a template of a guest. There is no way back.

use std::time::Duration;

use http::Method;
use strata_engine::{ErrorClass, ProviderError};

use super::Patience;
use super::configure::reread;
use super::power::{Insist, shut_down};
use super::update::Target;
use super::work::{Call, StepError, Work};
use crate::api::Params;
use crate::guest::Guest;

pub(super) async fn make(work: &Work<'_>, target: &mut Target) -> Result<(), ProviderError> {
    if target.running {
        shut_down(work, &target.guest, Insist::No).await?;
        target.running = false;
    }
    let guest = &target.guest;
    let patience = Patience::Disk.of(&work.operation.spec);
    let is_template = || async { Ok(guest.config(work.client).await?.is_on("template")) };
    let doing = format!("make {guest} a template");
    work.ensure(
        guest,
        &doing,
        patience,
        || async {
            let call = work.call(Method::POST, guest.path("/template"), Params::new(), doing.clone());
            match work.run_task(Call { patience, ..call }).await? {
                // It was seen to its end, or nobody remembers it: what it did shows at once.
                Some(_) => Ok(()),
                // For a container the call answers at once and the work goes on in the background.
                None => until_template(work, guest, patience).await.map_err(StepError::Stop),
            }
        },
        is_template,
    )
    .await?;
    reread(work, target).await
}

async fn until_template(work: &Work<'_>, guest: &Guest, patience: Duration) -> Result<(), ProviderError> {
    let end = work.client.clock().monotonic() + patience;
    let mut wait = Duration::from_millis(50);
    loop {
        let config = guest.config(work.client).await;
        if config.map_err(|error| error.explain(&format!("read {guest} back")))?.is_on("template") {
            return Ok(());
        }
        if work.client.clock().monotonic() >= end {
            let message = format!("{guest} has not become a template within {} s", patience.as_secs());
            return Err(ProviderError::new(ErrorClass::TaskFailed, message));
        }
        work.client.clock().sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(2));
    }
}

pub(super) fn cannot_unmake(guest: &Guest) -> ProviderError {
    ProviderError::new(
        ErrorClass::BadInput,
        format!("{guest} is a template and cannot become an ordinary guest again"),
    )
    .field("template")
    .hint("clone it instead, or delete it and recreate it")
}
