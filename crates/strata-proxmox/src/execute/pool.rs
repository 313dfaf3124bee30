//! The pool of a guest. Pools take no digest; each change names one guest.

use http::Method;
use strata_engine::{ErrorClass, ProviderError};

use super::work::{StepError, Work};
use crate::absence;
use crate::api::{ApiErrorKind, Params};
use crate::guest::{Guest, locate};

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
            format!("remove {guest} from the pool `{pool}`"),
        ),
        (None, None) => return Ok(()),
    };
    let is_in = async || -> Result<Option<Box<str>>, ProviderError> {
        let row = locate(work.client, guest.vmid).await;
        let row = row.map_err(|error| error.explain(&format!("see which pool {guest} is in")))?;
        row.map(|row| row.pool).ok_or_else(|| absence::hidden_guest_error(guest.vmid))
    };
    let mut lost = None;
    for _ in 0..ATTEMPTS {
        // The call takes a guest out of whatever pool it is in.
        let now = is_in().await?;
        if now.as_deref() == after {
            return Ok(());
        }
        if now.as_deref() != before {
            let message = format!("somebody else put {guest} into another pool since the plan was made");
            return Err(ProviderError::new(ErrorClass::Conflict, message)
                .field("pool")
                .hint("it was left there; plan again"));
        }
        let call = work.call(Method::PUT, "/pools".to_owned(), params.clone(), doing.clone());
        match work.run(call).await {
            Ok(()) => {}
            Err(error) if error.kind() == Some(&ApiErrorKind::PoolAsAsked) => {}
            Err(error @ StepError::Lost { .. }) => lost = Some(error),
            Err(error) => return Err(error.into()),
        }
        let now = is_in().await?;
        if now.as_deref() == after || (after.is_none() && now.as_deref() != before) {
            return Ok(());
        }
    }
    if lost.is_none() {
        let message = format!("cannot {doing}: the server says that it is done, and it is not");
        return Err(ProviderError::new(ErrorClass::Conflict, message).field("pool").hint("plan again"));
    }
    Err(lost.map_or_else(|| work.internal("it was not tried"), ProviderError::from))
}
