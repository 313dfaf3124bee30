//! Parser events become nodes that know their line; aliases and merge keys are written out.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use zeroize::Zeroizing;

use super::YamlError;
use super::scalar::Scalar;

/// Everything after the reader may recurse because of this limit.
const DEEPEST: usize = 64;
/// A few lines of aliases of aliases could otherwise fill the memory.
const MOST_VALUES: usize = 200_000;
const MOST_BYTES: usize = 16 << 20;

/// A value and the line where it begins, counted from one.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) kind: NodeKind,
}

#[derive(Clone)]
pub(crate) enum NodeKind {
    Scalar(Scalar),
    List(Vec<Node>),
    /// The keys are unique.
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, NodeKind::Scalar(scalar) if scalar.is_null())
    }

    pub(crate) fn as_scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&[(String, Node)]> {
        match &self.kind {
            NodeKind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }
}

/// The documents of a stream that hold something.
pub(crate) fn read(text: &str) -> Result<Vec<Node>, YamlError> {
    if text.len() > MOST_BYTES {
        return Err(YamlError::TooLarge { bytes: text.len(), most: MOST_BYTES });
    }
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| YamlError::Syntax {
            line: error.marker().line().max(1),
            reason: error.info().to_owned(),
        })?;
        reader.take(event, span.start.line().max(1))?;
    }
    reader.documents.retain(|document| !document.is_null());
    Ok(reader.documents)
}

#[derive(Default)]
struct Reader {
    documents: Vec<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    values: usize,
}

/// A list or mapping whose end has not come yet.
struct Open {
    line: usize,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map { entries: Vec<(String, Node)>, key: Option<String>, merged: Vec<Node> },
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), YamlError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    let node = node.clone();
                    self.add(node)
                }
                None => Err(YamlError::Syntax {
                    line,
                    reason: "an alias of something that is not there".to_owned(),
                }),
            },
            Event::Scalar(text, style, anchor, tag) => {
                let forced = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let plain = style == ScalarStyle::Plain && !forced;
                let scalar = Scalar { text: Zeroizing::new(text.into_owned()), plain };
                self.done(Node { line, kind: NodeKind::Scalar(scalar) }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.start(line, anchor, OpenKind::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let kind = OpenKind::Map { entries: Vec::new(), key: None, merged: Vec::new() };
                self.start(line, anchor, kind)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line),
        }
    }

    fn start(&mut self, line: usize, anchor: usize, kind: OpenKind) -> Result<(), YamlError> {
        if self.open.len() >= DEEPEST {
            return Err(YamlError::TooDeep { line, deepest: DEEPEST });
        }
        if self.expects_key() {
            return Err(YamlError::KeyNotText { line });
        }
        self.open.push(Open { line, anchor, kind });
        Ok(())
    }

    fn end(&mut self, line: usize) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Err(YamlError::Syntax { line, reason: "an end without a beginning".to_owned() });
        };
        let kind = match open.kind {
            OpenKind::List(items) => NodeKind::List(items),
            OpenKind::Map { mut entries, merged, .. } => {
                // What a merge key brings never wins over what is written out, and an earlier source wins over a later.
                for source in merged {
                    for (key, node) in entries_of(source) {
                        if entries.iter().all(|(known, _)| *known != key) {
                            entries.push((key, node));
                        }
                    }
                }
                NodeKind::Map(entries)
            }
        };
        self.done(Node { line: open.line, kind }, open.anchor)
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: OpenKind::Map { key: None, .. }, .. }))
    }

    fn done(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node)
    }

    fn add(&mut self, node: Node) -> Result<(), YamlError> {
        self.values += count(&node);
        if self.values > MOST_VALUES {
            return Err(YamlError::TooManyValues { most: MOST_VALUES });
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match &mut open.kind {
            OpenKind::List(items) => items.push(node),
            OpenKind::Map { entries, key, merged } => match key.take() {
                None => {
                    let NodeKind::Scalar(scalar) = node.kind else {
                        return Err(YamlError::KeyNotText { line: node.line });
                    };
                    if entries.iter().any(|(known, _)| *known == *scalar.text) {
                        let key = scalar.text.to_string();
                        return Err(YamlError::DuplicateKey { line: node.line, key });
                    }
                    *key = Some(scalar.text.to_string());
                }
                Some(name) if name == "<<" => match node.kind {
                    NodeKind::List(sources) => merged.extend(sources),
                    _ => merged.push(node),
                },
                Some(name) => entries.push((name, node)),
            },
        }
        Ok(())
    }
}

fn entries_of(node: Node) -> Vec<(String, Node)> {
    match node.kind {
        NodeKind::Map(entries) => entries,
        _ => Vec::new(),
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.kind {
        NodeKind::Scalar(_) => 0,
        NodeKind::List(items) => items.iter().map(count).sum(),
        NodeKind::Map(entries) => entries.iter().map(|(_, node)| count(node)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Node {
        let mut documents = read(text).unwrap();
        assert_eq!(documents.len(), 1);
        documents.remove(0)
    }

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(read("---\na: 1\n---\n---\nb: 2\n--- ~\n").unwrap().len(), 2);
        assert!(read("# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn aliases_and_merge_keys_are_written_out() {
        let node = one("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\nagain: *b\n");
        let more = node.get("more").unwrap();
        assert_eq!(more.get("y").unwrap().as_scalar().unwrap().text.as_str(), "3");
        assert_eq!(more.get("x").unwrap().as_scalar().unwrap().text.as_str(), "1");
        assert_eq!(node.get("again").unwrap().as_map().unwrap().len(), 2);
        assert_eq!(node.get("again").unwrap().line, 1);
        assert_eq!(more.line, 3);
    }

    #[test]
    fn hostile_files_are_refused() {
        assert_eq!(
            read("a: 1\na: 2\n").err(),
            Some(YamlError::DuplicateKey { line: 2, key: "a".to_owned() })
        );
        assert_eq!(read("? [a]\n: b\n").err(), Some(YamlError::KeyNotText { line: 1 }));
        assert!(matches!(read(&"[".repeat(100)), Err(YamlError::TooDeep { .. })));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..8 {
            let alias = format!("*a{}, ", level - 1).repeat(10);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", alias.trim_end_matches(", ")));
        }
        assert!(matches!(read(&bomb), Err(YamlError::TooManyValues { .. })));
        assert!(matches!(read("a: [1\nb: 2\n"), Err(YamlError::Syntax { .. })));
    }
}
