//! The schema that Proxmox publishes with its API viewer, where it is present. It is not part of this repository: what is taken from it
//! are facts (names, types, ranges, what is optional), never its texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The parameters of every call, by method and path.
pub(crate) struct Published(BTreeMap<(String, String), BTreeMap<String, Value>>);

impl Published {
    /// The schema that `STRATA_TEST_SCHEMA` names, or the one that stands beside the repository.
    pub(crate) fn load() -> Result<Self, String> {
        let path = match std::env::var_os("STRATA_TEST_SCHEMA") {
            Some(path) => PathBuf::from(path),
            None => beside()
                .ok_or("there is no schema beside this repository, and STRATA_TEST_SCHEMA names none")?,
        };
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let tree: Value =
            serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut calls = BTreeMap::new();
        for node in tree.as_array().into_iter().flatten() {
            gather(node, &mut calls);
        }
        Ok(Self(calls))
    }

    /// The parameters of a call.
    pub(crate) fn call(&self, method: &str, path: &str) -> Option<&BTreeMap<String, Value>> {
        self.0.get(&(method.to_owned(), path.to_owned()))
    }

    /// Every call.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.keys().map(|(method, path)| (method.as_str(), path.as_str()))
    }
}

fn beside() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pve");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
    found.sort();
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("api-schema-") && name.ends_with(".json")
    };
    found.into_iter().rev().find(named)
}

fn gather(node: &Value, calls: &mut BTreeMap<(String, String), BTreeMap<String, Value>>) {
    let path = node["path"].as_str().unwrap_or_default();
    for (method, info) in node["info"].as_object().into_iter().flatten() {
        let properties = info["parameters"]["properties"].as_object().cloned().unwrap_or_default();
        calls.insert((method.clone(), path.to_owned()), properties.into_iter().collect());
    }
    for child in node["children"].as_array().into_iter().flatten() {
        gather(child, calls);
    }
}
