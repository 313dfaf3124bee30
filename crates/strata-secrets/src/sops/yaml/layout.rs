//! The mappings and lists of a document with their places in the text, before comments are sorted in.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::sops::SopsError;
use crate::sops::tree::Slot;
use crate::value::Value;
use crate::yaml::resolve::{resolve_plain, resolve_tagged};
use crate::yaml::scan::{Event, Scalar, Scanned, Style};
use crate::yaml::write::Spot;
use crate::yaml::{MOST_VALUES, YamlError, line_of};

/// An index into [`Layout::boxes`].
pub(super) type BoxId = usize;

/// A mapping or list.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) list: bool,
    pub(super) flow: bool,
    /// Where its keys or dashes stand. A list whose dashes stand below its key has none of its own.
    pub(super) column: Option<usize>,
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    pub(super) items: Vec<Placed>,
    /// Where it was opened and closed, for one in brackets or braces.
    pub(super) opened: usize,
    pub(super) closed: usize,
    /// The brackets around it.
    pub(super) inside: Option<BoxId>,
    /// It stands elsewhere, and an alias repeats it here.
    pub(super) is_copy: bool,
}

/// A key with its value, or an item of a list.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) at: usize,
    /// Of an item of a list that is not in brackets.
    pub(super) dash: Option<usize>,
    pub(super) key: String,
    pub(super) content: Content,
    /// The end of the last scalar in it.
    pub(super) end: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Container(BoxId),
    Value(Slot),
}

/// A value in the text.
#[derive(Clone)]
pub(super) struct ValueSlot {
    pub(super) value: Value,
    pub(super) place: ValuePlace,
}

#[derive(Debug, Clone)]
pub(super) enum ValuePlace {
    Scalar {
        /// What an encrypted value takes the place of: the scalar, and a tag of YAML's own.
        span: Range<usize>,
        block: Option<Range<usize>>,
        spot: Spot,
        /// Of an item of a list: from its dash on, if dash and item are on one line.
        item: Option<Range<usize>>,
    },
    /// Written somewhere else, and named here by an alias at this place.
    Alias(Slot),
}

pub(super) struct Layout {
    pub(super) boxes: Vec<Container>,
    /// `None` is the slot of a comment or of an alias; those are kept elsewhere.
    pub(super) slots: Vec<Option<ValueSlot>>,
    /// Where each alias stands, and what it means.
    pub(super) aliases: Vec<(Slot, Range<usize>, Content)>,
    /// For each document: its outermost mapping, or `None` if it is empty.
    pub(super) roots: Vec<Root>,
    /// For each event that is a scalar or alias: the mappings and lists around it, outermost first.
    pub(super) around: HashMap<usize, Vec<BoxId>>,
}

pub(super) struct Root {
    pub(super) container: Option<BoxId>,
    /// Where its marker stands, or its first content.
    pub(super) at: usize,
    /// Its events, from start to end.
    pub(super) events: Range<usize>,
    /// An explicit null in place of a mapping.
    pub(super) null: Option<Range<usize>>,
}

pub(super) fn lay_out(text: &str, scanned: &Scanned) -> Result<Layout, SopsError> {
    let events = scanned.events.as_slice();
    let mut builder = Builder {
        text,
        events,
        dashes: &scanned.dashes,
        next: 0,
        layout: Layout {
            boxes: Vec::new(),
            slots: Vec::new(),
            aliases: Vec::new(),
            roots: Vec::new(),
            around: HashMap::new(),
        },
        anchors: HashMap::new(),
        stack: Vec::new(),
        inside_alias: None,
        dash: None,
    };
    while builder.next < events.len() {
        builder.document()?;
    }
    Ok(builder.layout)
}

struct Builder<'t> {
    text: &'t str,
    events: &'t [Event],
    dashes: &'t HashMap<usize, usize>,
    next: usize,
    layout: Layout,
    anchors: HashMap<usize, Content>,
    stack: Vec<BoxId>,
    inside_alias: Option<Slot>,
    /// The dash of the item that is read next.
    dash: Option<usize>,
}

