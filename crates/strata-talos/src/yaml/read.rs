//! Nodes that know their line, and scalars that stay as they are written.

use strata_yaml::build::{Key, Limits, Parts, Position, Problem, Tree, Written, build};
use zeroize::Zeroizing;

use super::YamlError;
use super::scalar::Scalar;

const LIMITS: Limits = Limits { bytes: 16 << 20, depth: 64, values: 200_000, aliased: 200_000 };

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
    let documents = build(text, &LIMITS, &mut TalosTree)?;
    Ok(documents.into_iter().map(|(_, node)| node).filter(|node| !node.is_null()).collect())
}

struct TalosTree;

impl Tree for TalosTree {
    type Node = Node;
    type Error = YamlError;

    fn scalar(&mut self, scalar: Written<'_>, at: Position) -> Node {
        let text = Zeroizing::new(scalar.text.into_owned());
        Node { line: at.line, kind: NodeKind::Scalar(Scalar { text, plain: scalar.plain }) }
    }

    fn list(&mut self, items: Vec<Node>, at: Position) -> Node {
        Node { line: at.line, kind: NodeKind::List(items) }
    }

    fn mapping(&mut self, entries: Vec<(Key, Node)>, at: Position) -> Node {
        let entries = entries.into_iter().map(|(key, node)| (key.text, node)).collect();
        Node { line: at.line, kind: NodeKind::Map(entries) }
    }

    fn key(&self, node: &Node) -> Option<String> {
        node.as_scalar().map(|scalar| scalar.text.to_string())
    }

    fn parts(&self, node: Node, at: Position) -> Parts<Node> {
        match node.kind {
            NodeKind::Scalar(_) => Parts::Scalar(node),
            NodeKind::List(items) => Parts::List(items),
            NodeKind::Map(entries) => {
                Parts::Mapping(entries.into_iter().map(|(text, node)| (Key { text, at }, node)).collect())
            }
        }
    }

    fn error(&self, problem: Problem<'_, Node>, at: Position) -> YamlError {
        YamlError::new(problem, at)
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
        assert!(matches!(read("a: {<<: text}\n"), Err(YamlError::Syntax { .. })));
        // Aliases of aliases cannot hide how deep a file is.
        let mut deep = format!("a0: &a0 {}x{}\n", "[".repeat(40), "]".repeat(40));
        for level in 1..4 {
            let brackets = ("[".repeat(40), "]".repeat(40));
            deep.push_str(&format!("a{level}: &a{level} {}*a{}{}\n", brackets.0, level - 1, brackets.1));
        }
        assert!(matches!(read(&deep), Err(YamlError::TooDeep { .. })));
    }
}
