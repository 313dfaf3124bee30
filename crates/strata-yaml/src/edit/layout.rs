//! A file as it lies on the page: values with the bytes that they take.

use serde_json::Value as Json;

use crate::build::{self, Key, Limits, Parts, Position, Problem, Tree, Written};
use crate::plain::of_scalar;
use crate::scalar::{Scalar, Style};
use crate::{MAX_ALIASED, MAX_BYTES, MAX_DEPTH, MAX_NODES};

use super::place::{colon_after, dash_before};
use super::{EditError, EditPath, Step};

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Of a block scalar: its lines, without the `|` before them.
    pub(super) at: Position,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    /// With the keys that `<<` brought, which stand elsewhere.
    Mapping(Vec<(Key, Node)>),
}

impl Node {
    pub(super) fn value(&self) -> Json {
        match &self.kind {
            Kind::Scalar(scalar) => of_scalar(scalar),
            Kind::List(items) => Json::Array(items.iter().map(Node::value).collect()),
            Kind::Mapping(entries) => {
                Json::Object(entries.iter().map(|(key, node)| (key.text.clone(), node.value())).collect())
            }
        }
    }

    pub(super) fn is_empty_collection(&self) -> bool {
        match &self.kind {
            Kind::Scalar(_) => false,
            Kind::List(items) => items.is_empty(),
            Kind::Mapping(entries) => entries.is_empty(),
        }
    }

    /// The items, or the values of the keys.
    pub(super) fn children(&self) -> Vec<&Node> {
        match &self.kind {
            Kind::Scalar(_) => Vec::new(),
            Kind::List(items) => items.iter().collect(),
            Kind::Mapping(entries) => entries.iter().map(|(_, node)| node).collect(),
        }
    }

    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Mapping(entries) => entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node),
            _ => None,
        }
    }
}

/// What a value hangs on.
#[derive(Debug, Clone)]
pub(super) enum Holder {
    Root,
    /// A key; `colon` is the byte behind its `:`, where it has one.
    Entry {
        key: Key,
        colon: Option<usize>,
    },
    /// An item of a block list; the byte of its `-`.
    Item {
        dash: usize,
    },
    /// An item of a flow list.
    FlowItem,
}

/// A value and where it was found.
pub(super) struct Found<'l> {
    pub(super) node: &'l Node,
    pub(super) holder: Holder,
    pub(super) parent: Option<&'l Node>,
    /// A bracket is open around it.
    pub(super) in_flow: bool,
}

pub(super) struct Layout<'t> {
    pub(super) text: &'t str,
    pub(super) root: Option<Node>,
}

const LIMITS: Limits = Limits { bytes: MAX_BYTES, depth: MAX_DEPTH, values: MAX_NODES, aliased: MAX_ALIASED };

impl<'t> Layout<'t> {
    pub(super) fn read(text: &'t str) -> Result<Self, EditError> {
        let documents = build::build(text, &LIMITS, &mut Reader)?;
        let root = documents.into_iter().next().map(|(_, node)| node);
        // `---` and nothing more.
        let root = root.filter(|root| root.at.start != root.at.end || !matches!(root.kind, Kind::Scalar(_)));
        Ok(Self { text, root })
    }

    pub(super) fn value(&self) -> Json {
        self.root.as_ref().map_or(Json::Null, Node::value)
    }

