//! The lines of a text in the layout: two spaces for each level, lists below their key, one blank line at most.
//!
//! The order of keys is its author's: it says what matters, and no order of ours would say it better.

use crate::align::{self, Line};
use crate::token::{Comment, Token, Tokens, column, is_first, line_end, line_start};
use crate::tree::{Document, Item, Kind, Node};
use crate::{block, flow};

/// What stands in brackets goes into lines of its own from here on.
pub const WIDTH: usize = 120;

const STEP: usize = 2;

pub(crate) fn write(text: &str, documents: &[Document], found: &Tokens) -> String {
    let (tokens, comments) = (&found.tokens, &found.comments);
    let mut layout = Layout { text, tokens, comments, lines: Vec::new(), kept: false, fresh: true };
    for document in documents {
        if let Some(begin) = document.begin {
            layout.open(begin.start, 0);
            layout.add("---");
            layout.trail(begin.end);
            layout.fresh = true;
        }
        if let Some(root) = &document.root {
            layout.root(root);
        }
    }
    layout.comments_before(text.len(), 0);
    align::join(&layout.lines)
}

struct Layout<'t> {
    text: &'t str,
    tokens: &'t [Token],
    /// Those that are not written yet.
    comments: &'t [Comment],
    lines: Vec<Line>,
    /// The blank lines behind the last value are part of it.
    kept: bool,
    /// At the beginning of a document, where no blank line stands.
    fresh: bool,
}

