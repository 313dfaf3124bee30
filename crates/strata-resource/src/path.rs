//! The place of a field within a spec, such as `disks.scsi0.size`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Spec, Value};

/// Keys from the top of a spec down to one field. Keys may contain dots, hence a list and not a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// The whole spec.
    pub fn root() -> Self {
        Self::default()
    }

    /// From a dotted text; only for paths whose keys are known to hold no dots.
    pub fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// The field of this key below it.
    #[must_use]
    pub fn child(&self, key: &str) -> Self {
        let mut keys = self.0.clone();
        keys.push(key.to_owned());
        Self(keys)
    }

    /// From the top down.
    pub fn keys(&self) -> &[String] {
        &self.0
    }

    /// The field of the spec that it is in.
    pub fn first(&self) -> Option<&str> {
        self.0.first().map(String::as_str)
    }

    /// The key that it ends with.
    pub fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// What stands there.
    pub fn value_in<'s>(&self, spec: &'s Spec) -> Option<&'s Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(spec.get(first)?, |value, key| value.as_map()?.get(key))
    }

    /// Whether one of them is the other or lies below it.
    pub fn overlaps(&self, other: &Self) -> bool {
        let shared = self.0.len().min(other.0.len());
        self.0[..shared] == other.0[..shared]
    }

    /// Whether this path is `prefix` or lies below it.
    pub fn starts_with(&self, prefix: &[&str]) -> bool {
        self.0.len() >= prefix.len() && self.0.iter().zip(prefix).all(|(key, wanted)| key == wanted)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}
