//! What others wrote, as one kind of tree whatever the format: values with their places, and which of them were taken.

use std::cell::Cell;
use std::rc::Rc;

use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Body, Structure};
use hcl_edit::template::Element;
use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Node, Parsed, ScalarKind};

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Rc<str>,
    pub line: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
    /// Not a value but a way to one, such as `var.name`.
    Expression(String),
}

#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) place: Place,
    pub(super) content: Content,
    taken: Cell<bool>,
}

impl Tree {
    fn new(place: Place, content: Content) -> Self {
        Self { place, content, taken: Cell::new(false) }
    }

    pub(super) fn empty(file: &str) -> Self {
        Self::new(Place { file: file.into(), line: 1 }, Content::Map(Vec::new()))
    }

    /// The value at a key, which counts as taken; nothing for null.
    pub(super) fn get(&self, key: &str) -> Option<&Tree> {
        let Content::Map(entries) = &self.content else { return None };
        let (_, tree) = entries.iter().find(|(name, _)| name == key)?;
        self.taken.set(true);
        tree.taken.set(true);
        (!matches!(tree.content, Content::Null)).then_some(tree)
    }

    /// Whether a key is there, without taking it.
    pub(super) fn has(&self, key: &str) -> bool {
        matches!(&self.content, Content::Map(entries) if entries.iter().any(|(name, _)| name == key))
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_text()
    }

    pub(super) fn int(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_int()
    }

    pub(super) fn bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// Texts and numbers alike.
    pub(super) fn as_text(&self) -> Option<String> {
        match &self.content {
            Content::Text(text) if !text.is_empty() => Some(text.clone()),
            Content::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match &self.content {
            Content::Number(number) if number.fract() == 0.0 => Some(*number as i64),
            Content::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match &self.content {
            Content::Bool(value) => Some(*value),
            Content::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The items of a list, all of them taken.
    pub(super) fn items(&self) -> &[Tree] {
        match &self.content {
            Content::List(items) => {
                items.iter().for_each(|item| item.taken.set(true));
                items
            }
            _ => &[],
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Tree] {
        self.get(key).map(Self::items).unwrap_or_default()
    }

    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Self::as_text).collect()
    }

    /// The entries of a mapping, all of them taken.
    pub(super) fn entries(&self) -> &[(String, Tree)] {
        match &self.content {
            Content::Map(entries) => {
                entries.iter().for_each(|(_, tree)| tree.taken.set(true));
                entries
            }
            _ => &[],
        }
    }

    pub(super) fn map(&self, key: &str) -> &[(String, Tree)] {
        self.get(key).map(Self::entries).unwrap_or_default()
    }

    /// Takes everything below.
    pub(super) fn take_all(&self) {
        self.taken.set(true);
        match &self.content {
            Content::List(items) => items.iter().for_each(Self::take_all),
            Content::Map(entries) => entries.iter().for_each(|(_, tree)| tree.take_all()),
            _ => {}
        }
    }

    /// What nobody took: the topmost of it, with its path.
    pub(super) fn left(&self) -> Vec<(String, Place)> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, path: &str, found: &mut Vec<(String, Place)>) {
        match &self.content {
            Content::Map(entries) => {
                for (key, tree) in entries {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    if tree.taken.get() {
                        tree.collect(&path, found);
                    } else {
                        found.push((path, tree.place.clone()));
                    }
                }
            }
            Content::List(items) => {
                for (index, tree) in items.iter().enumerate().filter(|(_, tree)| tree.taken.get()) {
                    tree.collect(&format!("{path}[{index}]"), found);
                }
            }
            _ => {}
        }
    }

    /// Puts the defaults of variables below what is said.
    pub(super) fn with_defaults(mut self, defaults: &[(String, Tree)]) -> Self {
        if let Content::Map(entries) = &mut self.content {
            for (name, tree) in defaults {
                if !entries.iter().any(|(known, _)| known == name) {
                    tree.taken.set(true);
                    entries.push((name.clone(), tree.clone()));
                }
            }
        }
        self
    }
}

/// A block of an HCL file.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) labels: Vec<String>,
    pub(super) body: Tree,
    pub(super) place: Place,
}

/// A file of HCL: its attributes as one mapping, and its blocks.
pub(super) fn hcl(file: &str, text: &str) -> Result<(Tree, Vec<Block>), (Place, String)> {
    let name: Rc<str> = file.into();
    match hcl_edit::parser::parse_body(text) {
        Ok(body) => Ok(Hcl { name, text }.body(&body, 1)),
        Err(error) => {
            let place = Place { file: name, line: error.location().line() };
            Err((place, error.message().to_owned()))
        }
    }
}

struct Hcl<'t> {
    name: Rc<str>,
    text: &'t str,
}