impl<'t> Layout<'t> {
    fn add(&mut self, written: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.text.push_str(written);
        }
    }

    /// The column where the next thing in this line would stand.
    fn width(&self) -> usize {
        self.lines.last().map_or(0, |line| line.text.chars().count())
    }

    fn line(&mut self, at: usize, indent: usize) {
        let above = line_start(self.text, at).checked_sub(1).map(|end| line_start(self.text, end));
        let is_blank =
            above.is_some_and(|above| self.text[above..line_end(self.text, above)].trim().is_empty());
        if is_blank && !self.kept && !self.fresh && is_first(self.text, at) {
            self.lines.push(Line::default());
        }
        (self.kept, self.fresh) = (false, false);
        self.lines.push(Line { text: " ".repeat(indent), ..Line::default() });
    }

    /// The comments before a place, each in a line of its own.
    fn comments_before(&mut self, at: usize, indent: usize) {
        while let Some(comment) = self.take_comment(|comment| comment.start < at) {
            self.line(comment.start, indent);
            self.add(&self.text[comment.start..comment.end]);
        }
    }

    fn take_comment(&mut self, wanted: impl Fn(&Comment) -> bool) -> Option<Comment> {
        let (first, rest) = self.comments.split_first()?;
        wanted(first).then(|| {
            self.comments = rest;
            *first
        })
    }

    /// A new line for what stands at a place, with the comments before it.
    fn open(&mut self, at: usize, indent: usize) {
        self.comments_before(at, indent);
        self.line(at, indent);
    }

    /// The comment in the same line behind a place.
    fn trail(&mut self, at: usize) {
        let text = self.text;
        let found = self.take_comment(|comment| {
            comment.start >= at && !comment.alone && !text[at..comment.start].contains('\n')
        });
        if let (Some(comment), Some(line)) = (found, self.lines.last_mut()) {
            let before = &text[line_start(text, comment.start)..comment.start];
            line.comment = text[comment.start..comment.end].to_owned();
            line.gap = (before.len() - before.trim_end().len()).max(1);
            line.column = column(text, comment.start);
        }
    }

    /// Comments behind the last entry of a block, up to the next thing in the text: the column says whose they are.
    fn comments_inside(&mut self, within: usize, next: usize, indent: usize) {
        let text = self.text;
        while let Some(comment) = self.take_comment(|comment| {
            comment.start < next && (!comment.alone || column(text, comment.start) >= within)
        }) {
            self.line(comment.start, indent);
            self.add(&text[comment.start..comment.end]);
        }
    }

    fn root(&mut self, root: &Node) {
        match &root.kind {
            Kind::Sequence { .. } | Kind::Mapping { .. } if self.one_line(root, 0).is_none() => {
                if !root.properties.is_empty() {
                    self.open(root.start, 0);
                    self.add(&flow::properties(self.text, root).join(" "));
                    self.trail(root.properties.last().map_or(root.start, |last| last.end));
                }
                self.children(root, 0, None, false);
            }
            _ => {
                self.open(root.start, 0);
                self.inline(root, 0);
            }
        }
    }

    /// The value in one line, if it may stand so behind what is written in this one.
    fn one_line(&self, node: &Node, before: usize) -> Option<String> {
        let text = flow::line(self.text, node, false)?;
        let in_brackets = matches!(node.kind, Kind::Sequence { .. } | Kind::Mapping { .. });
        let is_empty = matches!(text.as_str(), "[]" | "{}");
        let mut before_end = self.comments.iter().take_while(|comment| comment.start < node.end);
        let commented = before_end.any(|comment| comment.start >= node.start);
        let fits = is_empty || before + text.chars().count() <= WIDTH;
        (!in_brackets || (fits && (is_empty || !commented))).then_some(text)
    }

    /// A value that begins in this line; `indent` is the column of what holds it.
    fn inline(&mut self, node: &Node, indent: usize) {
        if let Some(line) = flow::line(self.text, node, false) {
            self.add(&line);
        } else if let Kind::Scalar(scalar) = &node.kind {
            for property in flow::properties(self.text, node) {
                self.add(&format!("{property} "));
            }
            let (lines, kept) = block::lines(self.text, scalar, indent + STEP);
            let mut lines = lines.into_iter();
            self.add(&lines.next().unwrap_or_default());
            // The comment of a block stands in its first line.
            self.trail(scalar.at.start);
            self.lines.extend(lines.map(|text| Line { text, ..Line::default() }));
            self.kept = kept;
        }
        self.trail(node.end);
    }

    /// What stands behind a `:` or a `-` that ends at `after`.
    fn value(&mut self, node: &Node, holder: Holder, indent: usize) {
        let Holder { start, after, is_item } = holder;
        let before = self.width() + 1;
        let is_block = matches!(node.kind, Kind::Sequence { .. } | Kind::Mapping { .. })
            && self.one_line(node, before).is_none();
        if !is_block {
            let comes_first = self.comments.first().is_some_and(|one| one.start < node.content());
            if comes_first && !matches!(node.kind, Kind::Empty) && node.properties.is_empty() {
                self.trail(after);
                self.open(node.start, indent + STEP);
            } else if !matches!(node.kind, Kind::Empty) || !node.properties.is_empty() {
                self.add(" ");
            }
            return self.inline(node, indent);
        }
        for property in flow::properties(self.text, node) {
            self.add(&format!(" {property}"));
        }
        let opened = match &node.kind {
            Kind::Sequence { brackets: Some(brackets), .. }
            | Kind::Mapping { brackets: Some(brackets), .. } => brackets.open,
            _ => node.properties.last().map_or(after, |last| last.end),
        };
        let first = first_of(node);
        let commented = self.comments.first().is_some_and(|one| one.start < first);
        let compact = is_item && node.properties.is_empty() && !commented;
        if compact {
            self.add(" ");
        } else {
            self.trail(opened);
        }
        self.children(node, indent + STEP, Some(start), compact);
    }

    /// Where the next thing stands that is no comment.
    fn next_token(&self, at: usize) -> usize {
        let next = self.tokens.partition_point(|token| token.start < at);
        self.tokens.get(next).map_or(self.text.len(), |token| token.start)
    }

    fn children(&mut self, node: &Node, indent: usize, holder: Option<usize>, mut compact: bool) {
        let (brackets, first) = match &node.kind {
            Kind::Sequence { brackets, items } => {
                for Item { start, after, node } in items {
                    if !std::mem::take(&mut compact) {
                        self.open(*start, indent);
                    }
                    self.add("-");
                    self.value(node, Holder { start: *start, after: *after, is_item: true }, indent);
                }
                (brackets, items.first().map(|item| item.start))
            }
            Kind::Mapping { brackets, entries } => {
                for (key, value) in entries {
                    if !std::mem::take(&mut compact) {
                        self.open(key.start, indent);
                    }
                    self.add(&flow::key(self.text, key, false).unwrap_or_default());
                    self.add(":");
                    self.value(value, Holder { start: key.start, after: key.end, is_item: false }, indent);
                }
                (brackets, entries.first().map(|(key, _)| key.start))
            }
            _ => return,
        };
        match brackets {
            Some(brackets) => self.comments_inside(0, brackets.close, indent),
            None => {
                let columns = (first, holder.map(|holder| column(self.text, holder) + 1));
                // A list may stand in the column of its key: a comment there is not the list's.
                let within =
                    columns.0.map_or(0, |first| column(self.text, first)).max(columns.1.unwrap_or(0));
                let next = self.next_token(node.end);
                self.comments_inside(within, next, indent);
            }
        }
        if brackets.is_some() {
            self.trail(node.end);
        }
    }
}

/// What a value hangs on: a key or a `-`.
struct Holder {
    start: usize,
    /// Behind its name or sign.
    after: usize,
    is_item: bool,
}

/// Where the first entry begins.
fn first_of(node: &Node) -> usize {
    match &node.kind {
        Kind::Sequence { items, .. } => items.first().map_or(node.start, |item| item.start),
        Kind::Mapping { entries, .. } => entries.first().map_or(node.start, |(key, _)| key.start),
        _ => node.start,
    }
}
