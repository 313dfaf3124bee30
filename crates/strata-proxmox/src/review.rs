//! What a plan has to know about guests before anybody agrees to it: what goes with one that is deleted, disks that somebody
//! detached, templates that others hang on.

mod detached;
mod linked;
mod members;
mod removal;

use strata_engine::{Consequence, Objection, Operation, ProviderError};

use crate::client::Client;

pub(crate) use self::detached::{notices, reattached};

pub(crate) async fn objections(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Objection>, ProviderError> {
    let mut found = detached::objections(operations);
    found.extend(linked::objections(client, operations).await?);
    found.extend(members::objections(client, operations).await?);
    found.extend(removal::objections(client, operations).await?);
    Ok(found)
}

pub(crate) async fn consequences(
    client: &Client,
    operations: &[Operation],
) -> Result<Vec<Consequence>, ProviderError> {
    removal::consequences(client, operations).await
}
