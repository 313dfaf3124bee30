//! Deleting a guest: only after a last look that proves it ours, and never more than its own volumes.

use http::Method;
use strata_engine::{ErrorClass, Outcome, ProviderError};

use super::power::{Insist, shut_down};
use super::work::{Call, Work};
use super::{Patience, update};
use crate::api::Params;
use crate::guest::locate;

pub(super) async fn delete(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let mut target = match update::find(work).await {
        Ok(target) => target,
        Err(error) if error.class == ErrorClass::Missing && is_gone(work).await? => {
            return Ok(Outcome::default());
        }
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
    if target.running {
        shut_down(work, &target.guest, Insist::Stop).await?;
        // The guest was left alone for a while: look again right before the call that takes no digest.
        target = update::find(work).await?;
    }
    let guest = target.guest;
    let patience = Patience::Delete.of(&work.operation.spec);
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
            let call = work.call(Method::DELETE, guest.path(""), params, format!("delete {guest}"));
            match work.run(Call { patience, ..call }).await {
                Err(error) if error.kind() == Some(&crate::api::ApiErrorKind::Missing) => Ok(()),
                other => other,
            }
        },
        || async { Ok(guest.config_if_any(work.client).await?.is_none()) },
    )
    .await?;
    Ok(Outcome::default())
}

/// Nothing has the VMID any more.
async fn is_gone(work: &Work<'_>) -> Result<bool, ProviderError> {
    let vmid = work.vmid()?;
    let row =
        locate(work.client, vmid).await.map_err(|error| error.explain(&format!("look for VMID {vmid}")))?;
    Ok(row.is_none())
}