impl Hcl<'_> {
    fn place(&self, span: Option<std::ops::Range<usize>>, otherwise: usize) -> Place {
        let line =
            span.and_then(|span| self.text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
        Place { file: self.name.clone(), line: line.unwrap_or(otherwise) }
    }

    fn body(&self, body: &Body, line: usize) -> (Tree, Vec<Block>) {
        let (mut entries, mut blocks) = (Vec::new(), Vec::new());
        for structure in body.iter() {
            match structure {
                Structure::Attribute(attribute) => {
                    let place = self.place(attribute.span(), line);
                    entries.push((attribute.key.to_string(), self.tree(&attribute.value, place)));
                }
                Structure::Block(block) => {
                    let place = self.place(block.span(), line);
                    let (body, inner) = self.body(&block.body, place.line);
                    let mut body = body;
                    // Nested blocks are as good as attributes to whoever reads them.
                    if let Content::Map(entries) = &mut body.content {
                        entries.extend(inner.into_iter().map(|block| (block.kind, block.body)));
                    }
                    let labels = block.labels.iter().map(|label| label.as_str().to_owned()).collect();
                    blocks.push(Block { kind: block.ident.to_string(), labels, body, place });
                }
            }
        }
        (Tree::new(Place { file: self.name.clone(), line }, Content::Map(entries)), blocks)
    }

    fn tree(&self, value: &Expression, place: Place) -> Tree {
        let content = match value {
            Expression::Null(_) => Content::Null,
            Expression::Bool(value) => Content::Bool(*value.as_ref()),
            Expression::Number(number) => Content::Number(number.as_f64().unwrap_or_default()),
            Expression::String(text) => Content::Text(text.as_str().to_owned()),
            Expression::HeredocTemplate(heredoc) => {
                let mut heredoc = heredoc.clone();
                // `<<-` takes the common indentation away.
                if heredoc.indent().is_some() {
                    heredoc.dedent();
                }
                match heredoc.template.as_single_element().and_then(Element::as_literal) {
                    Some(text) => Content::Text(text.as_str().to_owned()),
                    None => Content::Expression(value.to_string().trim().to_owned()),
                }
            }
            Expression::Array(items) => Content::List(
                items.iter().map(|item| self.tree(item, self.place(item.span(), place.line))).collect(),
            ),
            Expression::Object(object) => Content::Map(
                object
                    .iter()
                    .map(|(key, value)| {
                        let key = match key {
                            ObjectKey::Ident(ident) => ident.to_string().trim().to_owned(),
                            ObjectKey::Expression(Expression::String(text)) => text.as_str().to_owned(),
                            ObjectKey::Expression(other) => other.to_string().trim().to_owned(),
                        };
                        let inner = value.expr();
                        (key, self.tree(inner, self.place(inner.span(), place.line)))
                    })
                    .collect(),
            ),
            Expression::Parenthesis(inner) => return self.tree(inner.inner(), place),
            other => Content::Expression(other.to_string().trim().to_owned()),
        };
        Tree::new(place, content)
    }
}

/// A file of YAML; `None` for an empty one.
pub(super) fn yaml(file: &str, text: &str) -> Result<Option<Tree>, (Place, String)> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let id = sources.add(file, text);
    let name: Rc<str> = file.into();
    match strata_yaml::parse(&sources, id, &mut diagnostics) {
        Parsed::Document(node) => Ok(Some(of_node(&node, &name, &sources))),
        Parsed::Empty => Ok(None),
        Parsed::Broken => {
            let first = diagnostics.iter().next();
            let message = first.map_or_else(|| "it cannot be read".to_owned(), |first| first.message.clone());
            Err((Place { file: name, line: 1 }, message))
        }
    }
}

