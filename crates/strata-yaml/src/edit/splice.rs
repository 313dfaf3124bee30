//! The edits themselves: which bytes go, and what comes in their place.

use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::layout::{Found, Holder, Kind, Layout, Node};
use super::place::{
    above_comments, begins_line, column, comment_after, dash_before, ends_line, line_end, line_start,
    next_line, past_comments,
};
use super::render::{Like, Rendered, Writer, flow, like_quoted, takes_lines};
use super::{EditError, EditPath, Step};

/// Bytes that are replaced.
struct Splice {
    at: Range<usize>,
    with: String,
}

impl Splice {
    fn new(at: Range<usize>, with: impl Into<String>) -> Self {
        Self { at, with: with.into() }
    }
}

fn spliced(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| (splice.at.start, splice.at.end));
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for splice in splices {
        out.push_str(&text[done..splice.at.start.max(done)]);
        out.push_str(&splice.with);
        done = splice.at.end.max(done);
    }
    out.push_str(&text[done..]);
    out
}

fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Whole lines before the line that begins at `at`.
fn lines_at(text: &str, at: usize, lines: &[String]) -> Splice {
    let newline = newline(text);
    let mut with = String::new();
    // The last line may lack its end.
    let unended = at == text.len() && !text.is_empty() && !text.ends_with('\n');
    if unended {
        with.push_str(newline);
    }
    with.push_str(&lines.join(newline));
    if !unended {
        with.push_str(newline);
    }
    Splice::new(at..at, with)
}

/// Sets a value for which there is no place yet. So many `levels` of it take lines of their own.
pub(super) fn insert(
    layout: &Layout<'_>,
    path: &[Step],
    value: &Json,
    levels: usize,
) -> Result<String, EditError> {
    for depth in (0..path.len()).rev() {
        let (parent, rest) = path.split_at(depth);
        let Some(found) = layout.find(parent)? else { continue };
        let Some((step, beyond)) = rest.split_first() else { break };
        let is_nothing = found.node.value().is_null() || found.node.is_empty_collection();
        if is_nothing && !(found.in_flow && found.node.is_empty_collection()) {
            return replace(layout, &found, path, &wrapped(rest, value), rest.len() + levels);
        }
        let value = wrapped(beyond, value);
        return match (step, &found.node.kind) {
            (Step::Key(key), Kind::Mapping(_)) => {
                Ok(insert_key(layout, found.node, found.in_flow, key, &value, rest.len() + levels))
            }
            (Step::Index(index), Kind::List(_)) => insert_item(layout, parent, *index, &value),
            (Step::Key(_), _) => Err(EditError::NotAMapping(EditPath::of(parent))),
            (Step::Index(_), _) => Err(EditError::NotAList(EditPath::of(parent))),
        };
    }
    // An empty file, or one with comments only.
    let writer = Writer::of(layout);
    let lines = match wrapped(path, value) {
        Json::Object(map) => writer.mapping(&map, 0, &Like::default(), path.len() + levels),
        Json::Array(items) => writer.list(&items, 0, &Like::default(), path.len() + levels),
        other => vec![flow(&other)],
    };
    Ok(spliced(layout.text, vec![lines_at(layout.text, layout.text.len(), &lines)]))
}

/// A value in the mappings and lists that lead to it.
fn wrapped(path: &[Step], value: &Json) -> Json {
    path.iter().rev().fold(value.clone(), |inner, step| match step {
        Step::Key(key) => Json::Object(Map::from_iter([(key.clone(), inner)])),
        Step::Index(_) => Json::Array(vec![inner]),
    })
}

