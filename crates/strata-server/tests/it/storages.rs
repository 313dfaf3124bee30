//! The storage that the larger tests run on: the embedded one, or what `STRATA_TEST_STORAGE` names.

use std::path::Path;
use std::sync::Arc;

use strata_server::storage::Storage;
use strata_server::storage::embedded::{EmbeddedOptions, EmbeddedStorage, FILE};

pub(crate) async fn open(data: &Path) -> Arc<dyn Storage> {
    Arc::new(EmbeddedStorage::open(&data.join(FILE), &EmbeddedOptions::default()).unwrap())
}
