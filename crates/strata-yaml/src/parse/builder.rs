//! Grows the tree from events, expands aliases and merge keys, and finds duplicate keys.

use std::collections::HashMap;

use strata_diagnostics::{Diagnostic, Diagnostics, Span};

use super::{MAX_ALIASED, MAX_DEPTH, MAX_NODES};
use crate::scalar::Scalar;
use crate::{Entry, Kind, Mapping, Node, Spanned};

pub(super) struct Builder<'d> {
    diagnostics: &'d mut Diagnostics,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    ended: bool,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    aliased: usize,
}

/// A list or mapping that has begun and not ended.
struct Open {
    anchor: usize,
    start: Span,
    items: Items,
    nodes: usize,
    height: usize,
}

enum Items {
    List(Vec<Node>),
    /// The entries so far, and the key whose value comes next.
    Mapping(Vec<Entry>, Option<Spanned<String>>),
}

#[derive(Clone)]
struct Anchored {
    node: Node,
    nodes: usize,
    height: usize,
}

impl<'d> Builder<'d> {
    pub(super) fn new(diagnostics: &'d mut Diagnostics) -> Self {
        Self {
            diagnostics,
            open: Vec::new(),
            root: None,
            documents: 0,
            ended: false,
            anchors: HashMap::new(),
            nodes: 0,
            aliased: 0,
        }
    }

    /// True once nothing that follows can matter.
    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    pub(super) fn finish(self) -> Option<Node> {
        self.root
    }

    /// The innermost `{` or `[` that is open; a block has no such mark, and an empty start.
    pub(super) fn bracket(&self) -> Option<Span> {
        self.open.iter().rev().map(|open| open.start).find(|start| !start.is_empty())
    }

    pub(super) fn document(&mut self, span: Span) -> bool {
        self.documents += 1;
        if self.documents > 1 {
            let problem =
                Diagnostic::error("second-document", "a second document begins here; this file takes one")
                    .at(span)
                    .hint("move it to a file of its own, or remove the `---`");
            self.diagnostics.push(problem);
            self.ended = true;
        }
        true
    }

    pub(super) fn tag(&mut self, tag: Option<String>, known: bool, span: Span) {
        if let Some(tag) = tag.filter(|_| !known) {
            let hint = match tag.as_str() {
                "!vault" => {
                    "keep encrypted values in a `*.vault.yaml` file and refer to them with `{secret: name}`"
                }
                _ => "remove the tag",
            };
            self.diagnostics.push(
                Diagnostic::error("unknown-tag", format!("the tag `{tag}` means nothing here"))
                    .at(span)
                    .hint(hint),
            );
        }
    }

    pub(super) fn scalar(&mut self, scalar: Scalar, anchor: usize, span: Span) -> bool {
        self.complete(
            Anchored { node: Node { span, kind: Kind::Scalar(scalar) }, nodes: 1, height: 1 },
            anchor,
        )
    }

    pub(super) fn open(&mut self, mapping: bool, anchor: usize, start: Span) -> bool {
        if self.open.len() >= MAX_DEPTH {
            self.diagnostics.push(too_deep(start));
            return false;
        }
        let items = if mapping { Items::Mapping(Vec::new(), None) } else { Items::List(Vec::new()) };
        self.open.push(Open { anchor, start, items, nodes: 1, height: 1 });
        true
    }

    pub(super) fn close(&mut self, end: Span) -> bool {
        let Some(open) = self.open.pop() else { return true };
        // A block ends where the next token begins, which may be many lines on: end it with its last value.
        let span = match &open.items {
            _ if !end.is_empty() => open.start.to(end),
            Items::List(items) => items.last().map_or(open.start, |last| open.start.to(last.span)),
            Items::Mapping(entries, _) => {
                entries.last().map_or(open.start, |last| open.start.to(last.key.span).to(last.value.span))
            }
        };
        let kind = match open.items {
            Items::List(items) => Kind::List(items),
            Items::Mapping(entries, _) => Kind::Mapping(self.mapping(entries)),
        };
        self.complete(
            Anchored { node: Node { span, kind }, nodes: open.nodes, height: open.height + 1 },
            open.anchor,
        )
    }

