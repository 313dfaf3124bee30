//! Deleting a guest: only after a last look that proves it ours, and never more than its own volumes.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use http::Method;
use strata_engine::{ErrorClass, Outcome, ProviderError};

use super::power::{Insist, shut_down};
use super::work::{Call, StepError, Work};
use super::{Patience, before_change, update};
use crate::absence;
use crate::api::Params;
use crate::client::CallError;
use crate::guest::Guest;
use crate::ownership::Claim;

pub(super) async fn delete(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let mut target = match update::find(work).await {
        Ok(target) => target,
        // Proven: nothing has the VMID any more.
        Err(error) if error.class == ErrorClass::Missing => return Ok(Outcome::default()),
        Err(error) => return Err(error),
    };
    update::check_unchanged(work, &target)?;
    if target.config.is_on("protection") {
        let mut refused =
            ProviderError::new(ErrorClass::Guard, format!("{} is protected in Proxmox", target.guest))
                .field("protection")
                .hint("set `protection: false` and apply, then delete it");
        refused.nothing_done = true;
        return Err(refused);
    }
    let ran = target.running;
    if ran {
        shut_down(work, &target.guest, Insist::Stop).await?;
        let before = target.config;
        // The guest was left alone for a while: look again right before the call that takes no digest. The shutdown itself may have
        // brought waiting changes into effect, which writes the configuration; what somebody else wrote shows in its keys.
        target = update::find(work).await?;
        update::check_unchanged_since(&target, &before, "deleted")?;
    }
    before_change::back_up(work, &target.guest, ran).await?;
    let (guest, seen) = (target.guest, target.config);
    let patience = Patience::Delete.of(&work.operation.spec);
    // Whatever holds the call up or loses its answer: the guest is compared once more before it is sent again.
    let unchanged = || {
        let look = async {
            match update::find(work).await {
                Ok(now) => update::check_unchanged_since(&now, &seen, "deleted"),
                Err(error) if error.class == ErrorClass::Missing => Ok(()),
                Err(error) => Err(error),
            }
        };
        look.boxed()
    };
    let tried = AtomicBool::new(false);
    work.ensure(
        &guest,
        &format!("delete {guest}"),
        patience,
        || async {
            // A replacement goes on: what backs it up, watches it and copies it must find it again.
            let params = match work.operation.replacement {
                true => Params::new(),
                false => Params::new().with("purge", 1),
            };
            if tried.swap(true, Ordering::Relaxed) {
                unchanged().await.map_err(StepError::Stop)?;
            }
            let call = work.call(Method::DELETE, guest.path(""), params, format!("delete {guest}"));
            work.run_while(Call { patience, ..call }, &unchanged).await
        },
        || is_gone(work, &guest),
    )
    .await?;
    Ok(Outcome::default())
}

/// Whether the guest is gone: its VMID is free, or something that is not ours has it by now.
async fn is_gone(work: &Work<'_>, guest: &Guest) -> Result<bool, CallError> {
    if absence::is_free(work.client, guest.vmid).await? {
        return Ok(true);
    }
    let operation = work.operation;
    let claim = Claim::new(&operation.lineage, &operation.address, operation.recorded.as_ref(), guest.vmid);
    let config = guest.config_if_any(work.client).await?;
    Ok(config.is_some_and(|config| config.lock.is_none() && claim.dispute(guest, &config).is_some()))
}
