//! What importers make: the new repository before it is text, and where its parts came from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use crate::output::Object;
use crate::tree::SourceLine;

/// The new repository while it is made. Every importer adds to one; then it is merged, shortened, checked and written.
#[derive(Default)]
pub(crate) struct Model {
    /// Documents by path, with where each came from.
    pub(crate) documents: BTreeMap<String, (Json, SourceLine)>,
    /// Where parts of documents came from: document, `vms`, `web`.
    pub(crate) origins: BTreeMap<(String, String, String), SourceLine>,
    /// Targets by name.
    pub(crate) targets: Object,
    /// The `state` of strata.yaml.
    pub(crate) state: Option<Json>,
    /// Encrypted files that are kept as they are.
    pub(crate) secret_files: Vec<String>,
    /// The machine of a stack that a node of a cluster runs on: document and name of the node, document and key of the machine.
    pub(crate) links: BTreeMap<(String, String), (String, String)>,
    /// What was written down in place of what nobody said.
    pub(crate) stood_in: BTreeSet<String>,
}
