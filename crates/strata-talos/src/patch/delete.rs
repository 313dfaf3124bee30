//! `$patch: delete`: a document, a field, an entry or an item of a list goes.

use crate::config::MachineConfig;
use crate::document::{DocumentId, kind_of};
use crate::patch::{PatchError, dotted, moved, text};
use crate::shape::{self, Field, Record, Shape, V1ALPHA1};
use crate::tree::{Map, Value};
use crate::yaml::{Node, NodeKind};

/// One thing that goes.
#[derive(Clone)]
pub(super) struct Deletion {
    document: DocumentId,
    /// The names that lead to it; empty for the whole document.
    path: Vec<String>,
    /// For an item of the list at the path: a field of it and the field's value.
    item: Option<(String, String)>,
}

/// Takes the deletions out of a document of a patch. The flag says whether anything is left to merge.
pub(super) fn split(node: &mut Node) -> Result<(Vec<Deletion>, bool), PatchError> {
    let mut finder = Finder { found: Vec::new(), path: Vec::new(), in_list: false };
    let gone = finder.node(node, false)?;
    if finder.found.is_empty() {
        return Ok((Vec::new(), true));
    }
    let document = DocumentId {
        kind: kind_of(node)
            .or_else(|error| if node.get("kind").is_none() { Ok(V1ALPHA1) } else { Err(error) })?,
        name: node.get("name").and_then(text).map(str::to_owned),
    };
    if finder.found.iter().any(|(path, _)| path.is_empty()) && document.kind == V1ALPHA1 {
        let reason = "the document with `machine` and `cluster` cannot be deleted";
        return Err(PatchError::Syntax { line: node.line, reason });
    }
    let rest = !gone && !is_empty_document(node);
    let deletions = finder.found.into_iter();
    Ok((deletions.map(|(path, item)| Deletion { document: document.clone(), path, item }).collect(), rest))
}

/// A path, and for an item of the list there a field of it and the field's value.
type DeletionPath = (Vec<String>, Option<(String, String)>);

struct Finder {
    found: Vec<DeletionPath>,
    path: Vec<String>,
    in_list: bool,
}

impl Finder {
    /// Whether the node goes as a whole, itself or because everything in it went.
    fn node(&mut self, node: &mut Node, is_item: bool) -> Result<bool, PatchError> {
        let line = node.line;
        if is_deletion(node) {
            if is_item {
                let Some(item) = selector(node) else {
                    let reason = "`$patch: delete` in a list needs a field that identifies the item";
                    return Err(PatchError::Syntax { line, reason });
                };
                self.found.push((self.path.clone(), Some(item)));
            } else if self.in_list {
                let reason = "a field of an item of a list cannot be deleted alone; delete the item, then add it again";
                return Err(PatchError::Syntax { line, reason });
            } else {
                self.found.push((self.path.clone(), None));
            }
            return Ok(true);
        }
        match &mut node.kind {
            NodeKind::Scalar(_) => Ok(false),
            NodeKind::List(items) => {
                let before = items.len();
                let outer = std::mem::replace(&mut self.in_list, true);
                let mut kept = Vec::new();
                for mut item in std::mem::take(items) {
                    if !self.node(&mut item, true)? {
                        kept.push(item);
                    }
                }
                self.in_list = outer;
                *items = kept;
                Ok(before > 0 && items.is_empty())
            }
            NodeKind::Map(entries) => {
                let before = entries.len();
                let mut kept = Vec::new();
                for (key, mut value) in std::mem::take(entries) {
                    self.path.push(key.clone());
                    let gone = self.node(&mut value, false)?;
                    self.path.pop();
                    if !gone {
                        kept.push((key, value));
                    }
                }
                *entries = kept;
                Ok(before > 0 && entries.is_empty())
            }
        }
    }
}

fn is_deletion(node: &Node) -> bool {
    node.get("$patch").and_then(text) == Some("delete")
}

