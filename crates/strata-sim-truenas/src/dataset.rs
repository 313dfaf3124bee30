//! Creating, changing and deleting datasets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::error::{ENOENT, ENOTEMPTY, Error, Outcome, Wrong, invalid, no_instance, wrong};
use super::settings::{self, Settings};
use super::{Dataset, TrueNas};

const CREATE: &str = "pool_dataset_create";

fn is_valid_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | ' ');
    name.len() <= 200 && name.split('/').all(|part| !part.is_empty() && part.chars().all(good))
}

impl TrueNas {
    /// The dataset's entry, or that it does not exist.
    pub fn instance(&self, id: &str) -> Outcome<Value> {
        match self.datasets.contains_key(id) {
            true => Ok(self.entry(id, true)),
            false => Err(no_instance(format!("PoolDataset {id} does not exist"))),
        }
    }

    pub fn create(&mut self, data: &Map<String, Value>, now: i64) -> Outcome<Value> {
        let mut wrongs = Vec::new();
        let settings = settings::read(data, false, &mut wrongs);
        let Some(name) = data.get("name").and_then(Value::as_str) else {
            return Err(invalid("data.name", "Field required"));
        };
        fail(wrongs)?;
        let field = format!("{CREATE}.name");
        if !name.contains('/') {
            return Err(invalid(&field, "You need a full name, e.g. pool/newdataset"));
        }
        if !is_valid_name(name) {
            return Err(invalid(&field, "Invalid dataset name"));
        }
        if name.ends_with(' ') {
            return Err(invalid(&field, "Trailing spaces are not permitted in dataset names"));
        }
        let ancestors = data.get("create_ancestors") == Some(&Value::Bool(true));
        let mut parent = name.rsplit_once('/').map_or(name, |(parent, _)| parent);
        while ancestors && !self.datasets.contains_key(parent) {
            match parent.rsplit_once('/') {
                Some((above, _)) => parent = above,
                None => break,
            }
        }
        if !self.datasets.contains_key(parent) {
            let text = match (ancestors, parent.contains('/')) {
                (true, _) => {
                    "Please specify a pool which exists for the dataset/volume to be created".to_owned()
                }
                (false, false) => format!("zpool ({parent}) does not exist."),
                (false, true) => format!("Parent dataset ({parent}) does not exist."),
            };
            return Err(invalid(&field, text));
        }
        if self.datasets.contains_key(name) {
            return Err(invalid(&field, format!("Path /mnt/{name} already exists")));
        }
        if self.datasets[parent].volume.is_some() {
            return Err(invalid(&field, format!("{parent}: parent may not be a ZFS volume")));
        }
        if self.property(parent, "readonly").0 == "on" {
            return Err(invalid(
                &format!("{CREATE}.readonly"),
                format!("Turn off readonly mode on {parent} to create {name}"),
            ));
        }
        let volume = kind(data)?;
        let mut user = user_properties(data.get("user_properties"))?;
        let mut properties = shared_as(data);
        split(settings, &mut properties, &mut user);
        if volume.is_none() {
            self.check_acl(parent, &properties)?;
        }
        let parents: Vec<String> = name
            .match_indices('/')
            .map(|(at, _)| name[..at].to_owned())
            .filter(|n| !self.datasets.contains_key(n))
            .collect();
        for parent in parents {
            self.datasets.insert(parent, Dataset { created: now, ..Dataset::default() });
        }
        let dataset =
            Dataset { volume, properties, user_properties: user, created: now, ..Dataset::default() };
        self.datasets.insert(name.to_owned(), dataset);
        Ok(self.entry(name, true))
    }

    /// Modes of access lists fit their types.
    fn check_acl(&self, parent: &str, properties: &BTreeMap<String, String>) -> Outcome<()> {
        let effective =
            |key: &str| properties.get(key).cloned().unwrap_or_else(|| self.property(parent, key).0);
        let (kind, mode) = (effective("acltype"), effective("aclmode"));
        match kind.as_str() {
            "posix" | "off" if mode != "discard" => Err(invalid(
                &format!("{CREATE}.aclmode"),
                "Must be set to DISCARD when acltype is POSIX or OFF",
            )),
            "nfsv4" if mode == "discard" => Err(invalid(
                &format!("{CREATE}.aclmode"),
                "DISCARD aclmode may not be set for NFSv4 acl type",
            )),
            _ => Ok(()),
        }
    }

