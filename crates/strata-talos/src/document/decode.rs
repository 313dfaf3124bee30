//! From nodes of a file to a document's body.

use crate::document::{Document, DocumentError};
use crate::shape::{self, DocumentShape, Field, Record, Shape, V1ALPHA1, tables};
use crate::tree::{Map, Value};
use crate::yaml::{Node, NodeKind, Plain};

/// Reads one document by the shape of its kind.
pub(crate) fn decode(node: &Node) -> Result<Document, DocumentError> {
    let kind = kind_of(node)?;
    let shape = shape::document(kind).expect("kind_of returns kinds of the tables");
    let mut path = Path { kind, names: Vec::new() };
    let entries: Vec<&(String, Node)> = node
        .as_map()
        .unwrap_or_default()
        .iter()
        .filter(|(key, _)| kind == V1ALPHA1 || !matches!(key.as_str(), "apiVersion" | "kind"))
        .collect();
    let body = record(&shape.record, &entries, &mut path)?;
    if shape.named && body.get("name").and_then(Value::as_text).is_none_or(str::is_empty) {
        return Err(DocumentError::NoName { line: node.line, kind });
    }
    Ok(Document { kind, body })
}

/// The kind that a document says it is of.
pub(crate) fn kind_of(node: &Node) -> Result<&'static str, DocumentError> {
    let line = node.line;
    let Some(entries) = node.as_map() else {
        return Err(DocumentError::NotMapping { line });
    };
    let text = |key| node.get(key).and_then(Node::as_scalar).filter(|scalar| !scalar.is_null());
    let Some(kind) = text("kind").filter(|kind| !kind.text.is_empty()) else {
        let legacy = |key: &str| matches!(key, "machine" | "cluster" | "debug" | "persist");
        return if entries.iter().any(|(key, _)| legacy(key)) && text("apiVersion").is_none() {
            Ok(V1ALPHA1)
        } else {
            Err(DocumentError::NoKind { line })
        };
    };
    let kind = kind.text.as_str();
    if text("apiVersion").is_none_or(|version| version.text.as_str() != "v1alpha1") {
        return Err(DocumentError::NoApiVersion { line, kind: kind.to_owned() });
    }
    match shape::document(kind).filter(|shape| shape.kind != V1ALPHA1) {
        Some(DocumentShape { kind, .. }) => Ok(kind),
        None => {
            let hint = did_you_mean(kind, tables().iter().map(|shape| shape.kind));
            Err(DocumentError::UnknownKind { line, kind: kind.to_owned(), hint })
        }
    }
}

/// Where in a document the reader is.
struct Path {
    kind: &'static str,
    names: Vec<String>,
}

impl Path {
    fn shown(&self) -> String {
        self.names.join(".")
    }

    fn below<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut Self) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        self.names.push(name.to_owned());
        let result = read(self);
        self.names.pop();
        result
    }

    fn wrong(&self, node: &Node, expected: impl Into<String>) -> DocumentError {
        DocumentError::WrongType {
            line: node.line,
            kind: self.kind,
            path: self.shown(),
            expected: expected.into(),
        }
    }
}

fn record(record: &Record, entries: &[&(String, Node)], path: &mut Path) -> Result<Map, DocumentError> {
    let mut body = Map::new();
    for (key, node) in entries.iter().map(|entry| (&entry.0, &entry.1)) {
        path.below(key, |path| {
            let Some(field) = record.field(key) else {
                let hint = did_you_mean(key, record.fields.iter().map(|field| field.name));
                return Err(DocumentError::UnknownField {
                    line: node.line,
                    kind: path.kind,
                    path: path.shown(),
                    hint,
                });
            };
            if !node.is_null()
                && let Some(value) = field_value(field, node, path)?
            {
                body.insert(key.clone(), value);
            }
            Ok(())
        })?;
    }
    Ok(body)
}

/// `None` for a zero that means the same as nothing.
fn field_value(field: &Field, node: &Node, path: &mut Path) -> Result<Option<Value>, DocumentError> {
    let value = value(&field.shape, node, path)?;
    let absent = match &field.shape {
        _ if field.optional => false,
        Shape::Leaf(leaf) => leaf.is_zero(&value),
        Shape::Record(_) | Shape::Any { .. } => value.as_map().is_some_and(Map::is_empty),
        _ => false,
    };
    Ok((!absent).then_some(value))
}

