//! Scalars of several lines: blocks behind `|` and `>`, and text that goes on in the next line.

use saphyr_parser::ScalarStyle;

use crate::token::{block_base, line_end};
use crate::tree::Scalar;

/// The lines of a scalar, the first without indentation, and whether the blank lines behind the last are part of its text.
pub(crate) fn lines(text: &str, scalar: &Scalar, indent: usize) -> (Vec<String>, bool) {
    let written = &text[scalar.at.start..scalar.at.end];
    let pad = " ".repeat(indent);
    if !matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) {
        let is_plain = scalar.style == ScalarStyle::Plain;
        let line = |(index, line): (usize, &str)| {
            let line = if index == 0 { line } else { line.trim_start() };
            let line = if is_plain { line.trim_end() } else { line };
            if index == 0 || line.is_empty() { line.to_owned() } else { format!("{pad}{line}") }
        };
        return (written.split('\n').enumerate().map(line).collect(), false);
    }
    let signs = written.split([' ', '\n']).next().unwrap_or_default();
    // A number says how far its lines are indented, which is a step now.
    let header: String = signs.chars().map(|sign| if sign.is_ascii_digit() { '2' } else { sign }).collect();
    let base = block_base(text, scalar.at.start, &scalar.text).unwrap_or(0);
    let mut lines = vec![header];
    let head = line_end(text, scalar.at.start);
    if let Some(content) = text.get(head + 1..scalar.at.end) {
        let line = |line: &str| match line.get(base..).filter(|rest| !rest.is_empty()) {
            Some(rest) => format!("{pad}{rest}"),
            None => String::new(),
        };
        lines.extend(content.split('\n').map(line));
    }
    (lines, signs.contains('+'))
}
