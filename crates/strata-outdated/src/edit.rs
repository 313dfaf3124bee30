//! Files as they would be with other versions.

use std::collections::BTreeMap;

use serde_json::Value;
use strata_yaml::edit;

use crate::pin::{At, Edit};

/// The texts of files with some values changed, by path. What cannot be edited as it is written says why, and nothing is made of any.
pub fn edited(
    edits: &[Edit],
    text: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut bytes: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for one in edits {
        let now = match files.get(&one.file) {
            Some(now) => now.clone(),
            None => text(&one.file).ok_or_else(|| format!("`{}` cannot be read", one.file))?,
        };
        let next = match &one.at {
            At::Yaml(path) => edit::set(&now, path, &Value::String(one.after.clone()))
                .map_err(|error| format!("`{}`: {error}", one.file))?,
            At::Bytes(_) => {
                bytes.entry(&one.file).or_default().push(one);
                now
            }
        };
        files.insert(one.file.clone(), next);
    }
    for (file, mut edits) in bytes {
        // From the end on: what comes before keeps its place.
        edits.sort_by_key(|edit| std::cmp::Reverse(start(edit)));
        for one in edits {
            let (At::Bytes(range), Some(now)) = (&one.at, files.get_mut(file)) else { continue };
            if now.get(range.clone()) != Some(one.before.as_str()) {
                return Err(format!("`{file}` does not have `{}` where it was read", one.before));
            }
            now.replace_range(range.clone(), &one.after);
        }
    }
    Ok(files)
}

fn start(edit: &Edit) -> usize {
    match &edit.at {
        At::Bytes(range) => range.start,
        At::Yaml(_) => 0,
    }
}