fn value(shape: &Shape, node: &Node, path: &mut Path) -> Result<Value, DocumentError> {
    match shape {
        Shape::Leaf(leaf) => leaf.read(node).ok_or_else(|| path.wrong(node, leaf.describe())),
        Shape::Any { .. } => match &node.kind {
            NodeKind::Map(_) => Ok(plain_tree(node)),
            _ => Err(path.wrong(node, "a mapping")),
        },
        Shape::Args => {
            let entries = node.as_map().ok_or_else(|| path.wrong(node, "a mapping of arguments"))?;
            let mut map = Map::new();
            for (key, node) in entries {
                map.insert(key.clone(), path.below(key, |path| argument(node, path))?);
            }
            Ok(Value::Map(map))
        }
        Shape::List { item, .. } => {
            let nodes = node.as_list().ok_or_else(|| path.wrong(node, "a list"))?;
            let mut items = Vec::new();
            for (index, node) in nodes.iter().enumerate() {
                if node.is_null() && matches!(**item, Shape::Leaf(_)) {
                    continue;
                }
                items.push(path.below(&index.to_string(), |path| value(item, node, path))?);
            }
            Ok(Value::List(items))
        }
        Shape::Map(item) => {
            let entries = node.as_map().ok_or_else(|| path.wrong(node, "a mapping"))?;
            let mut map = Map::new();
            for (key, node) in entries {
                let entry = match &**item {
                    Shape::Leaf(leaf) if node.is_null() => leaf.zero(),
                    item => path.below(key, |path| value(item, node, path))?,
                };
                map.insert(key.clone(), entry);
            }
            Ok(Value::Map(map))
        }
        Shape::Record(shape) => {
            let entries = node.as_map().ok_or_else(|| path.wrong(node, "a mapping"))?;
            Ok(Value::Map(record(shape, &entries.iter().collect::<Vec<_>>(), path)?))
        }
    }
}

/// A text, or a list of texts for an argument that is given several times.
fn argument(node: &Node, path: &Path) -> Result<Value, DocumentError> {
    let expected = "a text or a list of texts";
    match &node.kind {
        NodeKind::Scalar(scalar) if scalar.is_null() => Ok(Value::text("")),
        NodeKind::Scalar(scalar) => Ok(Value::text(scalar.text.as_str())),
        NodeKind::List(nodes) => nodes
            .iter()
            .map(|node| node.as_scalar().map(|scalar| Value::text(scalar.text.as_str())))
            .collect::<Option<Vec<Value>>>()
            .map(Value::List)
            .ok_or_else(|| path.wrong(node, expected)),
        NodeKind::Map(_) => Err(path.wrong(node, expected)),
    }
}

/// A tree without a shape: scalars are what they look like.
pub(crate) fn plain_tree(node: &Node) -> Value {
    match &node.kind {
        NodeKind::Scalar(scalar) => match scalar.resolve() {
            Plain::Null => Value::Null,
            Plain::Bool(value) => Value::Bool(value),
            Plain::Int(number) => Value::Int(number),
            Plain::Float(number) => Value::Float(number),
            Plain::Text => Value::text(scalar.text.as_str()),
        },
        NodeKind::List(items) => Value::List(items.iter().map(plain_tree).collect()),
        NodeKind::Map(entries) => {
            Value::Map(entries.iter().map(|(key, node)| (key.clone(), plain_tree(node))).collect())
        }
    }
}

/// `; did you mean …`, where one of the names is near.
fn did_you_mean<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> String {
    let near = names.map(|name| (distance(wrong, name), name)).min();
    match near {
        Some((distance, name)) if distance <= 1 + wrong.len() / 5 => format!("; did you mean `{name}`?"),
        _ => String::new(),
    }
}

/// How many letters have to change, capitals aside.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::read;

    fn document(text: &str) -> Result<Document, DocumentError> {
        decode(&read(text).unwrap()[0])
    }

    fn message(text: &str) -> String {
        document(text).err().expect("an error").to_string()
    }

    #[test]
    fn a_zero_is_left_out_and_an_optional_one_is_kept() {
        let text = "machine:\n  kubelet:\n    image: ''\n    skipNodeRegistration: false\n  network: {}\n  certSANs: []\n";
        let document = document(text).unwrap();
        assert_eq!(document.kind(), V1ALPHA1);
        assert!(document.at(&["machine", "kubelet", "image"]).is_none());
        assert!(document.at(&["machine", "kubelet", "skipNodeRegistration"]) == Some(&Value::Bool(false)));
        assert!(document.at(&["machine", "network"]).is_some());
        assert!(document.at(&["machine", "certSANs"]) == Some(&Value::List(Vec::new())));
    }

    #[test]
    fn says_what_is_wrong_and_never_what_stands_there() {
        for (text, expected) in [
            ("a: 1\n", "line 1: the document has no `kind`; without one it must have `machine` or `cluster`"),
            ("- a\n", "line 1: a document must be a mapping"),
            ("kind: KubeletConfig\n", "line 1: the document `KubeletConfig` has no `apiVersion: v1alpha1`"),
            (
                "apiVersion: v1alpha1\nkind: KubletConfig\n",
                "line 1: Talos knows no document `KubletConfig`; did you mean `KubeletConfig`?",
            ),
            ("apiVersion: v1alpha1\nkind: LinkConfig\n", "line 1: the document `LinkConfig` needs a `name`"),
            (
                "machine:\n  kubelet:\n    extraArg: {}\n",
                "line 3: `v1alpha1` has no field `machine.kubelet.extraArg`; did you mean `extraArgs`?",
            ),
            (
                "machine:\n  network:\n    interfaces:\n      - mtu: s3cret\n",
                "line 4: `machine.network.interfaces.0.mtu` of `v1alpha1` must be a whole number",
            ),
            ("cluster:\n  token: [s3cret]\n", "line 2: `cluster.token` of `v1alpha1` must be a text"),
        ] {
            assert_eq!(message(text), expected);
        }
    }
}
