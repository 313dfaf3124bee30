//! Plain YAML in block style, from a tree of JSON; and back from a parsed file.

use std::fmt::Write as _;

use crate::{Node, Scalar, ScalarKind};
use serde_json::{Map, Value as Json};

/// The text of a document.
pub fn write(value: &Json) -> String {
    let mut out = String::new();
    match value {
        Json::Object(map) if !map.is_empty() => mapping(map, 0, &mut out),
        Json::Array(items) if !items.is_empty() => list(items, 0, &mut out),
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
    out
}

fn mapping(map: &Map<String, Json>, depth: usize, out: &mut String) {
    for (index, (key, value)) in map.iter().enumerate() {
        // The first line of an item of a list stands behind its dash.
        if index > 0 || !out.ends_with("- ") {
            out.push_str(&"  ".repeat(depth));
        }
        let _ = write!(out, "{}:", text(key));
        entry(value, depth, out);
    }
}

fn list(items: &[Json], depth: usize, out: &mut String) {
    for item in items {
        let _ = write!(out, "{}- ", "  ".repeat(depth));
        match item {
            Json::Object(map) if !map.is_empty() => mapping(map, depth + 1, out),
            Json::String(text) if text.contains('\n') => block(text, depth + 1, out),
            other => {
                let _ = writeln!(out, "{}", scalar(other));
            }
        }
    }
}

fn entry(value: &Json, depth: usize, out: &mut String) {
    match value {
        Json::Object(map) if !map.is_empty() => {
            out.push('\n');
            mapping(map, depth + 1, out);
        }
        Json::Array(items) if !items.is_empty() => {
            out.push('\n');
            list(items, depth + 1, out);
        }
        Json::String(text) if text.contains('\n') => {
            out.push(' ');
            block(text, depth + 1, out);
        }
        other => {
            let _ = writeln!(out, " {}", scalar(other));
        }
    }
}

/// Several lines as they are, where that is possible.
fn block(value: &str, depth: usize, out: &mut String) {
    let Some((header, lines)) = block_text(value) else {
        let _ = writeln!(out, "{}", Json::from(value));
        return;
    };
    out.push_str(header);
    out.push('\n');
    for line in lines {
        if line.is_empty() {
            out.push('\n');
        } else {
            let _ = writeln!(out, "{}{line}", "  ".repeat(depth));
        }
    }
}

/// Several lines as a block: its header, and its lines without indentation. `None` where quotes are needed.
pub(crate) fn block_text(value: &str) -> Option<(&'static str, Vec<&str>)> {
    let fits = value.contains('\n')
        && value.lines().next().is_some_and(|first| !first.is_empty() && !first.starts_with([' ', '\t']))
        && !value.chars().any(|letter| (letter.is_control() && letter != '\n') || is_invisible(letter));
    let header = match (value.ends_with('\n'), value.ends_with("\n\n")) {
        (false, _) => "|-",
        (true, false) => "|",
        (true, true) => "|+",
    };
    fits.then(|| (header, value.lines().collect()))
}

/// In double quotes, with everything escaped that a line cannot show.
pub(crate) fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            letter if letter.is_control() || is_invisible(letter) => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Line ends and marks that YAML gives a meaning of their own.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn scalar(value: &Json) -> String {
    match value {
        Json::String(value) => text(value),
        Json::Array(_) => "[]".to_owned(),
        Json::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Without quotes only where nothing else could be meant.
pub(crate) fn text(value: &str) -> String {
    let first =
        value.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, '/' | '.'));
    let plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/' | '+' | '=');
    let inner = value.char_indices().all(|(at, letter)| {
        plain(letter)
            || (letter == ' ' && !value.ends_with(' '))
            || (letter == ':' && value[at + 1..].starts_with(|next: char| plain(next) && next != ' '))
    });
    let word = matches!(Scalar::plain(value).kind(), ScalarKind::Text);
    let reserved = ["yes", "no", "on", "off", "y", "n", "true", "false", "null"];
    if first && inner && word && !reserved.contains(&value.to_ascii_lowercase().as_str()) {
        value.to_owned()
    } else {
        quoted(value)
    }
}

/// A parsed tree as JSON; `None` where it holds a reference, which may be a secret.
pub fn of_node(node: &Node) -> Option<Json> {
    if let Some(mapping) = node.as_mapping() {
        let is_reference = mapping.entries.len() == 1
            && matches!(mapping.entries[0].key.value.as_str(), "secret" | "env" | "file");
        if is_reference {
            return None;
        }
        let entries = mapping.entries.iter();
        let map: Option<Map<String, Json>> =
            entries.map(|entry| Some((entry.key.value.clone(), of_node(&entry.value)?))).collect();
        return map.map(Json::Object);
    }
    if let Some(items) = node.as_list() {
        return items.iter().map(of_node).collect::<Option<Vec<Json>>>().map(Json::Array);
    }
    node.as_scalar().map(of_scalar)
}

pub(crate) fn of_scalar(scalar: &Scalar) -> Json {
    match scalar.kind() {
        ScalarKind::Null => Json::Null,
        ScalarKind::Text => Json::String(scalar.text.clone()),
        _ => serde_json::from_str(&scalar.text.to_ascii_lowercase())
            .unwrap_or_else(|_| Json::String(scalar.text.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_is_written_in_blocks() {
        let value = json!({"a": "v1.2", "b": [{"c": 1, "d": ["x y", "no"]}, {"e": {}}], "f": "l1\nl2", "g": "1.5", "h": "https://x:1"});
        let text = write(&value);
        assert_eq!(
            text,
            "a: v1.2\nb:\n  - c: 1\n    d:\n      - x y\n      - \"no\"\n  - e: {}\nf: |-\n  l1\n  l2\ng: \"1.5\"\nh: https://x:1\n"
        );
    }
}
