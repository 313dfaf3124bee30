//! The schemas agree with the decoder, on the handbook and on every small change of it.

use serde_json::Value as Json;
use strata_diagnostics::{Diagnostics, SourceMap};
use strata_source::cluster::Cluster;
use strata_source::cluster::topology::NodesFile;
use strata_source::environment::Environment;
use strata_source::hypervisor::Hypervisor;
use strata_source::schema::Document;
use strata_source::settings::Settings;
use strata_source::stack::Stack;
use strata_yaml::{
    Context, Decode, Entry, Kind, Mapping, NoOutside, Node, Parsed, ScalarKind, Spanned, parse,
};

use crate::examples::{CLUSTER, ENVIRONMENT, HYPERVISOR, NODES, STRATA, stack};

fn tree(text: &str) -> Node {
    let mut sources = SourceMap::new();
    let file = sources.add("a.yaml", text);
    match parse(&sources, file, &mut Diagnostics::new()) {
        Parsed::Document(node) => node,
        other => panic!("{other:?}"),
    }
}

fn json(node: &Node) -> Json {
    match &node.kind {
        Kind::List(items) => items.iter().map(json).collect(),
        Kind::Mapping(mapping) => Json::Object(
            mapping.entries.iter().map(|entry| (entry.key.value.clone(), json(&entry.value))).collect(),
        ),
        Kind::Scalar(scalar) => match scalar.kind() {
            ScalarKind::Null => Json::Null,
            ScalarKind::Bool(value) => value.into(),
            ScalarKind::Integer(Some(value)) => value.into(),
            ScalarKind::Float => scalar.text.parse::<f64>().expect("a number").into(),
            _ => scalar.text.clone().into(),
        },
    }
}

fn accepts<T: Decode>(node: &Node) -> Result<(), String> {
    let mut diagnostics = Diagnostics::new();
    T::decode(node, &mut Context::new(&mut diagnostics, &NoOutside));
    let errors: Vec<String> =
        diagnostics.iter().filter(|one| one.is_error()).map(|one| one.message.clone()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// Every tree that differs from this one in one place.
fn changes(node: &Node) -> Vec<(String, Node)> {
    let span = node.span;
    let mut all = vec![
        ("a list instead".to_owned(), Node::list(vec![Node::scalar("true", span)], span)),
        ("a number instead".to_owned(), Node::scalar("5", span)),
        ("a truth instead".to_owned(), Node::scalar("true", span)),
        ("nothing instead".to_owned(), Node::scalar("", span)),
        ("a huge number instead".to_owned(), Node::scalar("-99999999999", span)),
    ];
    match &node.kind {
        Kind::Scalar(_) => {
            let entry = Entry { key: Spanned::new("unheard".to_owned(), span), value: node.clone() };
            all.push(("a mapping instead".to_owned(), Node::mapping(vec![entry], span)));
        }
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                for (what, changed) in changes(item) {
                    let mut items = items.clone();
                    items[index] = changed;
                    all.push((format!("[{index}]: {what}"), Node::list(items, span)));
                }
            }
        }
        Kind::Mapping(mapping) => {
            let mut more = mapping.clone();
            more.entries.push(Entry {
                key: Spanned::new("unheard".to_owned(), span),
                value: Node::scalar("1", span),
            });
            all.push(("one key more".to_owned(), Node { span, kind: Kind::Mapping(more) }));
            for (index, entry) in mapping.entries.iter().enumerate() {
                let mut less: Mapping = mapping.clone();
                less.entries.remove(index);
                all.push((format!("without {}", entry.key), Node { span, kind: Kind::Mapping(less) }));
                for (what, changed) in changes(&entry.value) {
                    let mut other = mapping.clone();
                    other.entries[index].value = changed;
                    all.push((format!("{}: {what}", entry.key), Node { span, kind: Kind::Mapping(other) }));
                }
            }
        }
    }
    all
}

/// The decoder knows a little more than a schema can say; these are the places.
fn beyond_schema(error: &str) -> bool {
    ["is not a size", "out of range", "hex digits"].iter().any(|part| error.contains(part))
}

fn agree<T: Decode>(document: Document, text: &str) {
    let schema = document.schema();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let node = tree(text);
    let mistakes: Vec<String> = validator
        .iter_errors(&json(&node))
        .map(|error| format!("{error} at {}", error.instance_path))
        .collect();
    assert_eq!(mistakes, Vec::<String>::new(), "the schema refuses the handbook");
    assert_eq!(accepts::<T>(&node), Ok(()));
    let changes = changes(&node);
    assert!(changes.len() > 50);
    let mut disagreements = Vec::new();
    for (what, changed) in changes {
        let decoded = accepts::<T>(&changed);
        let valid = validator.is_valid(&json(&changed));
        match &decoded {
            Err(error) if valid && beyond_schema(error) => {}
            _ if decoded.is_ok() == valid => {}
            _ => disagreements.push(format!("{what}: the decoder says {decoded:?}")),
        }
    }
    assert_eq!(disagreements, Vec::<String>::new());
}

#[test]
fn strata() {
    agree::<Settings>(Document::Strata, STRATA);
}

#[test]
fn stacks() {
    agree::<Stack>(Document::Stack, &stack());
}

#[test]
fn clusters() {
    agree::<Cluster>(Document::Cluster, CLUSTER);
}

#[test]
fn nodes() {
    agree::<NodesFile>(Document::Nodes, NODES);
}

#[test]
fn hypervisors() {
    agree::<Hypervisor>(Document::Hypervisor, HYPERVISOR);
}

#[test]
fn environments() {
    agree::<Environment>(Document::Environment, ENVIRONMENT);
}

#[test]
fn every_document_has_a_schema_that_is_one() {
    for document in Document::all() {
        let schema = document.schema();
        assert!(jsonschema::meta::is_valid(&schema), "{document}");
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    }
}

#[test]
fn every_field_is_described() {
    fn walk(schema: &Json, path: &str) {
        if let Some(properties) = schema["properties"].as_object() {
            for (key, property) in properties {
                assert!(
                    property["description"].is_string()
                        || path.contains("reference")
                        || path.contains("outside"),
                    "{path}.{key}"
                );
            }
        }
    }
    for document in Document::all() {
        let schema = document.schema();
        for (name, definition) in schema["definitions"].as_object().unwrap() {
            walk(definition, name);
        }
    }
}
