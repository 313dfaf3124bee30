//! Doing one operation: a sequence of small steps, each of which can be repeated.

pub(crate) mod backup;
mod before_change;
pub(crate) mod calls;
mod cidata;
mod configure;
mod create;
mod delete;
mod effect;
mod firewall;
mod image;
mod migrate;
mod outcome;
mod patience;
mod pool;
mod power;
mod ready;
pub(crate) mod restore;
pub(crate) mod snapshot;
mod steps;
mod template;
mod update;
mod work;

use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_state::Action;

use crate::client::Client;
use crate::kinds;

pub(crate) use self::cidata::create as cidata;
pub(crate) use self::image::{create as image, delete as delete_volume};
pub(crate) use self::migrate::movable;
pub(crate) use self::patience::Patience;
pub(crate) use self::work::{Call, StepError, Unchanged, Work};

pub(crate) async fn execute(
    client: &Client,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    let work = Work { client, operation, context };
    match kinds::of(operation.address.kind()) {
        Some(managed) => managed.execute(&work).await,
        None => Err(work.internal("nothing is known about its kind")),
    }
}

pub(crate) async fn guest(work: &Work<'_>) -> Result<Outcome, ProviderError> {
    let operation = work.operation;
    match operation.action {
        Action::Create => {
            let outcome = create::create(work).await?;
            if operation.replacement || operation.awaited {
                ready::wait(work).await?;
            }
            Ok(outcome)
        }
        Action::Update => {
            let outcome = update::update(work).await?;
            if operation.restart || operation.awaited {
                ready::wait(work).await?;
            }
            Ok(outcome)
        }
        Action::Delete => delete::delete(work).await,
    }
}