impl Builder<'_> {
    fn document(&mut self) -> Result<(), SopsError> {
        let first = self.next;
        let at = match &self.events[first] {
            Event::DocumentStart { at } => *at,
            _ => 0,
        };
        self.next += 1;
        let (mut container, mut null) = (None, None);
        self.anchors.clear();
        while let Some(event) = self.events.get(self.next) {
            match event {
                Event::DocumentEnd => {
                    self.next += 1;
                    break;
                }
                Event::DocumentStart { .. } => break,
                Event::Start { list: false, .. } => {
                    container = match self.node(&[], Spot::Flow)?.0 {
                        Content::Container(id) => Some(id),
                        Content::Value(_) => None,
                    };
                }
                Event::Scalar(scalar) if self.value(scalar)? == Value::Null => {
                    if !scalar.span.is_empty() {
                        null = Some(scalar.span.clone());
                    }
                    self.next += 1;
                }
                _ => return Err(SopsError::NotAMapping),
            }
        }
        self.layout.roots.push(Root { container, at, events: first..self.next, null });
        Ok(())
    }

    /// Reads the node at the next event: its content, where it starts and where its last scalar ends.
    fn node(&mut self, path: &[String], spot: Spot) -> Result<(Content, usize, usize), SopsError> {
        let index = self.next;
        self.next += 1;
        match &self.events[index] {
            Event::Scalar(scalar) => {
                self.layout.around.insert(index, self.stack.clone());
                let slot = self.add_slot(Some(ValueSlot {
                    value: self.value(scalar)?,
                    place: self.place(scalar, spot),
                }))?;
                self.anchors.insert(scalar.anchor, Content::Value(slot));
                let end = scalar.block.as_ref().map_or(scalar.span.end, |block| block.end);
                Ok((Content::Value(slot), scalar.span.start, end))
            }
            Event::Alias { anchor, span } => {
                self.layout.around.insert(index, self.stack.clone());
                let meant = self
                    .anchors
                    .get(anchor)
                    .cloned()
                    .ok_or(YamlError::Layout { line: self.line(span.start) })?;
                let slot = self.add_slot(None)?;
                self.inside_alias = Some(slot);
                let content = self.copy(&meant, path)?;
                self.inside_alias = None;
                self.layout.aliases.push((slot, span.clone(), content.clone()));
                Ok((content, span.start, span.end))
            }
            Event::Start { list, flow, anchor } => {
                let (content, start, end) = self.container(*list, *flow, path)?;
                // Known only from here on, so that nothing can contain itself.
                self.anchors.insert(*anchor, content.clone());
                Ok((content, start, end))
            }
            Event::DocumentStart { .. } | Event::DocumentEnd | Event::End { .. } => {
                Err(SopsError::NotAMapping)
            }
        }
    }

    fn container(
        &mut self,
        list: bool,
        bracket: Option<usize>,
        path: &[String],
    ) -> Result<(Content, usize, usize), SopsError> {
        let id = self.layout.boxes.len();
        let (flow, opened) = (bracket.is_some(), bracket.unwrap_or_default());
        let inside = self.stack.iter().rev().copied().find(|id| self.layout.boxes[*id].flow);
        let container = Container {
            list,
            flow,
            column: None,
            path: path.to_vec(),
            items: Vec::new(),
            opened,
            closed: 0,
            inside,
            is_copy: false,
        };
        self.layout.boxes.push(container);
        let parent_column = self.stack.iter().rev().find_map(|parent| self.layout.boxes[*parent].column);
        if !flow {
            // A list whose dashes stand below its key has no column of its own.
            let dash = self.dashes.get(&self.next).map(|dash| self.column(*dash));
            let own = if list {
                dash.filter(|dash| Some(*dash) != parent_column)
            } else {
                Some(self.column(self.upcoming()))
            };
            self.layout.boxes[id].column = own;
        }
        self.stack.push(id);
        let (mut start, mut end) = (usize::MAX, 0);
        let mut keys = HashSet::new();
        loop {
            if let Some(Event::End { at }) = self.events.get(self.next) {
                self.next += 1;
                self.layout.boxes[id].closed = *at;
                break;
            }
            let placed = if list { self.item(flow, path)? } else { self.entry(&mut keys, flow, path)? };
            start = start.min(placed.at);
            end = end.max(placed.end);
            self.layout.boxes[id].items.push(placed);
        }
        self.stack.pop();
        let closed = self.layout.boxes[id].closed;
        Ok((Content::Container(id), start.min(closed), if flow { closed + 1 } else { end }))
    }

    fn item(&mut self, flow: bool, path: &[String]) -> Result<Placed, SopsError> {
        let at = self.upcoming();
        let dash = self.dashes.get(&self.next).copied();
        let spot = match dash {
            Some(dash) if !flow && self.on_one_line(dash, at) => Spot::Item(self.column(dash)),
            _ => Spot::Flow,
        };
        self.dash = dash;
        let (content, start, end) = self.node(path, spot)?;
        Ok(Placed { at: start, dash, key: String::new(), content, end })
    }

    fn entry(
        &mut self,
        keys: &mut HashSet<String>,
        flow: bool,
        path: &[String],
    ) -> Result<Placed, SopsError> {
        let index = self.next;
        let key = match &self.events[index] {
            Event::Scalar(key) => key,
            Event::Alias { span, .. } => return Err(SopsError::KeyNotText { line: self.line(span.start) }),
            _ => return Err(SopsError::KeyNotText { line: self.line(self.upcoming()) }),
        };
        self.next += 1;
        self.layout.around.insert(index, self.stack.clone());
        let Some(name) = self.value(key)?.as_str().map(str::to_owned) else {
            return Err(SopsError::KeyNotText { line: self.line(key.span.start) });
        };
        if !keys.insert(name.clone()) {
            return Err(SopsError::DuplicateKey { line: self.line(key.span.start), key: name });
        }
        self.anchors.remove(&key.anchor);
        let below: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        let value_at = self.upcoming();
        let column = self.column(key.span.start);
        let spot =
            if !flow && self.on_one_line(key.span.end, value_at) { Spot::Value(column) } else { Spot::Flow };
        let (content, _, end) = self.node(&below, spot)?;
        Ok(Placed { at: key.span.start, dash: None, key: name, content, end: end.max(key.span.end) })
    }

    /// Where the next scalar stands.
    fn upcoming(&self) -> usize {
        self.events[self.next..]
            .iter()
            .find_map(|event| match event {
                Event::Scalar(scalar) => Some(scalar.span.start),
                Event::Alias { span, .. } => Some(span.start),
                Event::End { at } => Some(*at),
                _ => None,
            })
            .unwrap_or(self.text.len())
    }

    fn value(&self, scalar: &Scalar) -> Result<Value, SopsError> {
        let value = match (&scalar.tag, scalar.style) {
            (Some(tag), _) if tag.is_own() => resolve_tagged(&tag.name, &scalar.text),
            (_, Style::Plain) if scalar.tag.is_none() => resolve_plain(&scalar.text),
            _ => Ok(Value::text(scalar.text.as_str())),
        };
        value.map_err(|_| SopsError::NotAValue { line: self.line(scalar.span.start) })
    }

    fn place(&self, scalar: &Scalar, spot: Spot) -> ValuePlace {
        let start =
            scalar.tag.as_ref().filter(|tag| tag.is_own()).map_or(scalar.span.start, |tag| tag.span.start);
        let item = match spot {
            Spot::Item(_) => self.dash.map(|dash| dash..scalar.span.end),
            _ => None,
        };
        ValuePlace::Scalar { span: start..scalar.span.end, block: scalar.block.clone(), spot, item }
    }

    fn add_slot(&mut self, slot: Option<ValueSlot>) -> Result<Slot, SopsError> {
        if self.layout.slots.len() >= MOST_VALUES {
            return Err(YamlError::TooLarge { most: MOST_VALUES }.into());
        }
        self.layout.slots.push(slot);
        Ok(self.layout.slots.len() - 1)
    }

    /// What an alias means at the place where it stands: the same values under another path.
    fn copy(&mut self, content: &Content, path: &[String]) -> Result<Content, SopsError> {
        match content {
            Content::Value(slot) => {
                let alias = self.inside_alias.unwrap_or_default();
                let value = self.layout.slots[*slot].as_ref().map_or(Value::Null, |slot| slot.value.clone());
                Ok(Content::Value(self.add_slot(Some(ValueSlot { value, place: ValuePlace::Alias(alias) }))?))
            }
            Content::Container(id) => {
                let mut copy = self.layout.boxes[*id].clone();
                copy.path = path.to_vec();
                copy.is_copy = true;
                for item in &mut copy.items {
                    let mut below = path.to_vec();
                    if !copy.list {
                        below.push(item.key.clone());
                    }
                    item.content = self.copy(&item.content, &below)?;
                }
                self.add_slot(None)?;
                self.layout.boxes.push(copy);
                Ok(Content::Container(self.layout.boxes.len() - 1))
            }
        }
    }

    fn on_one_line(&self, from: usize, to: usize) -> bool {
        !self.text[from.min(to)..to].contains('\n')
    }

    fn column(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at].chars().count()
    }

    fn line(&self, at: usize) -> usize {
        line_of(self.text, at)
    }
}
