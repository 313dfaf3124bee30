//! Writing changed values back into the text of a YAML file.

use std::collections::HashSet;
use std::ops::Range;

use super::{Content, MetadataPlace, Replacement, Replacements, ValuePlace, Writing, YamlFile, metadata};
use crate::sops::SopsError;
use crate::sops::metadata::Meta;
use crate::sops::tree::Slot;
use crate::value::Value;
use crate::yaml::write::{self, Spot, Written};
use crate::yaml::{YamlError, line_of};

/// Parts of the text and what takes their place.
#[derive(Default)]
struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    fn put(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.0.push((range, text.into()));
    }

    fn apply(mut self, text: &str) -> String {
        // Stable, so that what is inserted at one place stays in order.
        self.0.sort_by_key(|(range, _)| range.start);
        let mut result = String::with_capacity(text.len());
        let mut done = 0;
        for (range, replacement) in self.0 {
            result.push_str(&text[done..range.start.max(done)]);
            result.push_str(&replacement);
            done = range.end.max(done);
        }
        result.push_str(&text[done..]);
        result
    }
}

pub(super) fn render(
    file: &YamlFile,
    replacements: &Replacements,
    meta: Option<&Meta>,
    writing: Writing,
) -> Result<String, SopsError> {
    let mut edits = Edits::default();
    let only_comments = lists_of_comments(file, replacements);
    for (slot, replacement) in replacements {
        match slot.checked_sub(file.layout.slots.len()) {
            Some(index) => comment(file, index, replacement, &mut edits),
            None => {
                let lead = if only_comments.contains(slot) { "[] " } else { "" };
                value(file, *slot, replacement, (lead, writing), &mut edits)?;
            }
        }
    }
    let replaced = replaced_aliases(file, replacements);
    for (slot, span, content) in &file.layout.aliases {
        if replaced.contains(slot) {
            edits.put(span.clone(), flow(file, content, replacements));
        }
    }
    for document in 0..file.documents.len() {
        if let Some(place) = &file.metadata[document] {
            remove_metadata(file, place, &mut edits);
        }
        match meta {
            Some(meta) => add_metadata(file, document, meta, &mut edits),
            None => keep_a_mapping(file, document, &mut edits),
        }
    }
    Ok(edits.apply(&file.text))
}

fn comment(file: &YamlFile, index: usize, replacement: &Replacement, edits: &mut Edits) {
    if let Replacement::Comment(text) = replacement {
        edits.put(file.comments[index].clone(), format!("#{text}"));
    }
}

fn value(
    file: &YamlFile,
    slot: Slot,
    replacement: &Replacement,
    (lead, writing): (&str, Writing),
    edits: &mut Edits,
) -> Result<(), SopsError> {
    let place = file.layout.slots[slot].as_ref().map(|slot| &slot.place);
    let Some(ValuePlace::Scalar { span, block, spot, item }) = place else { return Ok(()) };
    match replacement {
        Replacement::Token(token) => {
            let text = if *spot == Spot::Flow { format!("\"{token}\"") } else { token.clone() };
            edits.put(span.clone(), text);
        }
        Replacement::Value(value) => {
            let written = write_value(file, value, span.end, *spot, writing);
            edits.put(span.clone(), written.head);
            if !written.block.is_empty() {
                let line_end =
                    file.text[span.end..].find(['\n', '\r']).map_or(file.text.len(), |end| span.end + end);
                edits.put(line_end..line_end, written.block);
            }
        }
        Replacement::Comment(text) => {
            // A comment that SOPS wrote as an item of a list becomes a line of its own again.
            let item = item.clone().ok_or(YamlError::Layout { line: line_of(&file.text, span.start) })?;
            edits.put(item, format!("{lead}#{text}"));
        }
    }
    if let Some(block) = block {
        edits.put(block.clone(), "");
    }
    Ok(())
}

fn write_value(file: &YamlFile, value: &Value, end: usize, spot: Spot, writing: Writing) -> Written {
    let written = write::write(value, spot, writing == Writing::Usual);
    if written.block.is_empty() || has_room(&file.text, end, &written) {
        return written;
    }
    write::write(value, spot, false)
}

/// Whether the lines of a block would stay apart from the lines that follow.
fn has_room(text: &str, end: usize, written: &Written) -> bool {
    let mut below = text[end..].lines().skip(1);
    let keeps = written.head.ends_with('+');
    let indent = written.block.split('\n').find(|line| !line.is_empty()).map_or(0, leading_blanks);
    let Some(next) = below.next() else { return true };
    if keeps && next.trim().is_empty() {
        return false;
    }
    let next = if next.trim().is_empty() {
        below.find(|line| !line.trim().is_empty()).unwrap_or_default()
    } else {
        next
    };
    !(next.trim_start().starts_with('#') && leading_blanks(next) >= indent)
}