fn insert_key(
    layout: &Layout<'_>,
    mapping: &Node,
    in_flow: bool,
    key: &str,
    value: &Json,
    levels: usize,
) -> String {
    let text = layout.text;
    let own = layout.own_entries(mapping);
    let ends: Vec<(usize, usize)> =
        own.iter().map(|(key, node)| (key.at.start, layout.end_of_entry(key, node))).collect();
    if in_flow || layout.is_flow(mapping) {
        let new = flow(&Json::Object(Map::from_iter([(key.to_owned(), value.clone())])));
        return into_flow(text, mapping, &ends, ends.len(), &new[1..new.len() - 1]);
    }
    let Some((first, (start, end))) = ends.first().map(|(first, _)| *first).zip(ends.last().copied()) else {
        // Every key came by `<<`: the new one stands in its column.
        let indent = column(text, mapping.at.start);
        let lines = Writer::of(layout).entry(key, value, indent, &Like::default(), &Like::default(), levels);
        return spliced(text, vec![lines_at(text, next_line(text, layout.end_of(mapping)), &lines)]);
    };
    let indent = column(text, first);
    let siblings = Like(own.iter().map(|(_, node)| *node).collect());
    let mut lines = Writer::of(layout).entry(key, value, indent, &siblings, &siblings, levels);
    let spaced =
        ends.len() > 1 && text[..above_comments(text, line_start(text, start))].ends_with_blank_line();
    if spaced && lines.len() > 1 {
        lines.insert(0, String::new());
    }
    let at = past_comments(text, next_line(text, end), indent);
    spliced(text, vec![lines_at(text, at, &lines)])
}

trait BlankLine {
    fn ends_with_blank_line(&self) -> bool;
}

impl BlankLine for str {
    fn ends_with_blank_line(&self) -> bool {
        self.strip_suffix('\n').is_some_and(|text| text.trim_end_matches([' ', '\r', '\t']).ends_with('\n'))
    }
}

/// A new item before the one with this index, or behind the last.
pub(super) fn insert_item(
    layout: &Layout<'_>,
    list: &[Step],
    index: usize,
    value: &Json,
) -> Result<String, EditError> {
    let text = layout.text;
    let path = EditPath::of(list);
    let Some(found) = layout.find(list)? else { return Err(EditError::Missing(path)) };
    let Kind::List(items) = &found.node.kind else { return Err(EditError::NotAList(path)) };
    if items.is_empty() && !found.in_flow {
        return replace(layout, &found, list, &Json::Array(vec![value.clone()]), 0);
    }
    if found.in_flow || layout.is_flow(found.node) {
        let ends: Vec<(usize, usize)> =
            items.iter().map(|item| (item.at.start, layout.end_of(item))).collect();
        return Ok(into_flow(text, found.node, &ends, index, &flow(value)));
    }
    let dashes: Option<Vec<usize>> = items.iter().map(|item| dash_before(text, item.at.start)).collect();
    let Some(dashes) = dashes else { return Err(EditError::NotEditable(path)) };
    let indent = column(text, dashes[0]);
    let lines = Writer::of(layout).item(value, indent, &Like(items.iter().collect()), 0);
    let at = match index.checked_sub(1).and_then(|before| items.get(before)) {
        Some(before) => {
            let behind = next_line(text, layout.end_of(before).max(dashes[index - 1]));
            if index == items.len() { past_comments(text, behind, indent) } else { behind }
        }
        None if begins_line(text, dashes[0]) => above_comments(text, line_start(text, dashes[0])),
        // `- - a`: the first dash shares its line.
        None => {
            let shared =
                format!("{}{}{}", lines.join(newline(text)).trim_start(), newline(text), " ".repeat(indent));
            return Ok(spliced(text, vec![Splice::new(dashes[0]..dashes[0], shared)]));
        }
    };
    Ok(spliced(text, vec![lines_at(text, at, &lines)]))
}

/// A new entry between brackets, in a line of its own where the others have theirs.
fn into_flow(text: &str, collection: &Node, entries: &[(usize, usize)], index: usize, new: &str) -> String {
    if let Some((next, _)) = entries.get(index) {
        return spliced(text, vec![Splice::new(*next..*next, format!("{new}, "))]);
    }
    let Some((start, end)) = entries.last().copied() else {
        let open = text[collection.at.start..]
            .find(['{', '['])
            .map_or(collection.at.start, |at| collection.at.start + at);
        return spliced(text, vec![Splice::new(open + 1..open + 1, new)]);
    };
    let comma = text[end..].trim_start().starts_with(',');
    let behind = if comma { end + text[end..].find(',').unwrap_or(0) + 1 } else { end };
    if !begins_line(text, start) || !ends_line(text, behind) {
        return spliced(text, vec![Splice::new(end..end, format!(", {new}"))]);
    }
    let pad = " ".repeat(column(text, start));
    let line = format!("{}{pad}{new}{}", newline(text), if comma { "," } else { "" });
    let at = line_end(text, behind);
    let mut splices = vec![Splice::new(at..at, line)];
    if !comma {
        splices.push(Splice::new(end..end, ","));
    }
    spliced(text, splices)
}