fn of_node(node: &Node, file: &Rc<str>, sources: &SourceMap) -> Tree {
    let place = Place { file: file.clone(), line: sources.location(node.span).line };
    let content = if let Some(mapping) = node.as_mapping() {
        let entry =
            |entry: &strata_yaml::Entry| (entry.key.value.clone(), of_node(&entry.value, file, sources));
        Content::Map(mapping.entries.iter().map(entry).collect())
    } else if let Some(items) = node.as_list() {
        Content::List(items.iter().map(|item| of_node(item, file, sources)).collect())
    } else if let Some(scalar) = node.as_scalar() {
        match scalar.kind() {
            ScalarKind::Null => Content::Null,
            ScalarKind::Bool(value) => Content::Bool(value),
            ScalarKind::Integer(Some(number)) => Content::Number(number as f64),
            _ => Content::Text(scalar.text.clone()),
        }
    } else {
        Content::Null
    };
    Tree::new(place, content)
}

/// A file of TOML.
pub(super) fn toml(file: &str, text: &str) -> Result<Tree, (Place, String)> {
    let name: Rc<str> = file.into();
    let line = |span: Option<std::ops::Range<usize>>| {
        span.and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1)
    };
    let document = toml_edit::Document::parse(text).map_err(|error| {
        (Place { file: name.clone(), line: line(error.span()) }, error.message().to_owned())
    })?;
    Ok(of_item(document.as_item(), &name, &line))
}

fn of_item(
    item: &toml_edit::Item,
    file: &Rc<str>,
    line: &dyn Fn(Option<std::ops::Range<usize>>) -> usize,
) -> Tree {
    let place = Place { file: file.clone(), line: line(item.span()) };
    let content = if let Some(table) = item.as_table_like() {
        Content::Map(table.iter().map(|(key, item)| (key.to_owned(), of_item(item, file, line))).collect())
    } else if let Some(tables) = item.as_array_of_tables() {
        let one = |table: &toml_edit::Table| of_item(&toml_edit::Item::Table(table.clone()), file, line);
        Content::List(tables.iter().map(one).collect())
    } else if let Some(array) = item.as_array() {
        let one = |value: &toml_edit::Value| of_item(&toml_edit::Item::Value(value.clone()), file, line);
        Content::List(array.iter().map(one).collect())
    } else if let Some(value) = item.as_bool() {
        Content::Bool(value)
    } else if let Some(number) = item.as_integer() {
        Content::Number(number as f64)
    } else if let Some(number) = item.as_float() {
        Content::Number(number)
    } else if let Some(text) = item.as_str() {
        Content::Text(text.to_owned())
    } else {
        Content::Null
    };
    Tree::new(place, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_taken_is_known_with_its_line() {
        let (tree, blocks) =
            hcl("a.tfvars", "a = 1\nb = {\n  c = \"x\"\n  d = var.e\n}\nlocals {\n  f = 2\n}\n").unwrap();
        assert_eq!(tree.int("a"), Some(1));
        assert_eq!(tree.get("b").and_then(|b| b.text("c")).as_deref(), Some("x"));
        assert_eq!(tree.left(), [("b.d".to_owned(), Place { file: "a.tfvars".into(), line: 4 })]);
        assert_eq!((blocks[0].kind.as_str(), blocks[0].place.line), ("locals", 6));
        assert_eq!(hcl("b.tf", "a = 1\nb = = 2\n").unwrap_err().0.line, 2);
    }

    #[test]
    fn toml_and_yaml_give_the_same() {
        let toml =
            toml("a.toml", "[network]\nnode_cidr = \"192.0.2.0/24\"\n[[nodes]]\nname = \"a\"\n").unwrap();
        let yaml =
            yaml("a.yaml", "network: {node_cidr: 192.0.2.0/24}\nnodes: [{name: a}]\n").unwrap().unwrap();
        for tree in [&toml, &yaml] {
            assert_eq!(
                tree.get("network").and_then(|network| network.text("node_cidr")).as_deref(),
                Some("192.0.2.0/24")
            );
            assert_eq!(tree.list("nodes")[0].text("name").as_deref(), Some("a"));
        }
        assert_eq!(toml.get("network").unwrap().get("node_cidr").unwrap().place.line, 2);
    }
}
