//! A `nodes.yaml` that keeps machines as they were configured: a new one, or the user's own with more patches in it and nothing else
//! changed.

use crate::output::only;
use crate::records::NodesFile;
use std::collections::BTreeMap;

use strata_diagnostics::{Diagnostics, SourceMap, Span};
use strata_yaml::{Entry, Node, Parsed, parse};

use crate::output::Object;
use strata_yaml::plain;

/// The file that keeps machines as they were configured before.
pub fn nodes_file(nodes: Object) -> String {
    let text = plain::write(&only(NodesFile::nodes, nodes));
    format!(
        "# Keeps these machines as OpenTofu configured them. Take a patch out, and Strata configures that as it does by itself.\n{text}"
    )
}

/// The text of a user's own `nodes.yaml` with these files as the last patches of each node; nothing where it is written in a way that this cannot be put into.
pub fn with_patches(text: &str, patches: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let tree = read(text)?;
    let nodes = tree.as_mapping()?.entry(NodesFile::nodes.name())?;
    let mut edits: Vec<(usize, String)> = Vec::new();
    let mut absent = Vec::new();
    for (name, files) in patches {
        let files = files.join(", ");
        match nodes.value.as_mapping().and_then(|nodes| nodes.entry(name)) {
            None => absent.push(format!("{name}: {{patches: [{files}]}}")),
            Some(entry) => edits.push(match entry.value.get("patches") {
                Some(list) => into_list(text, list, &files)?,
                None => into_mapping(text, entry, &[format!("patches: [{files}]")])?,
            }),
        }
    }
    if !absent.is_empty() {
        edits.push(into_mapping(text, nodes, &absent)?);
    }
    // From the end to the start, so that what comes before stays where it was.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.0));
    let mut changed = text.to_owned();
    edits.iter().for_each(|(at, new)| changed.insert_str(*at, new));
    has_patches(&changed, patches).then_some(changed)
}

fn read(text: &str) -> Option<Node> {
    let mut sources = SourceMap::new();
    let file = sources.add("nodes.yaml", text);
    match parse(&sources, file, &mut Diagnostics::new()) {
        Parsed::Document(node) => Some(node),
        _ => None,
    }
}

/// Where more keys go into the value of an entry, and how they are written there.
fn into_mapping(text: &str, entry: &Entry, new: &[String]) -> Option<(usize, String)> {
    let value = &entry.value;
    let last = value.as_mapping().and_then(|mapping| mapping.entries.last()).map(|last| last.value.span);
    if let Some(end) = closed(text, value.span, last, '{', '}') {
        let is_empty = value.as_mapping().is_some_and(|mapping| mapping.entries.is_empty());
        let before = if is_empty { "" } else { ", " };
        return Some((end, format!("{before}{}", new.join(", "))));
    }
    if value.is_null() {
        let colon = entry.key.span.range().end;
        return text[colon..].starts_with(':').then(|| (colon + 1, format!(" {{{}}}", new.join(", "))));
    }
    // One line for each, before the first of those that are there.
    let first = value.as_mapping()?.entries.first()?.key.span.range().start;
    let line = text[..first].rfind('\n').map_or(0, |end| end + 1);
    let indent = &text[line..first];
    let lines: String = new.iter().map(|new| format!("{new}\n{indent}")).collect();
    indent.bytes().all(|byte| byte == b' ').then_some((first, lines))
}

fn into_list(text: &str, list: &Node, files: &str) -> Option<(usize, String)> {
    let items = list.as_list()?;
    let end = closed(text, list.span, items.last().map(|last| last.span), '[', ']')?;
    let before = if items.is_empty() { "" } else { ", " };
    Some((end, format!("{before}{files}")))
}

/// The place of the bracket that ends a value which is written in brackets; the last value in it ends before that.
fn closed(text: &str, span: Span, last: Option<Span>, open: char, close: char) -> Option<usize> {
    let span = span.range();
    let start = last.map_or(span.start + open.len_utf8(), |last| last.range().end);
    let end = start + text.get(start..)?.find(close)?;
    let between = &text[start..end];
    (text[span.start..].starts_with(open) && between.trim().is_empty()).then_some(end)
}

/// What was written must read back as it was meant.
fn has_patches(text: &str, patches: &BTreeMap<String, Vec<String>>) -> bool {
    let Some(tree) = read(text) else { return false };
    patches.iter().all(|(name, files)| {
        let list = tree.at(&["nodes", name, "patches"]).and_then(Node::as_list).unwrap_or_default();
        let found: Vec<&str> = list.iter().filter_map(|item| Some(item.as_scalar()?.text.as_str())).collect();
        found.ends_with(&files.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> Option<String> {
        let files = |name: &str| (name.to_owned(), vec![format!("patches/{name}.yaml")]);
        with_patches(text, &BTreeMap::from([files("a"), files("b")]))
    }

    #[test]
    fn patches_go_in_and_all_else_stays() {
        let text = "# ours\nnodes:\n  a: {memory: 1}   # small\n  c:\n    memory: 2\n";
        let now = "# ours\nnodes:\n  b: {patches: [patches/b.yaml]}\n  a: {memory: 1, patches: [patches/a.yaml]}   # small\n  c:\n    memory: 2\n";
        assert_eq!(changed(text).as_deref(), Some(now));
        let text = "nodes:\n  a:\n    # why\n    memory: 1\n  b:\n";
        let now = "nodes:\n  a:\n    # why\n    patches: [patches/a.yaml]\n    memory: 1\n  b: {patches: [patches/b.yaml]}\n";
        assert_eq!(changed(text).as_deref(), Some(now));
        let text = "nodes: {a: {patches: [own.yaml]}, b: {patches: []}}\n";
        let now = "nodes: {a: {patches: [own.yaml, patches/a.yaml]}, b: {patches: [patches/b.yaml]}}\n";
        assert_eq!(changed(text).as_deref(), Some(now));
        assert_eq!(
            changed("nodes: {}\n").as_deref(),
            Some("nodes: {a: {patches: [patches/a.yaml]}, b: {patches: [patches/b.yaml]}}\n")
        );
        // What is written otherwise is left to the user.
        assert_eq!(changed("nodes:\n  a:\n    patches:\n      - own.yaml\n"), None);
        assert_eq!(changed("nodes: [a]\n"), None);
        assert_eq!(changed("other: 1\n"), None);
    }
}
