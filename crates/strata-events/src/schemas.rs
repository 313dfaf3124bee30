//! The JSON Schemas of events and documents, made from their Rust types.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use strata_engine::PlanFile;
use strata_inventory::Inventory;
use strata_state::StateDocument;

use crate::{Event, VERSION};

/// A document or a stream that programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Each line of `--json`.
    Events,
    /// What `strata plan -o` saves.
    PlanFile,
    /// What `strata state pull` prints.
    State,
    /// What `strata inventory --format json` prints.
    Inventory,
}

impl Output {
    pub const ALL: [Self; 4] = [Self::Events, Self::PlanFile, Self::State, Self::Inventory];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::PlanFile => "plan-file",
            Self::State => "state",
            Self::Inventory => "inventory",
        }
    }

    /// Its schema, in the draft 2020-12.
    pub fn schema(self) -> Value {
        match self {
            Self::Events => events(),
            Self::PlanFile => document::<PlanFile>("A saved plan"),
            Self::State => document::<StateDocument>("The state of a stack"),
            Self::Inventory => document::<Inventory>("Guests and machines, and their groups"),
        }
    }
}

/// As it is written, not as it may be read.
fn generated<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

fn document<T: JsonSchema>(title: &str) -> Value {
    let mut schema = generated::<T>();
    close(&mut schema, false);
    schema["title"] = title.into();
    schema
}

fn events() -> Value {
    let mut root = generated::<Event<'static>>();
    let mut definitions = root["$defs"].take();
    let mut found = Vec::new();
    gather(&root, &definitions, &mut found);
    let lines: Vec<Value> = found.into_iter().map(with_envelope).collect();
    if let Some(definitions) = definitions.as_object_mut() {
        definitions.values_mut().for_each(|definition| close(definition, false));
        // The engine's own events stand among the lines.
        definitions.remove("Event");
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of `strata --json`",
        // A step of OpenTofu has the name of one of our own, and fewer fields.
        "anyOf": lines,
        "$defs": definitions,
    })
}

/// Every event, out of whatever stands around it.
fn gather(schema: &Value, definitions: &Value, found: &mut Vec<Value>) {
    if schema["properties"]["event"]["const"].is_string() {
        return found.push(schema.clone());
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.strip_prefix("#/$defs/")) {
        return gather(&definitions[name], definitions, found);
    }
    for among in ["oneOf", "anyOf"] {
        for below in schema[among].as_array().into_iter().flatten() {
            gather(below, definitions, found);
        }
    }
}

/// The fields that every line has.
fn with_envelope(mut event: Value) -> Value {
    if let Some(properties) = event["properties"].as_object_mut() {
        properties.insert("version".into(), json!({"const": VERSION}));
        properties.insert(
            "time".into(),
            json!({"type": "string", "format": "date-time", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"}),
        );
        properties.insert("stack".into(), json!({"type": "string"}));
        properties.insert("environment".into(), json!({"type": "string"}));
    }
    if let Some(required) = event["required"].as_array_mut() {
        required.extend(["version".into(), "time".into()]);
    }
    event["dependentRequired"] = json!({"stack": ["environment"], "environment": ["stack"]});
    close(&mut event, false);
    event
}

/// Lets nothing pass that is not named. Where a schema has parts, only all of them together know every name.
fn close(schema: &mut Value, is_part: bool) {
    let Some(object) = schema.as_object_mut() else { return };
    let parts = ["oneOf", "anyOf", "allOf", "$ref"];
    let has_parts = parts.iter().any(|part| object.contains_key(*part));
    if object.contains_key("properties") && !is_part && !object.contains_key("additionalProperties") {
        let word = if has_parts { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(word.into(), false.into());
    }
    let open = object.contains_key("properties") && has_parts;
    for (key, below) in object.iter_mut() {
        match key.as_str() {
            "properties" | "$defs" => {
                below.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(|one| close(one, false));
            }
            "items" | "additionalProperties" => close(below, false),
            "oneOf" | "anyOf" | "allOf" | "prefixItems" => {
                let parts = below.as_array_mut().into_iter().flatten();
                parts.for_each(|one| close(one, open || (is_part && key != "prefixItems")));
            }
            _ => {}
        }
    }
}

/// The events with their fields, as a table for docs/json.md.
pub fn events_table() -> String {
    let schema = Output::Events.schema();
    let mut rows = BTreeMap::new();
    for event in schema["anyOf"].as_array().into_iter().flatten() {
        let name = event["properties"]["event"]["const"].as_str().unwrap_or_default();
        let about = event["description"].as_str().unwrap_or_default().replace('\n', " ");
        let required: Vec<&str> =
            event["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let fields = event["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let envelope = ["event", "version", "time", "stack", "environment"];
        let fields =
            fields.filter(|name| !envelope.contains(name)).map(|name| match required.contains(&name) {
                true => format!("`{name}`"),
                false => format!("`{name}`?"),
            });
        let row: &mut Vec<(String, String)> = rows.entry(name).or_default();
        row.push((fields.collect::<Vec<_>>().join(", "), about));
    }
    let mut text = "| event | fields | |\n|---|---|---|\n".to_owned();
    for (name, forms) in rows {
        for (fields, about) in forms {
            let _ = writeln!(text, "| `{name}` | {fields} | {about} |");
        }
    }
    text
}
