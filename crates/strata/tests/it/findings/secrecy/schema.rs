//! Where the schema lets a secret stand: found from what `strata schema` prints, so that a new field is found too.

use std::collections::BTreeMap;

use serde_json::Value;
use strata_testkit::{Repo, Strata};

use crate::world::BINARY;

/// A record of the schema and one of its keys.
pub(super) type Place = (String, String);

const KINDS: [&str; 6] = ["strata", "stack", "cluster", "nodes", "environment", "hypervisor"];

/// Every place that takes `{secret: …}`, and whether it is a document, which takes it deep inside too.
pub(super) fn places() -> BTreeMap<Place, bool> {
    let repo = Repo::empty();
    let mut places = BTreeMap::new();
    for kind in KINDS {
        let text = Strata::new(BINARY, &repo).run(&["schema", kind]).ok().stdout;
        let schema: Value = serde_json::from_str(&text).unwrap();
        for (record, definition) in schema["definitions"].as_object().unwrap() {
            // An overlay has the same keys, and nothing is required.
            let record = record.strip_suffix("Partial").unwrap_or(record);
            for (key, value) in definition["properties"].as_object().into_iter().flatten() {
                if any(value, &|part| part["$ref"] == "#/definitions/reference") {
                    let free = |part: &Value| *part == serde_json::json!({"type": "object"});
                    places.insert((record.to_owned(), key.clone()), any(value, &free));
                }
            }
        }
    }
    places
}

/// Whether a part of a field's schema is so, without those of other records.
fn any(schema: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    let below = ["anyOf", "allOf", "items", "additionalProperties"];
    is(schema)
        || schema.as_array().is_some_and(|parts| parts.iter().any(|part| any(part, is)))
        || below.iter().any(|key| schema.get(key).is_some_and(|part| any(part, is)))
}
