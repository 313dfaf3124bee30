//! What a plan has to know about guests before anybody agrees to it: what goes with one that is deleted, disks that somebody
//! detached, templates that others hang on.

mod detached;
mod linked;
mod members;
mod planned;
mod removal;

use strata_engine::{Finding, ProviderError, Review};

use crate::client::Client;
use crate::datacenter;

pub(crate) use self::detached::reattached;
pub(crate) use self::planned::PlannedGuest;

/// Everything that a plan has to say about the operations at a datacenter.
pub(crate) async fn review(client: &Client, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
    let operations = review.operations;
    let mut found: Vec<Finding> = operations.iter().flat_map(datacenter::remarks).collect();
    found.extend(operations.iter().flat_map(detached::remarks));
    found.extend(planned::payloads(operations));
    found.extend(removal::remarks(client, operations).await?);
    found.extend(datacenter::preconditions(client, review).await?);
    found.extend(detached::preconditions(operations));
    found.extend(linked::preconditions(client, operations).await?);
    found.extend(members::preconditions(client, operations).await?);
    found.extend(removal::preconditions(client, operations).await?);
    Ok(found)
}