/// Another value in the place of one that is there.
pub(super) fn replace(
    layout: &Layout<'_>,
    found: &Found<'_>,
    path: &[Step],
    value: &Json,
    levels: usize,
) -> Result<String, EditError> {
    let text = layout.text;
    let node = found.node;
    let writer = Writer::of(layout);
    let beside = Like(
        found
            .parent
            .map(Node::children)
            .unwrap_or_default()
            .into_iter()
            .filter(|one| one.at != node.at)
            .collect(),
    );
    let (indent, behind) = match &found.holder {
        Holder::Root => return Ok(replace_root(layout, node, value)),
        Holder::Entry { key, colon } => (column(text, key.at.start), *colon),
        Holder::Item { dash } => (column(text, *dash), Some(dash + 1)),
        Holder::FlowItem => (0, Some(node.at.start)),
    };
    let is_scalar = !matches!(value, Json::Object(_) | Json::Array(_));
    let rendered = if !takes_lines(&found.holder, found.in_flow)
        || (layout.is_flow(node) && !node.is_empty_collection())
    {
        Rendered { head: flow(value), tail: Vec::new() }
    } else {
        match &found.holder {
            Holder::Item { .. } => writer.after_dash(value, indent, &beside, levels),
            Holder::Entry { key, .. } => writer.beside(&key.text, value, indent, &beside, &beside, levels),
            Holder::Root | Holder::FlowItem => Rendered { head: flow(value), tail: Vec::new() },
        }
    };
    let Some(behind) = behind else {
        // `{a, b}`: a key without a colon.
        let Holder::Entry { key, .. } = &found.holder else {
            return Err(EditError::NotEditable(EditPath::of(path)));
        };
        return Ok(spliced(text, vec![Splice::new(key.at.end..key.at.end, format!(": {}", rendered.head))]));
    };
    let is_empty =
        matches!(&node.kind, Kind::Scalar(scalar) if scalar.text.is_empty()) && node.value().is_null();
    let lies_below = !is_empty
        && (layout.is_block_scalar(node)
            || (is_block_collection(layout, node) && text[behind..node.at.start].contains('\n')));
    let head = match &rendered.head {
        head if head.is_empty() => String::new(),
        _ if is_scalar && rendered.tail.is_empty() && !is_empty && !lies_below => {
            like_quoted(layout, node, value)
        }
        head => head.clone(),
    };
    let spaced = if head.is_empty() { String::new() } else { format!(" {head}") };
    let (splices, line) = if is_empty {
        (vec![Splice::new(behind..behind, spaced)], behind)
    } else if lies_below {
        // What follows the key in its line stays if it is a comment; the `|` of a text goes.
        let first_line = line_end(text, behind);
        let comment = match text[behind..first_line].find(" #") {
            Some(at) => text[behind + at..first_line].to_owned(),
            None => comment_after(text, behind).to_owned(),
        };
        let end = line_end(text, layout.end_of(node));
        (vec![Splice::new(behind..end, spaced + &comment)], end)
    } else {
        let end = layout.end_of(node);
        // Nothing but its own space is before it, as it shares the line with its key.
        let start = if text[behind..node.at.start].trim().is_empty() && !found.in_flow {
            behind
        } else {
            node.at.start
        };
        let with = if start == node.at.start || found.in_flow { head } else { spaced };
        (vec![Splice::new(start..end, with)], end)
    };
    let mut splices = splices;
    if !rendered.tail.is_empty() {
        splices.push(lines_at(text, next_line(text, line), &rendered.tail));
    }
    Ok(spliced(text, splices))
}

fn is_block_collection(layout: &Layout<'_>, node: &Node) -> bool {
    !matches!(node.kind, Kind::Scalar(_)) && !layout.is_flow(node)
}

fn replace_root(layout: &Layout<'_>, root: &Node, value: &Json) -> String {
    let writer = Writer::of(layout);
    let lines = match value {
        // Behind `---`.
        value if !begins_line(layout.text, root.at.start) => vec![flow(value)],
        Json::Object(map) if !map.is_empty() => writer.mapping(map, 0, &Like::default(), 1),
        Json::Array(items) if !items.is_empty() => writer.list(items, 0, &Like::default(), 1),
        other => vec![flow(other)],
    };
    spliced(
        layout.text,
        vec![Splice::new(root.at.start..layout.end_of(root), lines.join(newline(layout.text)))],
    )
}

