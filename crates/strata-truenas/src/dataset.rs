//! Datasets: what is there, made, changed. Names and properties are TrueNAS' own.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};
use strata_net::WritePermit;

use crate::{TrueNasClient, TrueNasError};

/// Leaves room for the names of snapshots.
const LONGEST_NAME: usize = 200;

/// `pool/…/name`; never a pool itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatasetName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a dataset: expected `pool/name`, with letters, digits, `-`, `_`, `.`, `:` and spaces within"
)]
pub struct InvalidDatasetName(String);

impl DatasetName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn pool(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The datasets above it, from the top, without the pool.
    pub fn ancestors(&self) -> Vec<DatasetName> {
        let ends = self.0.match_indices('/').map(|(at, _)| at).skip(1);
        ends.map(|end| Self(self.0[..end].to_owned())).collect()
    }
}

impl FromStr for DatasetName {
    type Err = InvalidDatasetName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | ' ');
        let part = |part: &str| {
            !part.is_empty() && part.chars().all(good) && part.trim() == part && part != "." && part != ".."
        };
        let parts: Vec<&str> = text.split('/').collect();
        let pool = parts[0].starts_with(|c: char| c.is_ascii_alphabetic());
        if parts.len() < 2 || text.len() > LONGEST_NAME || !pool || !parts.into_iter().all(part) {
            return Err(InvalidDatasetName(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for DatasetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A dataset to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDataset {
    pub name: DatasetName,
    /// By TrueNAS' names: `compression: LZ4`, `quota: 1099511627776`, `recordsize: 128K`.
    pub properties: BTreeMap<String, Value>,
    /// With a colon in the name; where a mark of ownership goes.
    pub user_properties: BTreeMap<String, String>,
    /// Makes the missing ones above, too, in the same write.
    pub ancestors: bool,
}

impl NewDataset {
    pub fn new(name: DatasetName) -> Self {
        Self { name, properties: BTreeMap::new(), user_properties: BTreeMap::new(), ancestors: true }
    }
}

/// One property of a live dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub value: Option<String>,
    pub raw: Option<String>,
    pub parsed: Value,
    /// Set on this dataset itself, and not inherited or left out.
    pub local: bool,
}

/// A live dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    pub name: String,
    /// A block device and no file system.
    pub volume: bool,
    /// Encrypted, and nobody has given the key.
    pub locked: bool,
    pub mountpoint: Option<String>,
    pub properties: BTreeMap<String, Property>,
    /// Those that are set on it, and not inherited from a dataset above.
    pub user_properties: BTreeMap<String, String>,
    /// Bytes, those of children and snapshots included.
    pub used: Option<u64>,
    /// Bytes of its own files.
    pub used_by_itself: Option<u64>,
}

impl TrueNasClient {
    /// The dataset as it is now, or nothing.
    pub async fn dataset(&self, name: &DatasetName) -> Result<Option<Dataset>, TrueNasError> {
        let action = format!("read dataset `{name}`");
        let options = json!({"extra": {"retrieve_children": false}});
        let filters = json!([["id", "=", name.as_str()]]);
        let found = self.read(&action, "pool.dataset.query", json!([filters, options])).await?;
        let found = found.as_array().ok_or_else(|| self.unreadable(&action))?;
        let one = found.iter().find(|entry| entry.get("id").and_then(Value::as_str) == Some(name.as_str()));
        one.map(|entry| Dataset::read(entry).ok_or_else(|| self.unreadable(&action))).transpose()
    }

    /// Every dataset of every pool.
    pub async fn datasets(&self) -> Result<Vec<Dataset>, TrueNasError> {
        let action = "list the datasets";
        let options = json!({"extra": {"retrieve_children": false}});
        let found = self.read(action, "pool.dataset.query", json!([[], options])).await?;
        let found = found.as_array().ok_or_else(|| self.unreadable(action))?;
        found.iter().map(|entry| Dataset::read(entry).ok_or_else(|| self.unreadable(action))).collect()
    }

    /// The names of the datasets below one, at any depth.
    pub async fn children(&self, name: &DatasetName) -> Result<Vec<String>, TrueNasError> {
        let action = format!("look below dataset `{name}`");
        let prefix = format!("{name}/");
        let options = json!({"select": ["id"], "extra": {"properties": [], "retrieve_user_props": false}});
        let params = json!([[["id", "^", prefix]], options]);
        let found = self.read(&action, "pool.dataset.query", params).await?;
        let found = found.as_array().ok_or_else(|| self.unreadable(&action))?;
        let names = found.iter().filter_map(|entry| entry.get("id")?.as_str());
        let mut names: Vec<String> = names.filter(|id| id.starts_with(&prefix)).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// Whether there is a pool of this name.
    pub async fn has_pool(&self, name: &str) -> Result<bool, TrueNasError> {
        let action = format!("look for pool `{name}`");
        let found = self.read(&action, "pool.query", json!([[["name", "=", name]]])).await?;
        let found = found.as_array().ok_or_else(|| self.unreadable(&action))?;
        Ok(found.iter().any(|pool| pool.get("name").and_then(Value::as_str) == Some(name)))
    }

    /// The ancestors of a dataset that are not there, from the top.
    pub async fn missing_ancestors(&self, name: &DatasetName) -> Result<Vec<DatasetName>, TrueNasError> {
        let mut missing = Vec::new();
        for ancestor in name.ancestors() {
            if !missing.is_empty() || self.dataset(&ancestor).await?.is_none() {
                missing.push(ancestor);
            }
        }
        Ok(missing)
    }

    /// Makes a file system. One write; one that is there already is an error ([`crate::Trouble::Exists`]).
    pub async fn create_dataset(
        &self,
        permit: &WritePermit<'_>,
        dataset: &NewDataset,
    ) -> Result<(), TrueNasError> {
        let mut data: Map<String, Value> = dataset.properties.clone().into_iter().collect();
        data.insert("name".to_owned(), dataset.name.as_str().into());
        data.insert("type".to_owned(), "FILESYSTEM".into());
        data.insert("create_ancestors".to_owned(), dataset.ancestors.into());
        if !dataset.user_properties.is_empty() {
            data.insert("user_properties".to_owned(), pairs(&dataset.user_properties));
        }
        let action = format!("create dataset `{}`", dataset.name);
        self.write(permit, &action, "pool.dataset.create", json!([data])).await.map(|_| ())
    }

    /// Changes properties; `INHERIT` gives one back. One write.
    pub async fn update_dataset(
        &self,
        permit: &WritePermit<'_>,
        name: &DatasetName,
        properties: &BTreeMap<String, Value>,
        user_properties: &BTreeMap<String, String>,
    ) -> Result<(), TrueNasError> {
        let mut data: Map<String, Value> = properties.clone().into_iter().collect();
        if !user_properties.is_empty() {
            data.insert("user_properties_update".to_owned(), pairs(user_properties));
        }
        let action = format!("change dataset `{name}`");
        self.write(permit, &action, "pool.dataset.update", json!([name.as_str(), data])).await.map(|_| ())
    }
}

fn pairs(properties: &BTreeMap<String, String>) -> Value {
    properties.iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
}

impl Dataset {
    fn read(entry: &Value) -> Option<Self> {
        let map = entry.as_object()?;
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let user = map.get("user_properties").and_then(Value::as_object);
        let is_own = |property: &Value| property.get("source").and_then(Value::as_str) != Some("INHERITED");
        let user = user.into_iter().flatten().filter(|(_, property)| is_own(property));
        let user = user.filter_map(|(key, property)| {
            let value = property.get("value").or(property.get("rawvalue")).unwrap_or(property);
            Some((key.clone(), value.as_str()?.to_owned()))
        });
        let properties: BTreeMap<String, Property> = map
            .iter()
            .filter(|(key, _)| *key != "user_properties")
            .filter_map(|(key, value)| Some((key.clone(), Property::read(value)?)))
            .collect();
        let bytes = |key: &str| properties.get(key).and_then(Property::bytes);
        Some(Self {
            name: text("id")?,
            volume: text("type").as_deref() == Some("VOLUME"),
            locked: map.get("locked").and_then(Value::as_bool).unwrap_or_default(),
            mountpoint: text("mountpoint"),
            user_properties: user.collect(),
            used: bytes("used"),
            used_by_itself: bytes("usedbydataset"),
            properties,
        })
    }
}

impl Property {
    fn read(value: &Value) -> Option<Self> {
        let map =
            value.as_object().filter(|map| map.contains_key("rawvalue") || map.contains_key("parsed"))?;
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            value: text("value"),
            raw: text("rawvalue"),
            parsed: map.get("parsed").cloned().unwrap_or_default(),
            local: text("source").as_deref() == Some("LOCAL"),
        })
    }

    pub fn bytes(&self) -> Option<u64> {
        self.parsed.as_u64().or_else(|| self.raw.as_deref()?.parse().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_not_a_dataset() {
        for bad in [
            "",
            "tank",
            "/tank",
            "tank/",
            "tank//a",
            "tank/a@snap",
            "1tank/a",
            "tank/..",
            "tank/ a",
            &format!("tank/{}", "a".repeat(200)),
        ] {
            assert!(bad.parse::<DatasetName>().is_err(), "{bad}");
        }
        let name: DatasetName = "tank/k8s/homelab/pvc".parse().unwrap();
        assert_eq!(name.pool(), "tank");
        let above: Vec<_> = name.ancestors().iter().map(ToString::to_string).collect();
        assert_eq!(above, ["tank/k8s", "tank/k8s/homelab"]);
    }
}
