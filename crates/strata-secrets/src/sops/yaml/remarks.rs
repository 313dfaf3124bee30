//! Which mapping or list a comment belongs to.
//!
//! An encrypted comment is bound to the path of its mapping, and `sops` finds that path with the rules of its YAML
//! library. Those rules are rebuilt here as far as the path goes: by the column of the comment, and by what stands
//! before and after it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::layout::{BoxId, Layout, Root};
use crate::sops::tree::additional;
use crate::yaml::scan::Event;

/// Lines of comments that are looked at together.
const LONGEST_BLOCK: usize = 100;

/// A comment and its home.
pub(super) struct AttachedComment {
    pub(super) span: Range<usize>,
    /// The document it is in.
    pub(super) document: usize,
    /// `None` for a document without a mapping.
    pub(super) home: Option<BoxId>,
    /// It comes before whatever starts here or later.
    pub(super) at: usize,
    /// The paths that it may have been bound to.
    pub(super) neighbours: Vec<String>,
}

/// A comment on a line of its own, and what is above and below it.
struct Lines<'r> {
    /// All comments before it.
    above: &'r [Range<usize>],
    /// The comment itself, and all that follow.
    remarks: &'r [Range<usize>],
    /// Where the last scalar before it ends.
    last_end: usize,
    /// Where the next scalar starts.
    next: Option<usize>,
    /// Where the document ends. The metadata stands there, or will stand, in the first column.
    end: usize,
}

/// Where a comment between two blocks belongs.
enum Tie {
    /// To what stands before it.
    Before,
    /// To what stands after it.
    After,
    /// To the block that starts in its column.
    Column,
    /// To where the next comment further out belongs.
    Following,
}

#[derive(PartialEq)]
enum Group {
    First,
    /// A later one, in the same column as the first.
    Again,
    /// A later one, with comments in other columns before it.
    Other,
}

/// What stands around the comments of a file.
struct Surroundings<'l> {
    text: &'l str,
    layout: &'l Layout,
    /// Events with scalars that take room, in order, with their places.
    scalars: Vec<(usize, Range<usize>)>,
    /// Everything in brackets, by where it was opened, and by where it was closed.
    opened: Vec<(usize, BoxId)>,
    closed: HashMap<usize, BoxId>,
}

pub(super) fn attach(
    text: &str,
    events: &[Event],
    remarks: &[Range<usize>],
    layout: &Layout,
) -> Vec<AttachedComment> {
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
    let flow =
        || layout.boxes.iter().enumerate().filter(|(_, container)| container.flow && !container.is_copy);
    let mut opened: Vec<(usize, BoxId)> = flow().map(|(id, container)| (container.opened, id)).collect();
    opened.sort_unstable();
    let closed = flow().map(|(id, container)| (container.closed, id)).collect();
    let surroundings = Surroundings { text, layout, scalars, opened, closed };
    (0..remarks.len()).filter_map(|index| surroundings.attach(remarks, index)).collect()
}

