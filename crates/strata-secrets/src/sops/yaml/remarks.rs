//! Which mapping or list a comment belongs to.
//!
//! An encrypted comment is bound to the path of its mapping, and `sops` finds that path with the rules of its YAML
//! library. Those rules are rebuilt here as far as the path goes: by the column of the comment, and by what stands
//! before and after it.

use std::collections::HashMap;
use std::ops::Range;

use super::layout::{BoxId, Layout, Root};
use crate::sops::tree::additional;
use crate::yaml::scan::{Event, Remark};

/// A comment and its home.
pub(super) struct Settled {
    pub(super) span: Range<usize>,
    /// The document it is in.
    pub(super) document: usize,
    /// `None` for a document without a mapping.
    pub(super) home: Option<BoxId>,
    /// It comes before whatever starts here or later.
    pub(super) at: usize,
    pub(super) neighbours: Vec<String>,
}

/// The scalars before and after each event, within a document.
struct Neighbours<'l> {
    layout: &'l Layout,
    /// Events with scalars that take room, in order, with their places.
    scalars: Vec<(usize, Range<usize>)>,
}

pub(super) fn settle(text: &str, events: &[Event], remarks: &[Remark], layout: &Layout) -> Vec<Settled> {
    let place = |(index, event): (usize, &Event)| {
        let span = match event {
            Event::Scalar(scalar) => {
                scalar.span.start..scalar.block.as_ref().map_or(scalar.span.end, |block| block.end)
            }
            Event::Alias { span, .. } => span.clone(),
            _ => return None,
        };
        (!span.is_empty() && layout.around.contains_key(&index)).then_some((index, span))
    };
    let scalars = events.iter().enumerate().filter_map(place).collect();
    let neighbours = Neighbours { layout, scalars };
    remarks.iter().filter_map(|remark| neighbours.settle(text, remark)).collect()
}

impl Neighbours<'_> {
    fn settle(&self, text: &str, remark: &Remark) -> Option<Settled> {
        let document = self.document(remark.before)?;
        let root = &self.layout.roots[document];
        let at = remark.span.start;
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let column = text[line_start..at].chars().count();
        // A comment in the head of a block stands before the end of that block.
        let split = self.scalars.partition_point(|(_, span)| span.start < at);
        let within = |index: &usize| root.events.contains(index);
        let before = self.scalars[..split].last().filter(|(index, _)| within(index));
        let after = self.scalars[split..].first().filter(|(index, _)| within(index));
        let around = |scalar: Option<&(usize, Range<usize>)>| {
            let found = scalar.and_then(|(index, _)| self.layout.around.get(index));
            found.cloned().unwrap_or_else(|| root.container.into_iter().collect())
        };
        let (mut outer_before, outer_after) = (around(before), around(after));
        let neighbours = self.paths(&[&outer_before, &outer_after]);
        self.leave_closed(&mut outer_before, at);
        let inline =
            before.is_some_and(|(_, span)| line_start <= span.end.min(at)) && !blank(&text[line_start..at]);
        let (home, at) = if inline {
            let home = outer_before.last().copied();
            let item =
                home.and_then(|home| self.layout.boxes[home].items.iter().rev().find(|item| item.at <= at));
            (home, item.map_or(at, |item| item.at))
        } else {
            (self.home(text, &outer_before, &outer_after, column, at), at)
        };
        Some(Settled { span: remark.span.clone(), document, home: home.or(root.container), at, neighbours })
    }

    /// A comment before an explicit start of a document is still part of the one before.
    fn document(&self, event: usize) -> Option<usize> {
        let roots: &[Root] = &self.layout.roots;
        let index = roots.partition_point(|root| root.events.start < event);
        if index == 0 { (!roots.is_empty()).then_some(0) } else { Some(index - 1) }
    }

    /// Drops the brackets that were closed before the comment.
    fn leave_closed(&self, around: &mut Vec<BoxId>, at: usize) {
        while let Some(last) = around.last() {
            let container = &self.layout.boxes[*last];
            if !(container.flow && container.closed < at) {
                break;
            }
            around.pop();
        }
    }

    fn home(&self, text: &str, before: &[BoxId], after: &[BoxId], column: usize, at: usize) -> Option<BoxId> {
        let boxes = &self.layout.boxes;
        let common = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let innermost = *before.last()?;
        if common == before.len() {
            // What follows is beside or inside: the comment is above it, before its dash if it has one.
            let inner = after[common.saturating_sub(1)..].iter().copied();
            let mut below = inner.filter(|id| {
                let container = &boxes[*id];
                if container.list {
                    self.has_dash_after(text, *id, at)
                } else {
                    !before[..common].contains(id)
                }
            });
            return below.next().or(after.last().copied());
        }
        if boxes[innermost].flow {
            return Some(innermost);
        }
        // What follows is further out. A list whose dashes stand below its key does not end by indentation.
        let ended: Vec<BoxId> = before.iter().copied().filter(|id| boxes[*id].column.is_some()).collect();
        let last = *ended.last()?;
        if before[..common].contains(&last) || boxes[last].column.is_some_and(|start| column >= start) {
            return Some(last);
        }
        let aligned = ended.iter().rev().find(|id| boxes[**id].column == Some(column)).copied();
        let outer = before[..common].last().copied();
        match aligned {
            Some(aligned) if !before[..common.saturating_sub(1)].contains(&aligned) => Some(aligned),
            Some(_) => outer,
            None => Some(last),
        }
    }

    /// Whether the first item of a list after this place has its dash after it, too.
    fn has_dash_after(&self, text: &str, list: BoxId, at: usize) -> bool {
        let item = self.layout.boxes[list].items.iter().find(|item| item.at > at);
        item.is_some_and(|item| {
            let between = text[at..item.at].trim_end();
            between.ends_with('-') || self.layout.boxes[list].flow
        })
    }

    fn paths(&self, around: &[&Vec<BoxId>]) -> Vec<String> {
        let mut paths: HashMap<String, ()> = HashMap::new();
        for id in around.iter().flat_map(|ids| ids.iter()) {
            paths.insert(additional(&self.layout.boxes[*id].path), ());
        }
        paths.insert(additional::<&str>(&[]), ());
        let mut paths: Vec<String> = paths.into_keys().collect();
        paths.sort();
        paths
    }
}

fn blank(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '-']).is_empty()
}
