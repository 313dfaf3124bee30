//! What tests do to it behind everyone's back, through the control interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{PORT, StorageServer};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Change {
    /// It answers at this host too.
    Listen { host: String },
    /// A pool appears.
    Pool { name: String, bytes: u64 },
    /// A dataset appears, or its properties change.
    Dataset {
        name: String,
        #[serde(default)]
        properties: BTreeMap<String, String>,
    },
    /// A file is written into a dataset; null removes it.
    File { dataset: String, name: String, bytes: Option<u64> },
    /// A snapshot of a dataset is taken.
    Snapshot { dataset: String, name: String },
    /// A dataset disappears with everything in it.
    Destroy { dataset: String },
}

/// Carries out `{"truenas": …}` of a change.
pub fn apply(server: &Arc<StorageServer>, change: &Value) -> Result<Value, String> {
    let change: Change = serde_json::from_value(change.clone()).map_err(|error| error.to_string())?;
    let mut nas = server.content();
    let missing = || "no such dataset".to_owned();
    match change {
        Change::Listen { host } => {
            server.shared.network.register(&host, PORT, server.listener());
        }
        Change::Pool { name, bytes } => {
            nas.datasets.entry(name.clone()).or_default();
            nas.pools.insert(name, bytes);
        }
        Change::Dataset { name, properties } => {
            nas.datasets.entry(name).or_default().properties.extend(properties);
        }
        Change::File { dataset, name, bytes } => {
            let files = &mut nas.datasets.get_mut(&dataset).ok_or_else(missing)?.files;
            match bytes {
                Some(bytes) => files.insert(name, bytes),
                None => files.remove(&name),
            };
        }
        Change::Snapshot { dataset, name } => {
            nas.datasets.get_mut(&dataset).ok_or_else(missing)?.snapshots.push(name);
        }
        Change::Destroy { dataset } => {
            let prefix = format!("{dataset}/");
            nas.datasets.retain(|name, _| *name != dataset && !name.starts_with(&prefix));
        }
    }
    drop(nas);
    server.shared.changed();
    Ok(json!({}))
}
