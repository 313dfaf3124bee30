//! JSON Schema (draft 7, which YAML editors know best) from the same description that decodes.

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value as Json, json};

use crate::Decode;
use crate::reference::Source;
use crate::shape::{FieldSpec, RecordSpec, Rules, Shape, TextShape};

/// The schema of a document of type `T`.
pub fn schema<T: Decode>(title: &str) -> Json {
    let mut definitions = Definitions::default();
    let root = definitions.shape(&T::shape(), &Rules::default());
    let mut schema = Object::new();
    schema.insert("$schema".into(), "http://json-schema.org/draft-07/schema#".into());
    schema.insert("title".into(), title.into());
    if let Json::Object(root) = root {
        schema.extend(root);
    }
    schema.insert("definitions".into(), Json::Object(definitions.known.into_iter().collect()));
    Json::Object(schema)
}

#[derive(Default)]
struct Definitions {
    known: BTreeMap<String, Json>,
    /// Nothing is required: the description of an overlay.
    partial: bool,
}

impl Definitions {
    fn shape(&mut self, shape: &Shape, rules: &Rules) -> Json {
        match shape {
            Shape::Bool => self.outside(json!({"type": "boolean"})),
            Shape::Integer(least, most) => {
                let mut integer = json!({"type": "integer"});
                let (least, most) = rules.range.unwrap_or((*least, *most));
                if least != i64::MIN {
                    integer["minimum"] = least.into();
                }
                if most != i64::MAX {
                    integer["maximum"] = most.into();
                }
                self.outside(integer)
            }
            Shape::Number => {
                let mut number = json!({"type": "number"});
                if let Some((least, most)) = rules.range {
                    number["minimum"] = least.into();
                    number["maximum"] = most.into();
                }
                self.outside(number)
            }
            Shape::Text(text) => {
                self.outside(text_schema(rules.text.map_or(*text, |rule| rule.shape), rules.env.is_some()))
            }
            Shape::Choice(words) => self.outside(json!({"enum": words})),
            Shape::Scalar => self.outside(json!({"type": ["string", "number", "boolean"]})),
            Shape::Any => json!({}),
            Shape::AnyMapping => json!({"type": "object"}),
            Shape::List(item) => json!({"type": ["array", "null"], "items": self.shape(item, rules)}),
            Shape::Partial(shape) => {
                let partial = std::mem::replace(&mut self.partial, true);
                let schema = self.shape(shape, rules);
                self.partial = partial;
                any_of(schema, json!({"type": "null"}))
            }
            Shape::Map(key, value) => {
                let key = rules.keys.map_or(*key, |rule| rule.shape);
                let value = self.shape(value, rules);
                let value = self.or_null(value);
                let mut map = json!({"type": ["object", "null"], "additionalProperties": value});
                if let Some(pattern) = key.pattern {
                    let plain = json!({"pattern": pattern});
                    map["propertyNames"] =
                        if rules.env.is_some() { any_of(plain, with_env()) } else { plain };
                }
                map
            }
            Shape::Record(spec) => self.record(spec()),
            Shape::AnyOf(shapes) => {
                let shapes: Vec<Json> = shapes.iter().map(|shape| self.shape(shape, rules)).collect();
                json!({"anyOf": shapes})
            }
            Shape::Reference(shape) => {
                let inner = self.shape(shape, rules);
                self.define("reference", || {
                    reference_schema(&Source::KEYS, "A value from outside the file.")
                });
                any_of(inner, json!({"$ref": "#/definitions/reference"}))
            }
        }
    }

    /// A scalar, or the same from the environment or a file.
    fn outside(&mut self, scalar: Json) -> Json {
        self.define("outside", || {
            reference_schema(&["env", "file"], "A value from the environment or a file.")
        });
        any_of(scalar, json!({"$ref": "#/definitions/outside"}))
    }

    /// In an overlay, nothing takes a key away.
    fn or_null(&self, schema: Json) -> Json {
        if self.partial { any_of(schema, json!({"type": "null"})) } else { schema }
    }

    fn define(&mut self, name: &'static str, make: impl FnOnce() -> Json) {
        self.known.entry(name.to_owned()).or_insert_with(make);
    }

    fn record(&mut self, spec: &'static RecordSpec) -> Json {
        let name = if self.partial { format!("{}Partial", spec.name) } else { spec.name.to_owned() };
        if !self.known.contains_key(&name) {
            // Entered before its fields are, so that a record may contain itself.
            self.known.insert(name.clone(), Json::Null);
            let schema = self.record_schema(spec);
            self.known.insert(name.clone(), schema);
        }
        let reference = json!({"$ref": format!("#/definitions/{name}")});
        match spec.shorthand.and_then(|key| spec.field(key)) {
            Some(field) => any_of(self.shape(&field.shape, &field.rules), reference),
            None => reference,
        }
    }

