//! New values as text, in the style of what stands beside them.

use serde_json::{Map, Value as Json};

use crate::plain;

use super::layout::{Holder, Kind, Layout, Node};
use super::place::{column, dash_before};

/// A line with brackets is not made longer than this.
const WIDTH: usize = 100;
/// Brackets in brackets in brackets are hard to read.
const DEPTH: usize = 2;

/// How a file is indented.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indentation {
    pub(super) step: usize,
    /// The dashes of a list, from the key above them.
    pub(super) dash: usize,
}

impl Indentation {
    /// As the first mapping and the first list in a mapping have it.
    pub(super) fn of(layout: &Layout<'_>) -> Self {
        let (mut step, mut dash) = (None, None);
        let mut open: Vec<&Node> = layout.root.iter().collect();
        while let Some(node) = open.pop() {
            if layout.is_flow(node) {
                continue;
            }
            for (key, value) in layout.own_entries(node) {
                let here = column(layout.text, key.at.start);
                if value.at.start < key.at.end || layout.is_flow(value) {
                    continue;
                }
                match &value.kind {
                    Kind::Mapping(_) => {
                        let first = layout.own_entries(value).first().map(|(key, _)| key.at.start);
                        let inner = first.map(|first| column(layout.text, first));
                        step =
                            step.or(inner.and_then(|inner| inner.checked_sub(here)).filter(|step| *step > 0));
                    }
                    Kind::List(items) => {
                        let first = items.first().and_then(|item| dash_before(layout.text, item.at.start));
                        let inner = first.map(|first| column(layout.text, first));
                        dash = dash.or(inner.and_then(|inner| inner.checked_sub(here)));
                    }
                    Kind::Scalar(_) => {}
                }
            }
            open.extend(node.children().into_iter().rev().filter(|child| child.at.start >= node.at.start));
        }
        let step = step.unwrap_or(2);
        Self { step, dash: dash.unwrap_or(step) }
    }
}

/// What a new value looks like beside a key or a dash.
pub(super) struct Rendered {
    /// In the line of its key.
    pub(super) head: String,
    /// Lines of its own, indented.
    pub(super) tail: Vec<String>,
}

/// The values that stand where the new one does, in the things beside it: their style is followed.
#[derive(Clone, Default)]
pub(super) struct Like<'l>(pub(super) Vec<&'l Node>);

impl<'l> Like<'l> {
    fn named(&self, name: &str) -> Self {
        Self(self.0.iter().filter_map(|node| node.child(name)).collect())
    }

    fn inside(&self) -> Self {
        Self(self.0.iter().flat_map(|node| node.children()).collect())
    }

    /// How the last mapping or list among them is written.
    fn flow(&self, layout: &Layout<'_>) -> Option<bool> {
        let mut collections = self.0.iter().filter(|node| !node.children().is_empty());
        collections.next_back().map(|node| layout.is_flow(node))
    }
}

pub(super) struct Writer<'l> {
    pub(super) layout: &'l Layout<'l>,
    pub(super) indentation: Indentation,
}

impl<'l> Writer<'l> {
    pub(super) fn of(layout: &'l Layout<'l>) -> Self {
        Self { layout, indentation: Indentation::of(layout) }
    }

    /// Lines for `key: value`, indented by `indent`. The outermost `levels` take lines of their own unless what is beside them does not.
    pub(super) fn entry(
        &self,
        key: &str,
        value: &Json,
        indent: usize,
        siblings: &Like<'l>,
        like: &Like<'l>,
        levels: usize,
    ) -> Vec<String> {
        let key = plain::text(key);
        let rendered = self.beside(&key, value, indent, siblings, like, levels);
        let separator = if rendered.head.is_empty() { "" } else { " " };
        let first = format!("{}{key}:{separator}{}", " ".repeat(indent), rendered.head);
        [first].into_iter().chain(rendered.tail).collect()
    }

    /// Lines for `- value`, with the dash in column `indent`.
    pub(super) fn item(&self, value: &Json, indent: usize, like: &Like<'l>, levels: usize) -> Vec<String> {
        let rendered = self.after_dash(value, indent, like, levels);
        let first = format!("{}- {}", " ".repeat(indent), rendered.head);
        [first].into_iter().chain(rendered.tail).collect()
    }

