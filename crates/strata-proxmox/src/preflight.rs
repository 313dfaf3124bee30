//! Whether operations can be done at all.

use strata_engine::{Operation, ProviderError};

use crate::client::Client;

pub(crate) async fn preflight(
    _client: &Client,
    _operations: &[Operation],
) -> Result<Vec<ProviderError>, ProviderError> {
    Ok(Vec::new())
}
