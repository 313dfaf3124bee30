//! What a plan has to know before anybody agrees to it: what each kind says of its own objects, and of all guests what goes with one
//! that is deleted, and disks that somebody detached.

mod before_change;
mod detached;
mod planned;
mod removal;

use strata_engine::{Finding, Operation, ProviderError, Review};

use crate::client::Client;
use crate::kinds;

pub(crate) use self::detached::reattached;
pub(crate) use self::planned::PlannedGuest;

/// Everything that a plan has to say about the operations at a datacenter.
pub(crate) async fn review(client: &Client, review: Review<'_>) -> Result<Vec<Finding>, ProviderError> {
    let operations = review.operations;
    let mut found: Vec<Finding> = operations.iter().filter_map(remark).collect();
    found.extend(operations.iter().flat_map(detached::remarks));
    found.extend(planned::payloads(operations));
    found.extend(removal::remarks(client, operations).await?);
    found.extend(before_change::findings(client, operations).await?);
    for managed in kinds::all() {
        let is_own = |operation: &&Operation| operation.address.kind() == managed.table().kind();
        let own: Vec<&Operation> = operations.iter().filter(is_own).collect();
        if !own.is_empty() {
            found.extend(managed.preconditions(client, &own, review).await?);
        }
    }
    found.extend(kinds::access::preconditions(client, review).await?);
    found.extend(kinds::lockout::preconditions(client, review.operations).await?);
    found.extend(detached::preconditions(operations));
    found.extend(removal::preconditions(client, operations).await?);
    Ok(found)
}

fn remark(operation: &Operation) -> Option<Finding> {
    let remark = kinds::of(operation.address.kind())?.remark(operation)?;
    Some(Finding::remark(operation, remark))
}