    /// The value of a key in column `indent`.
    pub(super) fn beside(
        &self,
        key: &str,
        value: &Json,
        indent: usize,
        siblings: &Like<'l>,
        like: &Like<'l>,
        levels: usize,
    ) -> Rendered {
        let room = WIDTH.saturating_sub(indent + key.len() + 2);
        if let Some(block) =
            self.inline_or_text(value, indent + self.indentation.step, room, siblings, like, levels)
        {
            return block;
        }
        let tail = match value {
            Json::Object(map) => {
                self.mapping(map, indent + self.indentation.step, like, levels.saturating_sub(1))
            }
            Json::Array(items) => {
                self.list(items, indent + self.indentation.dash, like, levels.saturating_sub(1))
            }
            _ => Vec::new(),
        };
        Rendered { head: String::new(), tail }
    }

    /// The value behind a dash in column `indent`.
    pub(super) fn after_dash(&self, value: &Json, indent: usize, like: &Like<'l>, levels: usize) -> Rendered {
        let room = WIDTH.saturating_sub(indent + 2);
        if let Some(block) = self.inline_or_text(value, indent + 2, room, like, like, levels) {
            return block;
        }
        let mut lines = match value {
            Json::Object(map) => self.mapping(map, indent + 2, like, levels.saturating_sub(1)),
            Json::Array(items) => self.list(items, indent + 2, like, levels.saturating_sub(1)),
            _ => Vec::new(),
        }
        .into_iter();
        let head = lines.next().unwrap_or_default().trim_start().to_owned();
        Rendered { head, tail: lines.collect() }
    }

    /// Unless it takes lines of its own.
    fn inline_or_text(
        &self,
        value: &Json,
        indent: usize,
        room: usize,
        siblings: &Like<'l>,
        like: &Like<'l>,
        levels: usize,
    ) -> Option<Rendered> {
        match value {
            Json::Object(map) if map.is_empty() => {}
            Json::Array(items) if items.is_empty() => {}
            Json::Object(_) | Json::Array(_) => {
                let text = flow(value);
                let fits = text.len() <= room && depth(value) <= DEPTH && !has_lines(value);
                let wanted = like.flow(self.layout).or_else(|| siblings.flow(self.layout));
                let is_words = value.is_array() && depth(value) == 1;
                if !(fits && wanted.unwrap_or(levels == 0 || is_words)) {
                    return None;
                }
                return Some(Rendered { head: text, tail: Vec::new() });
            }
            Json::String(text) => {
                if let Some((header, lines)) = plain::block_text(text) {
                    let pad = " ".repeat(indent);
                    let indented =
                        |line: &str| if line.is_empty() { String::new() } else { format!("{pad}{line}") };
                    return Some(Rendered {
                        head: header.to_owned(),
                        tail: lines.into_iter().map(indented).collect(),
                    });
                }
            }
            _ => {}
        }
        Some(Rendered { head: flow(value), tail: Vec::new() })
    }

    pub(super) fn mapping(
        &self,
        map: &Map<String, Json>,
        indent: usize,
        like: &Like<'l>,
        levels: usize,
    ) -> Vec<String> {
        let siblings = like.inside();
        map.iter()
            .flat_map(|(key, value)| self.entry(key, value, indent, &siblings, &like.named(key), levels))
            .collect()
    }

    pub(super) fn list(&self, items: &[Json], indent: usize, like: &Like<'l>, levels: usize) -> Vec<String> {
        items.iter().flat_map(|item| self.item(item, indent, &like.inside(), levels)).collect()
    }
}

/// With brackets, in one line.
pub(super) fn flow(value: &Json) -> String {
    match value {
        Json::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", plain::text(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::String(text) => plain::text(text),
        other => other.to_string(),
    }
}

/// A scalar with the quotes that the old one has.
pub(super) fn like_quoted(layout: &Layout<'_>, old: &Node, value: &Json) -> String {
    let begin = &layout.text[old.at.start..];
    match value {
        Json::String(text) if begin.starts_with('\'') && !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        Json::String(text) if begin.starts_with('"') => plain::quoted(text),
        other => flow(other),
    }
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn has_lines(value: &Json) -> bool {
    match value {
        Json::Object(map) => map.values().any(has_lines),
        Json::Array(items) => items.iter().any(has_lines),
        Json::String(text) => text.contains('\n'),
        _ => false,
    }
}

/// Whether a new value may take lines of its own there.
pub(super) fn takes_lines(holder: &Holder, in_flow: bool) -> bool {
    !in_flow && !matches!(holder, Holder::FlowItem)
}
