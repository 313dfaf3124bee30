//! Doing one operation: a sequence of small steps, each of which can be repeated.

pub(crate) mod calls;
mod cidata;
mod configure;
mod create;
mod delete;
mod effect;
mod firewall;
mod image;
mod migrate;
mod patience;
mod pool;
mod power;
mod steps;
mod template;
mod update;
mod work;

use strata_engine::{Operation, OperationContext, Outcome, ProviderError};
use strata_state::Action;

use crate::client::Client;
use crate::datacenter;
use crate::kinds;

pub(crate) use self::patience::Patience;
pub(crate) use self::work::{Call, StepError, Work, quiet};

pub(crate) async fn execute(
    client: &Client,
    operation: &Operation,
    context: &dyn OperationContext,
) -> Result<Outcome, ProviderError> {
    let work = Work { client, operation, context };
    match (operation.address.kind(), operation.action) {
        (kind, _) if kinds::is_datacenter(kind) => datacenter::execute(&work).await,
        (kinds::IMAGE, Action::Create | Action::Update) => image::create(&work).await,
        (kinds::CIDATA, Action::Create | Action::Update) => cidata::create(&work).await,
        (kinds::IMAGE | kinds::CIDATA, Action::Delete) => image::delete(&work).await,
        (_, Action::Create) => create::create(&work).await,
        (_, Action::Update) => update::update(&work).await,
        (_, Action::Delete) => delete::delete(&work).await,
    }
}