/// Takes a value out with its key or its dash.
pub(super) fn remove(layout: &Layout<'_>, path: &[Step]) -> Result<String, EditError> {
    let text = layout.text;
    let missing = || EditError::Missing(EditPath::of(path));
    let (_, above) = path.split_last().ok_or_else(missing)?;
    let holder = layout.find(above)?.ok_or_else(missing)?;
    let found = layout.find(path)?.ok_or_else(missing)?;
    // Each entry from its first byte to its last, and which of them goes.
    let entries: Vec<(usize, usize)> = match &holder.node.kind {
        Kind::Mapping(_) => {
            let own = layout.own_entries(holder.node);
            own.iter().map(|(key, node)| (key.at.start, layout.end_of_entry(key, node))).collect()
        }
        Kind::List(items) if found.in_flow => {
            items.iter().map(|item| (item.at.start, layout.end_of(item))).collect()
        }
        Kind::List(items) => {
            let dashed = |item: &Node| {
                let dash = dash_before(text, item.at.start)?;
                Some((dash, layout.end_of(item).max(dash + 1)))
            };
            items
                .iter()
                .map(dashed)
                .collect::<Option<_>>()
                .ok_or_else(|| EditError::NotEditable(EditPath::of(path)))?
        }
        Kind::Scalar(_) => return Err(missing()),
    };
    let start = match &found.holder {
        Holder::Entry { key, .. } => key.at.start,
        Holder::Item { dash } => *dash,
        Holder::FlowItem | Holder::Root => found.node.at.start,
    };
    let index = entries.iter().position(|(begin, _)| *begin == start).ok_or_else(missing)?;
    if found.in_flow {
        return Ok(spliced(text, vec![out_of_flow(text, &entries, index)]));
    }
    let end = entries[index].1;
    if entries.len() == 1 {
        return Ok(emptied(layout, &holder, start..end));
    }
    let lines = line_start(text, start)..next_line(text, end);
    if begins_line(text, start) && !text[lines.start..start].contains('\u{feff}') {
        return Ok(spliced(text, vec![Splice::new(lines, "")]));
    }
    // Behind a dash: what comes next takes its place there.
    let splice = match entries.get(index + 1) {
        Some((next, _)) if text[line_end(text, end)..*next].trim().is_empty() => {
            Splice::new(start..*next, "")
        }
        _ => {
            let from = start - (text[..start].len() - text[..start].trim_end_matches(' ').len());
            Splice::new(from..line_end(text, end), "")
        }
    };
    Ok(spliced(text, vec![splice]))
}

/// The last entry went: brackets say that nothing is in there.
fn emptied(layout: &Layout<'_>, holder: &Found<'_>, entry: Range<usize>) -> String {
    let text = layout.text;
    let empty = if matches!(holder.node.kind, Kind::List(_)) { "[]" } else { "{}" };
    match &holder.holder {
        Holder::Entry { colon: Some(colon), .. } if text[*colon..entry.start].contains('\n') => {
            let lines = line_start(text, entry.start)..next_line(text, entry.end);
            spliced(text, vec![Splice::new(*colon..*colon, format!(" {empty}")), Splice::new(lines, "")])
        }
        _ => spliced(text, vec![Splice::new(entry.start..line_end(text, entry.end), empty)]),
    }
}

fn out_of_flow(text: &str, entries: &[(usize, usize)], index: usize) -> Splice {
    let (start, end) = entries[index];
    let comma = text[end..].trim_start().starts_with(',');
    let behind = if comma { end + text[end..].find(',').unwrap_or(0) + 1 } else { end };
    if begins_line(text, start) && ends_line(text, behind) {
        return Splice::new(line_start(text, start)..next_line(text, behind), "");
    }
    match (entries.get(index + 1), index.checked_sub(1).and_then(|before| entries.get(before))) {
        (Some((next, _)), _) => Splice::new(start..*next, ""),
        (None, Some((_, before))) => Splice::new(*before..end, ""),
        (None, None) => Splice::new(start..behind, ""),
    }
}
