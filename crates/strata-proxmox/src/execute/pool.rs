//! The pool of a guest. Pools take no digest; each change names one guest.

use http::Method;
use strata_engine::ProviderError;

use super::work::{StepError, Work};
use crate::api::Params;
use crate::guest::Guest;

/// How often a change is sent whose answers get lost; sending it twice does no harm.
const ATTEMPTS: usize = 3;

pub(super) async fn change(
    work: &Work<'_>,
    guest: &Guest,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<(), ProviderError> {
    let (params, doing) = match (before, after) {
        (_, Some(pool)) => (
            Params::new().with("poolid", pool).with("vms", guest.vmid).with("allow-move", 1),
            format!("put {guest} into the pool `{pool}`"),
        ),
        (Some(pool), None) => (
            Params::new().with("poolid", pool).with("vms", guest.vmid).with("delete", 1),
            format!("take {guest} out of the pool `{pool}`"),
        ),
        (None, None) => return Ok(()),
    };
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        let call = work.call(Method::PUT, "/pools".to_owned(), params.clone(), doing.clone());
        match work.run(call).await {
            Ok(()) => return Ok(()),
            Err(error) if error.says("already a pool member") || error.says("is not a pool member") => {
                return Ok(());
            }
            Err(error @ StepError::Lost { .. }) => lost = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}
