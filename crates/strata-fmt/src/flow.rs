//! Values in one line, with brackets.

use crate::scalar;
use crate::tree::{Kind, Node};

/// The value in one line, with its properties; `None` where it takes several.
pub(crate) fn line(text: &str, node: &Node, in_flow: bool) -> Option<String> {
    let mut out: Vec<String> = properties(text, node);
    match &node.kind {
        Kind::Empty => {}
        Kind::Alias(at) => out.push(text[at.start..at.end].to_owned()),
        Kind::Scalar(one) => out.push(scalar::line(text, one, in_flow, !node.properties.is_empty())?),
        Kind::Sequence { brackets, items } => {
            if brackets.is_none() && !items.is_empty() {
                return None;
            }
            let items: Option<Vec<String>> = items.iter().map(|item| line(text, &item.node, true)).collect();
            out.push(format!("[{}]", items?.join(", ")));
        }
        Kind::Mapping { brackets, entries } => {
            if brackets.is_none() && !entries.is_empty() {
                return None;
            }
            let entry = |(key, value): &(Node, Node)| {
                let key = self::key(text, key, true)?;
                let value = line(text, value, true)?;
                Some(if value.is_empty() { key } else { format!("{key}: {value}") })
            };
            let entries: Option<Vec<String>> = entries.iter().map(entry).collect();
            out.push(format!("{{{}}}", entries?.join(", ")));
        }
    }
    Some(out.join(" "))
}

/// The name of a value. Behind an alias, a space keeps the `:` from being part of its name.
pub(crate) fn key(text: &str, node: &Node, in_flow: bool) -> Option<String> {
    let name = line(text, node, in_flow)?;
    Some(if matches!(node.kind, Kind::Alias(_)) { format!("{name} ") } else { name })
}

pub(crate) fn properties(text: &str, node: &Node) -> Vec<String> {
    node.properties.iter().map(|at| text[at.start..at.end].to_owned()).collect()
}
