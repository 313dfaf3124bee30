//! Which storages every node sees the same content of.

use std::collections::BTreeSet;

use serde::Deserialize;
use strata_engine::ProviderError;

use crate::api::{Params, flag};
use crate::client::Client;

#[derive(Deserialize)]
struct Row {
    storage: String,
    #[serde(default, deserialize_with = "flag")]
    shared: bool,
}

/// One request, whatever the number of nodes and storages.
pub(crate) async fn shared(client: &Client) -> Result<BTreeSet<String>, ProviderError> {
    let query = Params::new().with("type", "storage");
    let rows: Vec<Row> =
        client.get("/cluster/resources", query).await.map_err(|error| error.explain("list the storages"))?;
    Ok(rows.into_iter().filter(|row| row.shared).map(|row| row.storage).collect())
}