    fn record_schema(&mut self, spec: &RecordSpec) -> Json {
        let mut properties = Object::new();
        for field in &spec.fields {
            let schema = self.field(field);
            for alias in field.rules.aliases {
                properties.insert((*alias).to_owned(), schema.clone());
            }
            properties.insert(field.key.to_owned(), schema);
        }
        let mut schema = json!({"type": "object", "description": spec.doc, "properties": properties});
        let required: Vec<&str> = spec
            .fields
            .iter()
            .filter(|field| field.required && field.rules.aliases.is_empty())
            .map(|field| field.key)
            .collect();
        if !required.is_empty() && !self.partial && spec.lenders.is_empty() {
            schema["required"] = json!(required);
        }
        if !spec.open {
            schema["additionalProperties"] = false.into();
        }
        if spec.document {
            schema["patternProperties"] = json!({"^x-": {}});
        }
        let mut conditions = conditions(spec, self.partial);
        if !required.is_empty() && !self.partial && !spec.lenders.is_empty() {
            let lenders = spec.lenders.iter().map(|key| json!({"required": [key]}));
            let ways: Vec<Json> = std::iter::once(json!({"required": required})).chain(lenders).collect();
            conditions.push(json!({"anyOf": ways}));
        }
        if !conditions.is_empty() {
            schema["allOf"] = conditions.into();
        }
        schema
    }

    fn field(&mut self, field: &FieldSpec) -> Json {
        let shape = self.shape(&field.shape, &field.rules);
        let shape = self.or_null(shape);
        // In draft 7 whatever stands beside `$ref` is ignored.
        let mut schema = if shape.get("$ref").is_some() { json!({"allOf": [shape]}) } else { shape };
        if !field.doc.is_empty() {
            schema["description"] = field.doc.clone().into();
        }
        if let Some(default) = field.rules.default {
            schema["default"] = serde_json::from_str(default).unwrap_or_else(|_| default.into());
        }
        schema
    }
}

/// The groups of keys that exclude each other, and fields with several names.
fn conditions(spec: &RecordSpec, partial: bool) -> Vec<Json> {
    let required =
        |keys: &[&str]| -> Vec<Json> { keys.iter().map(|key| json!({"required": [key]})).collect() };
    let mut conditions = Vec::new();
    let mut at_most = |keys: &[&str]| {
        for (index, first) in keys.iter().enumerate() {
            for second in &keys[index + 1..] {
                conditions.push(json!({"not": {"required": [first, second]}}));
            }
        }
    };
    spec.at_most_one.iter().for_each(|keys| at_most(keys));
    for field in &spec.fields {
        let names: Vec<&str> =
            std::iter::once(field.key).chain(field.rules.aliases.iter().copied()).collect();
        at_most(&names);
    }
    if partial {
        spec.exactly_one.iter().for_each(|keys| at_most(keys));
        return conditions;
    }
    conditions.extend(spec.exactly_one.iter().map(|keys| json!({"oneOf": required(keys)})));
    let several = spec.fields.iter().filter(|field| field.required && !field.rules.aliases.is_empty());
    for field in several {
        let names: Vec<&str> =
            std::iter::once(field.key).chain(field.rules.aliases.iter().copied()).collect();
        conditions.push(json!({"anyOf": required(&names)}));
    }
    conditions
}

/// Text with the name of the environment in it: what it becomes is not known to an editor.
fn with_env() -> Json {
    json!({"type": "string", "pattern": "\\{env\\}"})
}

fn text_schema(text: TextShape, env: bool) -> Json {
    let mut schema = json!({"type": "string"});
    if let Some(pattern) = text.pattern {
        schema["pattern"] = pattern.into();
        if env {
            return any_of(schema, with_env());
        }
    }
    schema
}

fn reference_schema(keys: &[&str], doc: &str) -> Json {
    let properties: Object<String, Json> =
        keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string", "minLength": 1}))).collect();
    json!({
        "type": "object",
        "description": doc,
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

/// Either of two, without nesting one list of alternatives in another.
fn any_of(first: Json, second: Json) -> Json {
    let mut alternatives = match first {
        Json::Object(mut object) if object.len() == 1 && object.contains_key("anyOf") => {
            match object.remove("anyOf") {
                Some(Json::Array(list)) => list,
                other => other.into_iter().collect(),
            }
        }
        other => vec![other],
    };
    if !alternatives.contains(&second) {
        alternatives.push(second);
    }
    json!({"anyOf": alternatives})
}