    /// The value at a path, if the path is there. What an alias or a merge key brought is not in its place.
    pub(super) fn find(&self, path: &[Step]) -> Result<Option<Found<'_>>, EditError> {
        let Some(root) = &self.root else { return Ok(None) };
        let mut found = Found { node: root, holder: Holder::Root, parent: None, in_flow: false };
        for (depth, step) in path.iter().enumerate() {
            let in_flow = found.in_flow || self.is_flow(found.node);
            let (node, holder) = match (&found.node.kind, step) {
                (Kind::Mapping(_), Step::Key(name)) => {
                    let own = self.own_entries(found.node).into_iter().find(|(key, _)| key.text == *name);
                    let Some((key, node)) = own else { return Ok(None) };
                    let colon = colon_after(self.text, key.at.end);
                    (node, Holder::Entry { key: key.clone(), colon })
                }
                (Kind::List(items), Step::Index(index)) => {
                    let Some(node) = items.get(*index) else { return Ok(None) };
                    let holder = match in_flow {
                        true => Holder::FlowItem,
                        false => match dash_before(self.text, node.at.start) {
                            Some(dash) => Holder::Item { dash },
                            None => return Err(EditError::NotEditable(EditPath::of(&path[..=depth]))),
                        },
                    };
                    (node, holder)
                }
                (Kind::Scalar(scalar), _) if of_scalar(scalar).is_null() => return Ok(None),
                (_, Step::Key(_)) => return Err(EditError::NotAMapping(EditPath::of(&path[..depth]))),
                (_, Step::Index(_)) => return Err(EditError::NotAList(EditPath::of(&path[..depth]))),
            };
            if self.is_alias(found.node, &holder, node) {
                return Err(EditError::Aliased(EditPath::of(&path[..=depth])));
            }
            found = Found { node, holder, parent: Some(found.node), in_flow };
        }
        Ok(Some(found))
    }

    /// The keys that stand in the mapping itself.
    pub(super) fn own_entries<'n>(&self, mapping: &'n Node) -> Vec<(&'n Key, &'n Node)> {
        let Kind::Mapping(entries) = &mapping.kind else { return Vec::new() };
        let own = entries.iter().filter(|(key, _)| key.at.start >= mapping.at.start);
        own.map(|(key, node)| (key, node)).collect()
    }

    /// A value that an alias repeats keeps the place of its anchor, which is before the alias.
    fn is_alias(&self, parent: &Node, holder: &Holder, node: &Node) -> bool {
        match holder {
            Holder::Entry { key, .. } => node.at.start < key.at.end,
            _ => node.at.start < parent.at.start,
        }
    }

    /// Written with brackets.
    pub(super) fn is_flow(&self, node: &Node) -> bool {
        if matches!(node.kind, Kind::Scalar(_)) {
            return false;
        }
        let mut rest = &self.text[node.at.start..];
        // An anchor or a tag.
        while rest.starts_with(['&', '!']) {
            rest = rest.trim_start_matches(|letter: char| !letter.is_whitespace()).trim_start();
        }
        rest.starts_with(['{', '['])
    }

    /// The lines of a block scalar, which begin behind its `|` or `>`.
    pub(super) fn is_block_scalar(&self, node: &Node) -> bool {
        let Kind::Scalar(scalar) = &node.kind else { return false };
        scalar.style == Style::Quoted && !self.text[node.at.start..].starts_with(['\'', '"', '!', '&'])
    }

    /// Where a value ends, without the blank lines and the indentation that the parser counts in.
    pub(super) fn end_of(&self, node: &Node) -> usize {
        // The place of an empty text in quotes goes on to the end of its line.
        if let Some(end) =
            quote_end(&self.text[node.at.start..]).filter(|_| matches!(node.kind, Kind::Scalar(_)))
        {
            return node.at.start + end;
        }
        let end = node.at.start + self.text[node.at.start..node.at.end].trim_end().len();
        // A block ends with its last entry, and that with its `:` where nothing follows it.
        if self.is_flow(node) {
            return end;
        }
        let entry = self.own_entries(node).last().map(|(key, value)| self.end_of_entry(key, value));
        let item = match &node.kind {
            Kind::List(items) => items.last().filter(|item| item.at.start >= node.at.start),
            _ => None,
        };
        [Some(end), entry, item.map(|item| self.end_of(item))].into_iter().flatten().max().unwrap_or(end)
    }

    /// Where a key with its value ends.
    pub(super) fn end_of_entry(&self, key: &Key, node: &Node) -> usize {
        let colon = colon_after(self.text, key.at.end);
        let behind = colon.unwrap_or(key.at.end);
        if node.at.start < key.at.end {
            // An alias: up to the end of its name.
            let rest = &self.text[behind..];
            let name = rest.trim_start();
            let length = name.find(|letter: char| letter.is_whitespace() || ",]}".contains(letter));
            return behind + (rest.len() - name.len()) + length.unwrap_or(name.len());
        }
        if node.at.start == node.at.end
            || matches!(&node.kind, Kind::Scalar(one) if one.text.is_empty() && one.style == Style::Plain)
        {
            return behind;
        }
        self.end_of(node).max(behind)
    }
}

/// The byte behind the closing quote of a text that begins with one.
fn quote_end(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' && quote == '"' {
            letters.next();
        } else if letter == quote {
            if quote == '"' || letters.peek().is_none_or(|(_, next)| *next != quote) {
                return Some(at + 1);
            }
            letters.next();
        }
    }
    None
}

/// Makes the tree; every problem ends the reading.
struct Reader;

impl Tree for Reader {
    type Node = Node;
    type Error = EditError;

    const ONE_DOCUMENT: bool = true;

    fn scalar(&mut self, scalar: Written<'_>, at: Position) -> Node {
        let style = if scalar.plain { Style::Plain } else { Style::Quoted };
        Node { at, kind: Kind::Scalar(Scalar { text: scalar.text.into_owned(), style }) }
    }

    fn list(&mut self, items: Vec<Node>, at: Position) -> Node {
        Node { at, kind: Kind::List(items) }
    }

    fn mapping(&mut self, entries: Vec<(Key, Node)>, at: Position) -> Node {
        Node { at, kind: Kind::Mapping(entries) }
    }

    fn key(&self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::Scalar(scalar) => Some(scalar.text.clone()),
            _ => None,
        }
    }

    fn parts(&self, node: Node, _: Position) -> Parts<Node> {
        match node.kind {
            Kind::Scalar(_) => Parts::Scalar(node),
            Kind::List(items) => Parts::List(items),
            Kind::Mapping(entries) => Parts::Mapping(entries),
        }
    }

    fn error(&self, problem: Problem<'_, Node>, at: Position) -> EditError {
        let message = match problem {
            Problem::SecondDocument => return EditError::SecondDocument,
            Problem::Syntax { info, .. } => info.to_owned(),
            Problem::DuplicateKey { key, .. } => format!("the key `{key}` is here twice"),
            Problem::TooLarge { .. }
            | Problem::TooDeep { .. }
            | Problem::TooManyValues { .. }
            | Problem::TooManyAliased { .. } => "the file is too large".to_owned(),
            Problem::AliasInside => "an alias stands inside the value that it repeats".to_owned(),
            Problem::KeyNotText(_) => "a key is not text".to_owned(),
            Problem::NotMergeable(..) => "`<<` takes a mapping or a list of mappings".to_owned(),
            Problem::UnknownTag(tag) => format!("the tag `{tag}` means nothing here"),
        };
        EditError::Syntax { line: at.line, message }
    }
}