    pub fn update(&mut self, id: &str, data: &Map<String, Value>) -> Outcome<Value> {
        let mut wrongs = Vec::new();
        let settings = settings::read(data, true, &mut wrongs);
        fail(wrongs)?;
        let Some(dataset) = self.datasets.get_mut(id) else {
            let text = format!("{id} does not exist");
            return Err(Error::Invalid(vec![Wrong {
                attribute: Some("id".to_owned()),
                text,
                errno: ENOENT,
            }]));
        };
        if let Some(size) = data.get("volsize").and_then(Value::as_u64) {
            match dataset.volume {
                None => {
                    return Err(invalid(
                        "pool_dataset_update.volsize",
                        "This field is not valid for FILESYSTEM",
                    ));
                }
                Some(there) if size < there => {
                    let text = "You cannot shrink a zvol from GUI, this may lead to data loss.";
                    return Err(invalid("pool_dataset_update.volsize", text));
                }
                Some(_) => dataset.volume = Some(size),
            }
        }
        if data.contains_key("user_properties") {
            let managed = |key: &String| settings::api_name(key) != key;
            dataset.user_properties.retain(|key, _| managed(key));
            dataset.user_properties.extend(user_properties(data.get("user_properties"))?);
        }
        for change in data.get("user_properties_update").and_then(Value::as_array).into_iter().flatten() {
            let key = change["key"].as_str().unwrap_or_default();
            match (change.get("value").and_then(Value::as_str), change["remove"] == true) {
                (Some(value), false) => {
                    dataset.user_properties.insert(key.to_owned(), value.to_owned());
                }
                (None, true) => {
                    dataset.user_properties.remove(key);
                }
                _ => {
                    return Err(invalid(
                        "pool_dataset_update.user_properties_update",
                        "Either \"value\" or \"remove\" must be specified",
                    ));
                }
            }
        }
        for key in &settings.inherit {
            dataset.properties.remove(key);
            dataset.user_properties.remove(key);
        }
        let (mut properties, mut user) =
            (std::mem::take(&mut dataset.properties), std::mem::take(&mut dataset.user_properties));
        split(settings, &mut properties, &mut user);
        (dataset.properties, dataset.user_properties) = (properties, user);
        Ok(self.entry(id, true))
    }

    /// Data in it does not stop a deletion; other datasets in it and snapshots do.
    pub fn delete(&mut self, id: &str, recursive: bool) -> Outcome<Value> {
        let below: Vec<String> = self.below(id).map(|(name, _)| name.to_owned()).collect();
        if !recursive && !below.is_empty() {
            let text = format!("Failed to delete dataset: cannot destroy '{id}': filesystem has children");
            return Err(Error::Failed(ENOTEMPTY, text));
        }
        self.instance(id)?;
        if !recursive && !self.datasets[id].snapshots.is_empty() {
            let text = format!("Failed to delete dataset: cannot destroy '{id}': filesystem has snapshots");
            return Err(Error::Failed(ENOTEMPTY, text));
        }
        for name in below {
            self.datasets.remove(&name);
        }
        // The dataset of a pool stays with the pool.
        if self.pools.contains_key(id) {
            if !recursive {
                let text = format!(
                    "Failed to delete dataset: cannot destroy '{id}': operation does not apply to pools"
                );
                return Err(Error::Failed(super::error::EFAULT, text));
            }
        } else {
            self.datasets.remove(id);
        }
        Ok(json!(true))
    }
}

fn fail(wrongs: Vec<Wrong>) -> Outcome<()> {
    if wrongs.is_empty() { Ok(()) } else { Err(Error::Invalid(wrongs)) }
}

/// The size of a volume, or nothing for a file system.
fn kind(data: &Map<String, Value>) -> Outcome<Option<u64>> {
    match data.get("type").and_then(Value::as_str).unwrap_or("FILESYSTEM") {
        "FILESYSTEM" if data.contains_key("volsize") => {
            Err(invalid(&format!("{CREATE}.volsize"), "This field is not valid for FILESYSTEM"))
        }
        "FILESYSTEM" => Ok(None),
        "VOLUME" => match data.get("volsize").and_then(Value::as_u64) {
            Some(size) if size % 16_384 == 0 => Ok(Some(size)),
            Some(_) => Err(invalid(
                &format!("{CREATE}.volsize"),
                "Volume size should be a multiple of volume block size",
            )),
            None => Err(invalid("data.volsize", "Field required")),
        },
        _ => Err(Error::Invalid(vec![wrong("data.type", "Input should be 'FILESYSTEM' or 'VOLUME'")])),
    }
}

/// What the kind of share sets by itself.
fn shared_as(data: &Map<String, Value>) -> BTreeMap<String, String> {
    let pairs: &[(&str, &str)] = match data.get("share_type").and_then(Value::as_str) {
        Some("SMB") => &[("casesensitivity", "insensitive"), ("acltype", "nfsv4"), ("aclmode", "restricted")],
        Some("APPS" | "MULTIPROTOCOL" | "NFS") => &[
            ("casesensitivity", "sensitive"),
            ("atime", "off"),
            ("acltype", "nfsv4"),
            ("aclmode", "passthrough"),
        ],
        _ => &[],
    };
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn user_properties(list: Option<&Value>) -> Outcome<BTreeMap<String, String>> {
    let mut properties = BTreeMap::new();
    for item in list.and_then(Value::as_array).into_iter().flatten() {
        let (key, value) =
            (item["key"].as_str().unwrap_or_default(), item["value"].as_str().unwrap_or_default());
        if !key.contains(':') {
            return Err(invalid("data.user_properties", "String should match pattern '.*:.*'"));
        }
        properties.insert(key.to_owned(), value.to_owned());
    }
    Ok(properties)
}

/// ZFS' own properties and those with a colon in their names live apart.
fn split(settings: Settings, properties: &mut BTreeMap<String, String>, user: &mut BTreeMap<String, String>) {
    for (key, value) in settings.set {
        // 0 means that there is none.
        if value == "0" && matches!(key.as_str(), "quota" | "refquota" | "reservation" | "refreservation") {
            properties.remove(&key);
        } else if key.contains(':') {
            user.insert(key, value);
        } else {
            properties.insert(key, value);
        }
    }
}