impl Surroundings<'_> {
    fn attach(&self, remarks: &[Range<usize>], index: usize) -> Option<AttachedComment> {
        let remark = &remarks[index];
        let at = remark.start;
        let document = self.document(at)?;
        let root = &self.layout.roots[document];
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        // A comment in the head of a block stands before the end of that block.
        let split = self.scalars.partition_point(|(_, span)| span.start < at);
        let before = self.scalars[..split].last().filter(|(index, _)| root.events.contains(index));
        let after = self.scalars[split..].first().filter(|(index, _)| root.events.contains(index));
        let mut outer_before = self.around(before, root);
        let outer_after = self.around(after, root);
        let mut candidates: BTreeSet<BoxId> = outer_before.iter().chain(&outer_after).copied().collect();
        self.leave_closed(&mut outer_before, at);
        let follows = before.is_some_and(|(_, span)| line_start <= span.end.min(at));
        let (home, order) = if let Some((id, start)) = self.just_closed(line_start, at) {
            (Some(id), start)
        } else if let Some(id) = self.brackets(at) {
            (Some(id), at)
        } else if follows && !is_blank(&self.text[line_start..at]) {
            let home = outer_before.last().copied();
            let items = home.map_or(&[][..], |home| &self.layout.boxes[home].items);
            let item = items[..items.partition_point(|item| item.at <= at)].last();
            (home, item.map_or(at, |item| item.at))
        } else {
            let last_end = before.map_or(0, |(_, span)| span.end);
            let next = after.map(|(_, span)| span.start);
            let end = self.layout.roots.get(document + 1).map_or(self.text.len(), |root| root.at);
            let lines = Lines { above: &remarks[..index], remarks: &remarks[index..], last_end, next, end };
            (self.home(&outer_before, &outer_after, &lines), at)
        };
        let home = home.or(root.container);
        candidates.extend(home);
        let paths: BTreeSet<String> =
            candidates.iter().map(|id| additional(&self.layout.boxes[*id].path)).collect();
        let neighbours = paths.into_iter().chain([additional::<&str>(&[])]).collect();
        Some(AttachedComment { span: remark.clone(), document, home, at: order, neighbours })
    }

    /// The mappings and lists around a scalar; around the root if there is none.
    fn around(&self, scalar: Option<&(usize, Range<usize>)>, root: &Root) -> Vec<BoxId> {
        let found = scalar.and_then(|(index, _)| self.layout.around.get(index));
        found.cloned().unwrap_or_else(|| root.container.into_iter().collect())
    }

    /// A comment before an explicit start of a document is still part of the one before.
    fn document(&self, at: usize) -> Option<usize> {
        let roots: &[Root] = &self.layout.roots;
        let index = roots.partition_point(|root| root.at < at);
        if index == 0 { (!roots.is_empty()).then_some(0) } else { Some(index - 1) }
    }

    /// The brackets that end directly before a comment on the same line: it belongs to what is in them.
    fn just_closed(&self, line_start: usize, at: usize) -> Option<(BoxId, usize)> {
        let before = self.text[line_start..at].trim_end();
        if !before.ends_with([']', '}']) {
            return None;
        }
        let closed = line_start + before.len() - 1;
        let id = *self.closed.get(&closed)?;
        Some((id, self.layout.boxes[id].items.first().map_or(closed, |item| item.at)))
    }

    /// The innermost brackets around a place.
    fn brackets(&self, at: usize) -> Option<BoxId> {
        let index = self.opened.partition_point(|(opened, _)| *opened < at);
        let mut candidate = index.checked_sub(1).map(|index| self.opened[index].1);
        while let Some(id) = candidate.filter(|id| self.layout.boxes[*id].closed < at) {
            candidate = self.layout.boxes[id].inside;
        }
        candidate
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

    /// The home of a comment on a line of its own.
    fn home(&self, before: &[BoxId], after: &[BoxId], lines: &Lines<'_>) -> Option<BoxId> {
        let boxes = &self.layout.boxes;
        let at = lines.remarks[0].start;
        let common = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        if common == before.len() {
            // What follows is beside or inside: the comment is above it, before its dash if it has one.
            let inner = after[common.saturating_sub(1)..].iter().copied();
            let mut below = inner.filter(|id| {
                let is_new = !before[..common].contains(id);
                if boxes[*id].list { self.has_dash_after(*id, at) } else { is_new }
            });
            return below.next().or(after.last().copied());
        }
        // What follows is further out. A list whose dashes stand below its key does not end by indentation.
        let ended: Vec<BoxId> = before.iter().copied().filter(|id| boxes[*id].column.is_some()).collect();
        let last = *ended.last()?;
        let outer = before[..common].last().copied();
        if before[..common].contains(&last) {
            return if self.is_foot(lines) { before.last().copied() } else { Some(last) };
        }
        match self.tie(lines, boxes[last].column.unwrap_or_default()) {
            Tie::Before => before.last().copied(),
            Tie::After => outer,
            tie => {
                let column = match tie {
                    Tie::Following => self.next_column(lines),
                    _ => Some(self.column(at)),
                };
                let aligned = ended.iter().rev().find(|id| column.is_some() && boxes[**id].column == column);
                aligned.copied().filter(|aligned| !before[..common].contains(aligned)).or(outer)
            }
        }
    }

    /// What a comment is tied to, where the block before it, in this column, has ended.
    fn tie(&self, lines: &Lines<'_>, indent: usize) -> Tie {
        let column = self.column(lines.remarks[0].start);
        let group = self.group(lines, column);
        if column >= indent {
            return if group == Group::Again { Tie::Following } else { Tie::Before };
        }
        let mut detached = self.has_empty_line(lines.last_end, lines.remarks[0].start);
        // A block of comments beyond this length is cut; its end would be looked for again from each of its lines.
        for (index, remark) in lines.remarks.iter().enumerate().take(LONGEST_BLOCK) {
            let following = lines.remarks.get(index + 1).map(|remark| remark.start);
            let following = following.filter(|start| *start < lines.next.unwrap_or(lines.end));
            let next = following.or(lines.next).unwrap_or(lines.end);
            if !detached && self.has_empty_line(remark.end, next) {
                return Tie::Column;
            }
            detached |= self.has_empty_line(remark.end, next);
            let next_column = if next >= lines.end { 0 } else { self.column(self.token_start(next)) };
            if next_column != column {
                return match group {
                    Group::First => Tie::Before,
                    Group::Again => Tie::After,
                    Group::Other => Tie::Column,
                };
            }
            if following.is_none() {
                break;
            }
        }
        Tie::After
    }

    /// The column of the next comment before the next scalar that stands further out.
    fn next_column(&self, lines: &Lines<'_>) -> Option<usize> {
        let own = self.column(lines.remarks[0].start);
        let end = lines.next.unwrap_or(lines.end);
        let later = lines.remarks.iter().skip(1).take(LONGEST_BLOCK).take_while(|remark| remark.start < end);
        later.map(|remark| self.column(remark.start)).find(|column| *column < own)
    }

    /// Whether a comment stands directly below what came before, and apart from what follows.
    fn is_foot(&self, lines: &Lines<'_>) -> bool {
        let column = self.column(lines.remarks[0].start);
        let starts = lines.remarks.iter().map(|remark| remark.start).filter(|start| *start < lines.end);
        let next = lines.next.unwrap_or(lines.end);
        let mut group_end = lines.remarks[0].end;
        for (start, remark) in starts.zip(lines.remarks).skip(1).take(LONGEST_BLOCK) {
            if start >= next || self.has_empty_line(group_end, start) {
                break;
            }
            group_end = remark.end;
        }
        let after = lines.remarks.iter().map(|remark| remark.start).find(|start| *start > group_end);
        let after = after.filter(|start| *start < next).unwrap_or(next);
        let top = self.above(lines).last().map_or(lines.remarks[0].start, |first| first.start);
        self.group(lines, column) == Group::First
            && !self.has_empty_line(lines.last_end, top)
            && self.has_empty_line(group_end, after)
    }

    /// The comments on lines of their own between a comment and what came before, nearest first.
    fn above<'r>(&self, lines: &Lines<'r>) -> impl Iterator<Item = &'r Range<usize>> {
        let above = lines.above.iter().rev().take(LONGEST_BLOCK);
        let above = above.take_while(|remark| remark.start >= lines.last_end);
        above.filter(|remark| self.token_start(remark.start) == remark.start)
    }

    /// Which group of comments since the last scalar a comment in this column is in. An empty line ends a group
    /// that started directly below the scalar, and so does another column.
    fn group(&self, lines: &Lines<'_>, column: usize) -> Group {
        let mut below = &lines.remarks[0];
        let (mut has_gap, mut other) = (false, false);
        for remark in self.above(lines) {
            other |= self.column(remark.start) != column;
            has_gap |= self.has_empty_line(remark.end, below.start);
            below = remark;
        }
        if other {
            Group::Other
        } else if has_gap && !self.has_empty_line(lines.last_end, below.start) {
            Group::Again
        } else {
            Group::First
        }
    }

    /// Where the line's first token stands, which is the dash before an item.
    fn token_start(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &self.text[line..];
        line + rest.len() - rest.trim_start_matches(' ').len()
    }

    fn column(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at].chars().count()
    }

    fn has_empty_line(&self, from: usize, to: usize) -> bool {
        let lines: Vec<&str> = self.text[from.min(to)..to].split('\n').collect();
        let inner = lines.len().checked_sub(1).and_then(|end| lines.get(1..end)).unwrap_or_default();
        inner.iter().any(|line| line.trim().is_empty())
    }

    /// Whether the first item of a list after this place has its dash after it, too.
    fn has_dash_after(&self, list: BoxId, at: usize) -> bool {
        let items = &self.layout.boxes[list].items;
        let next = items.get(items.partition_point(|item| item.at <= at));
        next.is_some_and(|item| item.dash.is_none_or(|dash| dash > at))
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '-']).is_empty()
}