/// The first field of an item apart from `$patch`.
fn selector(node: &Node) -> Option<(String, String)> {
    let (key, value) = node.as_map()?.iter().find(|(key, _)| key != "$patch")?;
    Some((key.clone(), text(value).unwrap_or_default().to_owned()))
}

/// Whether nothing is left to merge. A document with an `apiVersion` is merged all the same, as Talos' own tools do.
fn is_empty_document(node: &Node) -> bool {
    node.as_map().is_some_and(|entries| {
        entries.iter().all(|(key, value)| {
            matches!(key.as_str(), "version" | "kind" | "name") && value.as_scalar().is_some()
        })
    })
}

impl Deletion {
    pub(super) fn apply(&self, config: MachineConfig) -> Result<MachineConfig, PatchError> {
        if self.document.kind == V1ALPHA1
            && let Some(kind) = moved::owner(&config, &self.path)
        {
            return Err(PatchError::Moved { path: dotted(&self.path), kind });
        }
        let mut documents = config.into_documents();
        let Some(index) = documents.iter().position(|document| document.id() == self.document) else {
            return Ok(MachineConfig::new(documents)?);
        };
        if self.path.is_empty() {
            documents.remove(index);
        } else {
            let document = &mut documents[index];
            let shape = shape::document(document.kind()).expect("a kind that is in the tables");
            let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
            if !self.in_record(&shape.record, document.body_mut(), &path) {
                let document = self.document.to_string();
                return Err(PatchError::NothingToDelete { path: dotted(&self.path), document });
            }
        }
        Ok(MachineConfig::new(documents)?)
    }

    /// Whether the path led to something that can be deleted.
    fn in_record(&self, record: &Record, body: &mut Map, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return false };
        let Some(field) = record.field(name) else { return false };
        if rest.is_empty() && self.item.is_none() {
            body.shift_remove(*name);
            return true;
        }
        match body.get_mut(*name) {
            Some(value) => self.in_value(&field.shape, value, rest),
            // A part that is always there has its fields even if none of them is set.
            None => match &field.shape {
                Shape::Record(record) if !field.optional => self.in_record(record, &mut Map::new(), rest),
                _ => false,
            },
        }
    }

    fn in_value(&self, shape: &Shape, value: &mut Value, path: &[&str]) -> bool {
        match (shape, value) {
            (Shape::Record(record), Value::Map(body)) => self.in_record(record, body, path),
            (Shape::Map(item), Value::Map(map)) => self.in_map(Some(item), map, path),
            (Shape::Any { .. } | Shape::Args, Value::Map(map)) => self.in_map(None, map, path),
            (Shape::List { item, .. }, Value::List(items)) => match &**item {
                Shape::Record(record) => path.is_empty() && self.in_list(record, items),
                _ => false,
            },
            _ => false,
        }
    }

    fn in_map(&self, item: Option<&Shape>, map: &mut Map, path: &[&str]) -> bool {
        let Some((name, rest)) = path.split_first() else { return false };
        if rest.is_empty() && self.item.is_none() {
            return map.shift_remove(*name).is_some();
        }
        match (map.get_mut(*name), item) {
            (Some(value), Some(item)) => self.in_value(item, value, rest),
            (Some(Value::Map(map)), None) => self.in_map(None, map, rest),
            _ => false,
        }
    }

    /// Items are told apart by a field that is text, and always there.
    fn in_list(&self, record: &Record, items: &mut Vec<Value>) -> bool {
        let Some((key, value)) = &self.item else { return false };
        let Some(Field { shape: Shape::Leaf(leaf), optional: false, .. }) = record.field(key) else {
            return false;
        };
        let zero = leaf.zero();
        let same = |item: &Value| item.get(key).unwrap_or(&zero).as_text() == Some(value.as_str());
        match items.iter().position(same) {
            Some(index) => {
                items.remove(index);
                true
            }
            None => false,
        }
    }
}
