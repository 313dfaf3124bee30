//! Files of YAML, JSON and TOML as trees; a problem in one is told with its line, and the rest is read.

use std::ops::Range;
use std::rc::Rc;

use strata_diagnostics::{Diagnostics, SourceMap};
use strata_yaml::{Node, Parsed, ScalarKind};

use super::tree::{Content, SourceLine, Tree};

/// What was wrong, and where.
pub(crate) type Problem = (SourceLine, String);

/// The text of a file: without the mark that some editors put first. The second is true if it was no proper UTF-8.
pub(super) fn text(content: &[u8]) -> (String, bool) {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    match std::str::from_utf8(content) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (String::from_utf8_lossy(content).into_owned(), true),
    }
}

/// A file of YAML, or of JSON; no tree for an empty or a broken one.
pub(crate) fn yaml(file: &str, text: &str) -> (Option<Tree>, Vec<Problem>) {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let id = sources.add(file, text);
    let name: Rc<str> = file.into();
    let tree = match strata_yaml::parse(&sources, id, &mut diagnostics) {
        Parsed::Document(node) => Some(of_node(&node, &name, &sources)),
        Parsed::Empty | Parsed::Broken => None,
    };
    let problems = diagnostics
        .iter()
        .filter(|found| found.is_error())
        .map(|found| {
            let line = found.primary.as_ref().map_or(1, |label| sources.location(label.span).line);
            (SourceLine { file: name.clone(), line }, found.message.clone())
        })
        .collect();
    (tree, problems)
}

fn of_node(node: &Node, file: &Rc<str>, sources: &SourceMap) -> Tree {
    let place = SourceLine { file: file.clone(), line: sources.location(node.span).line };
    let content = if let Some(mapping) = node.as_mapping() {
        let entries = mapping.entries.iter().map(|entry| {
            let mut value = of_node(&entry.value, file, sources);
            // A mapping or a list begins on the line after its key; people look for the key.
            value.place.line = value.place.line.min(sources.location(entry.key.span).line.max(1));
            (entry.key.value.clone(), value)
        });
        Content::Map(Rc::new(entries.collect()))
    } else if let Some(items) = node.as_list() {
        Content::List(Rc::new(items.iter().map(|item| of_node(item, file, sources)).collect()))
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
pub(super) fn toml(file: &str, text: &str) -> Result<Tree, Problem> {
    let name: Rc<str> = file.into();
    let lines = Lines::of(text);
    let line = |span: Option<Range<usize>>| span.map_or(1, |span| lines.line(span.start));
    let document = toml_edit::Document::parse(text).map_err(|error| {
        (SourceLine { file: name.clone(), line: line(error.span()) }, error.message().to_owned())
    })?;
    Ok(of_item(document.as_item(), &name, &line))
}

fn of_item(item: &toml_edit::Item, file: &Rc<str>, line: &dyn Fn(Option<Range<usize>>) -> usize) -> Tree {
    let place = SourceLine { file: file.clone(), line: line(item.span()) };
    let content = if let Some(table) = item.as_table_like() {
        let entries = table.iter().map(|(key, item)| (key.to_owned(), of_item(item, file, line)));
        Content::Map(Rc::new(entries.collect()))
    } else if let Some(tables) = item.as_array_of_tables() {
        let one = |table: &toml_edit::Table| of_item(&toml_edit::Item::Table(table.clone()), file, line);
        Content::List(Rc::new(tables.iter().map(one).collect()))
    } else if let Some(array) = item.as_array() {
        let one = |value: &toml_edit::Value| of_item(&toml_edit::Item::Value(value.clone()), file, line);
        Content::List(Rc::new(array.iter().map(one).collect()))
    } else if let Some(value) = item.as_bool() {
        Content::Bool(value)
    } else if let Some(number) = item.as_integer() {
        Content::Number(number as f64)
    } else if let Some(number) = item.as_float() {
        Content::Number(number)
    } else if let Some(text) = item.as_str() {
        Content::Text(text.to_owned())
    } else if let Some(time) = item.as_datetime() {
        Content::Text(time.to_string())
    } else {
        Content::Null
    };
    Tree::new(place, content)
}

/// Where the lines of a text begin.
#[derive(Debug, Clone)]
pub(super) struct Lines(Rc<[usize]>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|begin| *begin <= offset) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toml_and_yaml_give_the_same() {
        let toml =
            toml("a.toml", "[network]\nnode_cidr = \"192.0.2.0/24\"\n[[nodes]]\nname = \"a\"\n").unwrap();
        let (yaml, _) = yaml("a.yaml", "network: {node_cidr: 192.0.2.0/24}\nnodes: [{name: a}]\n");
        for tree in [&toml, &yaml.unwrap()] {
            assert_eq!(
                tree.at(&["network", "node_cidr"]).and_then(Tree::as_text).as_deref(),
                Some("192.0.2.0/24")
            );
            assert_eq!(tree.list("nodes")[0].text("name").as_deref(), Some("a"));
        }
        assert_eq!(toml.at(&["network", "node_cidr"]).unwrap().place.line, 2);
    }

    #[test]
    fn a_second_document_and_a_tab_are_told_with_their_line() {
        let (tree, problems) = yaml("a.yaml", "a: 1\n---\nb: 2\n");
        assert_eq!((tree.unwrap().int("a"), problems[0].0.line), (Some(1), 2));
        let (tree, problems) = yaml("a.yaml", "a:\n  b: 1\n\tc: 2\n");
        assert!(tree.is_none());
        assert_eq!(problems[0].0.line, 3);
    }

    #[test]
    fn marks_of_editors_and_foreign_letters_do_not_stop_it() {
        assert_eq!(text(b"\xef\xbb\xbfa: 1\r\n"), ("a: 1\r\n".to_owned(), false));
        assert_eq!(text(b"name: M\xfcller\n"), ("name: M\u{fffd}ller\n".to_owned(), true));
    }
}
