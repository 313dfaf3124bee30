//! The state document: what was last applied, by address. It never holds a secret, only keyed digests.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_resource::{Address, Lineage, Spec, Stage, Value};

use crate::LockOwner;

/// The format of documents that anyone with the file can read.
pub const FORMAT: u32 = 1;
/// The format of encrypted documents; the newest that this program understands.
pub(crate) const ENCRYPTED_FORMAT: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateDocument {
    /// The format of the document itself.
    pub format: u32,
    pub lineage: Lineage,
    /// Goes up by one with every write; a write names the serial that it replaces.
    pub serial: u64,
    /// `<environment>/<stack>`.
    pub key: String,
    /// The journal up to and including this entry is part of the document.
    #[serde(default)]
    pub folded: u64,
    /// The key of the keyed digests, wrapped with age; without it the key is in a file outside the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    /// The folder of the code, for a stack that OpenTofu makes: its resources are in OpenTofu's own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tofu: Option<String>,
    /// The id of the Talos cluster whose keys this stack has: other keys are another cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Who made this version of it; none where a former version of Strata did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<Writer>,
    #[serde(default)]
    pub resources: BTreeMap<Address, StateResource>,
    /// What was made here and is in another state now: nothing new derives the same hardware addresses and names of volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub departed: Vec<Departed>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Value>,
}

/// Who wrote a version of a state, and in which run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    /// `user@host`.
    pub who: String,
    /// `apply`, `destroy`, `state mv`, …
    pub operation: String,
    /// The id of the run, as its lock had it.
    pub run: String,
}

impl From<&LockOwner> for Writer {
    fn from(owner: &LockOwner) -> Self {
        Self { who: owner.who.clone(), operation: owner.operation.clone(), run: owner.id.clone() }
    }
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}  {}  {}", self.who, self.operation, self.run)
    }
}

/// One object as it was last applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateResource {
    pub target: String,
    /// The spec that was applied last; for a partial object, what is known to be live.
    pub spec: Spec,
    /// What the remote made up and what proves that the object is ours: uuid, hwaddr, size.
    #[serde(default, skip_serializing_if = "Spec::is_empty")]
    pub facts: Spec,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub depends_on: BTreeSet<Address>,
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protect: bool,
    /// Made, but not yet brought to its spec.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Older objects of this address that wait to be deleted because something may still use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deposed: Vec<DeposedObject>,
    /// Where it was made, if it was moved since then: what derives from an address stays as it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_as: Option<Box<MadeAs>>,
}

/// The address and the state under which an object was made. Hardware addresses, names of volumes and digests of secrets derive from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MadeAs {
    pub address: Address,
    pub lineage: Lineage,
    /// The key of its digests as the former state kept it, where the state that has it now keeps another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_key: Option<String>,
    /// How many objects that still live somewhere were made under this address before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An object that was made in a state and moved to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Departed {
    /// The address that it was made under.
    pub address: Address,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u32,
    pub target: String,
    /// What tells it from others of its kind.
    pub identity: Spec,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeposedObject {
    pub target: String,
    pub spec: Spec,
    #[serde(default, skip_serializing_if = "Spec::is_empty")]
    pub facts: Spec,
}

impl StateResource {
    /// The record that a former object of this address would have. The replacement was agreed to, so it is not protected.
    #[must_use]
    pub fn with_former(&self, former: &DeposedObject) -> Self {
        Self {
            target: former.target.clone(),
            spec: former.spec.clone(),
            facts: former.facts.clone(),
            depends_on: self.depends_on.clone(),
            stage: self.stage,
            protect: false,
            partial: false,
            deposed: Vec::new(),
            made_as: self.made_as.clone(),
        }
    }
}

impl StateDocument {
    pub fn new(lineage: Lineage, key: &str) -> Self {
        Self {
            format: FORMAT,
            lineage,
            serial: 0,
            key: key.to_owned(),
            folded: 0,
            digest_key: None,
            tofu: None,
            cluster: None,
            written_by: None,
            resources: BTreeMap::new(),
            departed: Vec::new(),
            outputs: BTreeMap::new(),
        }
    }
}
