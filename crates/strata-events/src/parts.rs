//! What stands within events.

use schemars::JsonSchema;
use serde::Serialize;
use strata_resource::{Address, FieldChange, Stage};
use strata_tofu::changes::Difference;

/// The changes of fields, by whoever plans them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Side<'e> {
    Strata(&'e [FieldChange]),
    OpenTofu(&'e [Difference]),
}

impl Side<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Strata(changes) => changes.is_empty(),
            Self::OpenTofu(changes) => changes.is_empty(),
        }
    }
}

/// A place in a file.
#[derive(Debug, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    /// What is said of the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// An object of a graph.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GraphNode<'e> {
    pub address: &'e Address,
    pub kind: String,
    pub name: &'e str,
    pub stage: Stage,
    pub target: &'e str,
}

/// What must be there before what.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GraphEdge<'e> {
    /// What is needed.
    pub from: &'e Address,
    /// What needs it.
    pub to: &'e Address,
}

/// The versions that the source asks for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Asked {
    pub talos: String,
    pub kubernetes: String,
}

/// The versions that a node runs, as far as it answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeVersions<'e> {
    pub name: &'e str,
    pub talos: Option<&'e str>,
    pub kubelet: Option<&'e str>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct EtcdHealth<'e> {
    pub members: usize,
    pub trouble: Option<&'e str>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct KubernetesHealth<'e> {
    pub version: Option<&'e str>,
    pub trouble: Option<&'e str>,
}

/// Why a stack can change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeReason {
    /// What sort of thing differs: `source`, `setting`, `target`, `file`, `secrets`, `keys`, `code`, `stack`, `shared-storages`, `backup-members`, `moves`,
    /// `whole`, `unknown`.
    pub part: &'static str,
    /// The file, target, stack or key of strata.yaml.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The same for people.
    pub text: String,
}