    pub(super) fn alias(&mut self, anchor: usize, span: Span) -> bool {
        let Some(anchored) = self.anchors.get(&anchor).cloned() else {
            let problem =
                Diagnostic::error("syntax", "this alias stands inside the value that it repeats").at(span);
            self.diagnostics.push(problem);
            return false;
        };
        self.aliased += anchored.nodes;
        if self.aliased > MAX_ALIASED {
            let message = format!("the aliases of this file repeat more than {MAX_ALIASED} values");
            self.diagnostics.push(Diagnostic::error("too-large", message).at(span));
            return false;
        }
        if self.open.len() + anchored.height > MAX_DEPTH {
            self.diagnostics.push(too_deep(span));
            return false;
        }
        self.complete(anchored, 0)
    }

    /// Puts a finished value where it belongs.
    fn complete(&mut self, done: Anchored, anchor: usize) -> bool {
        self.nodes += 1;
        if self.nodes + self.aliased > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values");
            self.diagnostics.push(Diagnostic::error("too-large", message).at(done.node.span));
            return false;
        }
        if anchor != 0 {
            // The copy counts like an alias: anchors in anchors in anchors would multiply the tree.
            self.aliased += done.nodes;
            self.anchors.insert(anchor, done.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(done.node);
            return true;
        };
        open.nodes += done.nodes;
        open.height = open.height.max(done.height);
        match &mut open.items {
            Items::List(items) => items.push(done.node),
            Items::Mapping(entries, key) => match key.take() {
                Some(key) => entries.push(Entry { key, value: done.node }),
                None => match done.node.kind {
                    Kind::Scalar(scalar) => *key = Some(Spanned::new(scalar.text, done.node.span)),
                    _ => {
                        let problem = Diagnostic::error(
                            "syntax",
                            format!("a key must be text, found {}", done.node.describe()),
                        )
                        .at(done.node.span);
                        self.diagnostics.push(problem);
                        return false;
                    }
                },
            },
        }
        true
    }

    /// Checks the keys of a finished mapping and expands its merge key.
    fn mapping(&mut self, entries: Vec<Entry>) -> Mapping {
        let mut seen: HashMap<String, Span> = HashMap::with_capacity(entries.len());
        let mut kept = Vec::with_capacity(entries.len());
        let mut merges = Vec::new();
        for entry in entries {
            if let Some(first) = seen.get(&entry.key.value) {
                let key = crate::scalar::shorten(&entry.key.value);
                let problem = Diagnostic::error("duplicate-key", format!("the key `{key}` is here twice"))
                    .at_with(entry.key.span, "again here")
                    .also(*first, "first here");
                let hint = if key == "<<" {
                    "write one `<<` with a list: `<<: [*a, *b]`"
                } else {
                    "keep one of them"
                };
                self.diagnostics.push(problem.hint(hint));
                continue;
            }
            seen.insert(entry.key.value.clone(), entry.key.span);
            if entry.key.value == "<<" { merges.push(entry) } else { kept.push(entry) }
        }
        for merge in merges {
            for source in self.merge_sources(merge) {
                for entry in source.entries {
                    if !seen.contains_key(&entry.key.value) {
                        seen.insert(entry.key.value.clone(), entry.key.span);
                        kept.push(entry);
                    }
                }
            }
        }
        Mapping { entries: kept }
    }

    /// The mappings that a merge key names, the first of which wins.
    fn merge_sources(&mut self, merge: Entry) -> Vec<Mapping> {
        let candidates = match merge.value.kind {
            Kind::List(items) => items,
            kind => vec![Node { span: merge.value.span, kind }],
        };
        let mut sources = Vec::new();
        for candidate in candidates {
            match candidate.kind {
                Kind::Mapping(mapping) => sources.push(mapping),
                _ => {
                    let message =
                        format!("`<<` takes a mapping or a list of mappings, found {}", candidate.describe());
                    self.diagnostics.push(
                        Diagnostic::error("wrong-type", message)
                            .at(candidate.span)
                            .also(merge.key.span, "merged here"),
                    );
                }
            }
        }
        sources
    }
}

fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error("too-deep", format!("lists and mappings are nested more than {MAX_DEPTH} deep"))
        .at(span)
}