fn leading_blanks(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The first item of each list that has nothing but comments. It must stay a list, if an empty one.
fn lists_of_comments(file: &YamlFile, replacements: &Replacements) -> HashSet<Slot> {
    let is_comment = |content: &Content| match content {
        Content::Value(slot) => matches!(replacements.get(slot), Some(Replacement::Comment(_))),
        Content::Container(_) => false,
    };
    let lists = file.layout.boxes.iter().filter(|container| container.list && !container.items.is_empty());
    let only = lists.filter(|list| list.items.iter().all(|item| is_comment(&item.content)));
    let first = only.filter_map(|list| match list.items.first()?.content {
        Content::Value(slot) => Some(slot),
        Content::Container(_) => None,
    });
    first.collect()
}

/// The aliases that stand for a value that was replaced, so that they have to be written out.
fn replaced_aliases(file: &YamlFile, replacements: &Replacements) -> HashSet<Slot> {
    let alias = |slot: &Slot| match file.layout.slots.get(*slot)?.as_ref()?.place {
        ValuePlace::Alias(alias) => Some(alias),
        ValuePlace::Scalar { .. } => None,
    };
    replacements.keys().filter_map(alias).collect()
}

/// A part of the tree on one line, for an alias that is written out.
fn flow(file: &YamlFile, content: &Content, replacements: &Replacements) -> String {
    match content {
        Content::Value(slot) => match replacements.get(slot) {
            Some(Replacement::Token(token)) => format!("\"{token}\""),
            Some(Replacement::Value(value)) => write::write(value, Spot::Flow, false).head,
            _ => write::write(&file.value(*slot), Spot::Flow, false).head,
        },
        Content::Container(id) => {
            let container = &file.layout.boxes[*id];
            let items = container.items.iter().map(|item| {
                let value = flow(file, &item.content, replacements);
                if container.list { value } else { format!("{}: {value}", write::double_quoted(&item.key)) }
            });
            let items = items.collect::<Vec<_>>().join(", ");
            if container.list { format!("[{items}]") } else { format!("{{{items}}}") }
        }
    }
}

fn remove_metadata(file: &YamlFile, place: &MetadataPlace, edits: &mut Edits) {
    let text = &file.text;
    if place.flow {
        let before = text[..place.span.start].trim_end();
        let range = if before.ends_with(',') {
            before.len() - 1..place.span.end
        } else {
            let after = &text[place.span.end..];
            let comma = after.len() - after.trim_start().len();
            place.span.start..place.span.end + if after.trim_start().starts_with(',') { comma + 1 } else { 0 }
        };
        edits.put(range, "");
        return;
    }
    let start = text[..place.span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[place.span.end..].find('\n').map_or(text.len(), |newline| place.span.end + newline + 1);
    // A document may start on the line of its marker: `--- sops: …`.
    let start = if text[start..place.span.start].trim().is_empty() { start } else { place.span.start };
    edits.put(start..end, "");
}

fn add_metadata(file: &YamlFile, document: usize, meta: &Meta, edits: &mut Edits) {
    let root = &file.layout.roots[document];
    if let Some(null) = &root.null {
        edits.put(null.clone(), "");
    }
    let container = root.container.map(|id| &file.layout.boxes[id]);
    if let Some(container) = container.filter(|container| container.flow) {
        let others = container.items.iter().any(|item| item.key != super::SOPS);
        let comma = if others && !trails_comma(file, container.closed) { ", " } else { "" };
        edits.put(container.closed..container.closed, format!("{comma}\"sops\": {}", metadata::flow(meta)));
        return;
    }
    let at = document_end(file, document);
    let lead = if at == 0 || file.text[..at].ends_with('\n') { "" } else { "\n" };
    edits.put(at..at, format!("{lead}{}", metadata::block(meta)));
}

fn trails_comma(file: &YamlFile, closed: usize) -> bool {
    file.text[..closed].trim_end().ends_with(',')
}

/// Where a document ends: before the marker of the next, or at the end of the text.
fn document_end(file: &YamlFile, document: usize) -> usize {
    let text = &file.text;
    let content = match file.layout.roots[document].container {
        Some(id) => file.layout.boxes[id].items.last().map_or(0, |item| item.end),
        None => match &file.layout.roots[document].null {
            Some(null) => null.end,
            None => first_content(file, document),
        },
    };
    let mut at = text[content..].find('\n').map_or(text.len(), |newline| content + newline + 1);
    for line in text[at..].split_inclusive('\n') {
        if line.starts_with("---") || line.starts_with("...") {
            break;
        }
        at += line.len();
    }
    at
}

/// The end of the marker of an empty document.
fn first_content(file: &YamlFile, document: usize) -> usize {
    let mut markers = 0;
    let mut at = 0;
    for line in file.text.split_inclusive('\n') {
        if line.starts_with("---") {
            markers += 1;
            if markers > document {
                return at + 3;
            }
        }
        at += line.len();
    }
    0
}

/// A document that had nothing but metadata is an empty mapping without it, as in SOPS.
fn keep_a_mapping(file: &YamlFile, document: usize, edits: &mut Edits) {
    let Some(place) = &file.metadata[document] else { return };
    let only = file.layout.roots[document].container.is_some_and(|id| file.layout.boxes[id].items.len() == 1);
    if only && !place.flow {
        edits.put(place.span.start..place.span.start, "{}\n");
    }
}
