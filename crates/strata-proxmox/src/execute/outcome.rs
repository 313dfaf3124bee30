//! A task that is begun once and followed, where its end alone decides whether something that cannot be read back was done.

use strata_engine::ProviderError;

use super::work::{Call, StepError, Work};
use crate::guest::Guest;
use crate::interrupted_tasks::quiet_guest;

/// What is known of a task that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It says that it did what it was to do.
    Well,
    /// Its answer was lost, or nobody remembers it: only a look can tell.
    Unknown,
}

impl Work<'_> {
    /// Begins it and follows it. A task that failed is an error; one of which nothing is heard has ended when nothing of ours runs on the
    /// guest any more.
    pub(super) async fn follow_through(&self, guest: &Guest, call: Call) -> Result<Ended, ProviderError> {
        let patience = call.patience;
        match self.run_known(call).await {
            Ok(known) => Ok(if known { Ended::Well } else { Ended::Unknown }),
            Err(StepError::Lost { .. }) => {
                quiet_guest(self.client, guest, None, patience, self.context).await?;
                Ok(Ended::Unknown)
            }
            Err(error) => Err(error.into()),
        }
    }
}
