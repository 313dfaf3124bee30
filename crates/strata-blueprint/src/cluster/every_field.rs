//! Every key of `cluster.yaml` has a row in the table of what its change does to a running cluster, and every row has a key.

use std::collections::BTreeSet;

use serde_json::Value;
use strata_source::schema::Document;
use strata_talos::running::{Impact, impact_of, matches, rows};

/// The dotted paths of all keys that hold a value, from the schema: `*` stands for any name.
fn fields() -> BTreeSet<String> {
    let schema = Document::Cluster.schema();
    let mut found = BTreeSet::new();
    let walk = Walk { definitions: &schema["definitions"] };
    walk.gather(&schema, "", &[], &mut found);
    // A profile changes the keys of whatever uses it, and these have rows; a move changes no key.
    found.retain(|field| {
        !field.starts_with("profiles.") && !field.starts_with("moved.") && !field.ends_with(".use")
    });
    found
}

struct Walk<'s> {
    definitions: &'s Value,
}

impl Walk<'_> {
    /// Adds what is below; false if the node is a value itself.
    fn gather(&self, node: &Value, path: &str, seen: &[&str], found: &mut BTreeSet<String>) -> bool {
        let mut below = false;
        if let Some(name) = node["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            // A value from outside is a value.
            if matches!(name, "outside" | "reference") || seen.contains(&name) {
                return false;
            }
            let seen: Vec<&str> = seen.iter().copied().chain([name]).collect();
            below |= self.gather(&self.definitions[name], path, &seen, found);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for one in node[key].as_array().into_iter().flatten() {
                below |= self.gather(one, path, seen, found);
            }
        }
        let named = node["properties"].as_object().into_iter().flatten();
        let any = Some(&node["additionalProperties"]).filter(|any| any.is_object());
        let children = named.map(|(key, child)| (key.as_str(), child)).chain(any.map(|child| ("*", child)));
        for (key, child) in children {
            below = true;
            let own = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            if !self.gather(child, &own, seen, found) {
                found.insert(own);
            }
        }
        if node["items"].is_object() {
            below |= self.gather(&node["items"], path, seen, found);
        }
        below
    }
}

#[test]
fn f7_every_key_of_a_cluster_has_a_row_and_every_row_a_key() {
    let fields = fields();
    assert!(fields.len() > 300 && fields.contains("cluster.talos.encryptDisk"), "{fields:?}");
    let without: Vec<&String> = fields.iter().filter(|field| impact_of(field).is_none()).collect();
    assert!(
        without.is_empty(),
        "say in strata-talos/src/running/table.rs what a change of these does: {without:?}"
    );
    let without: Vec<String> =
        rows().map(|(row, _)| row).filter(|row| !fields.iter().any(|field| matches(row, field))).collect();
    assert!(without.is_empty(), "no key has these rows: {without:?}");
}

/// What the issue of a change is must not depend on where it is written.
#[test]
fn f7_a_key_that_stands_in_several_places_does_the_same_in_each() {
    for (one, other) in [
        ("cluster.talos.encryptDisk", "cluster.nodes.*.encryptDisk"),
        ("cluster.talos.secureBoot", "cluster.topology.workers.secureBoot"),
        ("cluster.talos.schematic.extensions", "cluster.topology.pools.schematic.extensions"),
        ("cluster.network.bridge", "proxmox.network.bridge"),
    ] {
        assert_eq!(impact_of(one), impact_of(other), "{one} and {other}");
    }
    assert!(matches!(impact_of("cluster.kubernetes.podCidr"), Some(Impact::Never(_))));
}
