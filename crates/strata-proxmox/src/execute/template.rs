//! Making a template of a guest. There is no way back.

use http::Method;
use strata_engine::{ErrorClass, ProviderError};

use super::Patience;
use super::configure::reread;
use super::power::{Insist, shut_down};
use super::update::Target;
use super::work::{Call, Work};
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
    work.ensure(
        guest,
        patience,
        || async {
            let doing = format!("make {guest} a template");
            let call = work.call(Method::POST, guest.path("/template"), Params::new(), doing);
            work.run(Call { patience, ..call }).await
        },
        is_template,
    )
    .await?;
    // For a container the call answers at once and the work goes on in the background.
    let end = work.client.clock().monotonic() + patience;
    let mut wait = std::time::Duration::from_millis(50);
    loop {
        reread(work, target).await?;
        if target.config.is_on("template") {
            return Ok(());
        }
        if work.client.clock().monotonic() >= end {
            let message =
                format!("{} has not become a template within {} s", target.guest, patience.as_secs());
            return Err(ProviderError::new(ErrorClass::TaskFailed, message));
        }
        work.client.clock().sleep(wait).await;
        wait = (wait * 2).min(std::time::Duration::from_secs(2));
    }
}

pub(super) fn cannot_unmake(guest: &Guest) -> ProviderError {
    ProviderError::new(
        ErrorClass::BadInput,
        format!("{guest} is a template and cannot become an ordinary guest again"),
    )
    .field("template")
    .hint("clone it instead, or delete it and make it anew")
}
