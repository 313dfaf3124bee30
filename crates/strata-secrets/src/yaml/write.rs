//! Writing a scalar into YAML: the style that `sops` would choose, as long as it reads back as the same value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strata_yaml::go::{self, Fits};

use super::resolve::resolve_plain;
use crate::value::Value;

/// How far `sops` indents.
pub(crate) const STEP: usize = 4;

/// Where a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spot {
    /// As the value of a key; the column of its mapping.
    Value(usize),
    /// As an item of a list; the column of its dash.
    Item(usize),
    /// Inside brackets or braces, or where nothing but one line will do.
    Flow,
}

/// A scalar as text: what stands in the place of the value, and the lines below it, if it is a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written {
    pub(crate) head: String,
    /// Each line with the line break before it.
    pub(crate) block: String,
}

impl Written {
    fn inline(head: String) -> Self {
        Self { head, block: String::new() }
    }
}

/// Writes a value in the style of `sops`. With `blocks` off, text of several lines is quoted.
pub(crate) fn write(value: &Value, spot: Spot, blocks: bool) -> Written {
    Written::inline(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Time(time) => time.clone(),
        Value::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => return write_text(text, spot, blocks),
            Err(_) => format!("!!binary {}", STANDARD.encode(bytes)),
        },
    })
}

fn float(number: f64) -> String {
    if number.is_nan() {
        ".nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { ".inf".to_owned() } else { "-.inf".to_owned() }
    } else {
        let text = go::float_text(number);
        // `sops` writes 1.0 as `1`, and so turns it into an integer. The type matters more than that.
        if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
    }
}

pub(crate) fn write_text(text: &str, spot: Spot, blocks: bool) -> Written {
    let fits = Fits::of(text);
    if text.contains('\n') {
        return match content_column(spot).filter(|_| blocks && fits.block) {
            Some(column) if !text.starts_with([' ', '\n']) => literal(text, column, ""),
            // The hint counts from the column of the mapping. In a list `sops` gets it wrong, so quote there.
            Some(column) if spot == Spot::Value(column.saturating_sub(STEP)) => {
                literal(text, column, &STEP.to_string())
            }
            _ => Written::inline(double_quoted(text)),
        };
    }
    let plain_fits = if spot == Spot::Flow { fits.flow } else { fits.plain };
    let is_text = resolve_plain(text).is_ok_and(|value| value == Value::text(text))
        && !go::is_base_60(text)
        && go::old_boolean(text).is_none()
        && text != "<<";
    Written::inline(match (is_text, plain_fits, fits.single_quotes) {
        (true, true, _) => text.to_owned(),
        (true, false, true) => single_quoted(text),
        _ => double_quoted(text),
    })
}

/// Where the lines of a block go: the next step right of a mapping, or right of the dash.
fn content_column(spot: Spot) -> Option<usize> {
    match spot {
        Spot::Value(column) => Some((column + STEP) / STEP * STEP),
        Spot::Item(column) => Some(column + 2),
        Spot::Flow => None,
    }
}

fn literal(text: &str, column: usize, hint: &str) -> Written {
    let chomp = go::block_header(text);
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let indent = " ".repeat(column);
    let block = lines
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n{indent}{line}") })
        .collect();
    Written { head: format!("|{hint}{chomp}"), block }
}

pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    go::double_quoted(text, &mut quoted);
    quoted
}

fn single_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    go::single_quoted(text, &mut quoted);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> String {
        let written = write_text(text, Spot::Value(0), true);
        assert_eq!(written.block, "");
        written.head
    }

    #[test]
    fn text_is_quoted_only_where_it_must_be() {
        // As `sops` 3.13.3 decrypts them.
        for (text, yaml) in [
            ("plain text", "plain text"),
            ("", "\"\""),
            ("5", "\"5\""),
            ("yes", "\"yes\""),
            ("Yes", "\"Yes\""),
            ("12:30:45", "\"12:30:45\""),
            ("null", "\"null\""),
            ("2026-01-02", "\"2026-01-02\""),
            (" lead", "' lead'"),
            ("a: b", "'a: b'"),
            ("a #b", "'a #b'"),
            ("it's: 1", "'it''s: 1'"),
            ("tab\tx", "\"tab\\tx\""),
            ("\x01", "\"\\x01\""),
            ("-x", "-x"),
            ("- x", "'- x'"),
            ("---", "'---'"),
            ("root@pam!terraform", "root@pam!terraform"),
            ("ünïcode", "ünïcode"),
            ("\u{1f600}", "\"\\U0001F600\""),
        ] {
            assert_eq!(inline(text), yaml, "{text:?}");
        }
    }

    #[test]
    fn lines_become_a_block_where_they_can() {
        let block = |text: &str, spot| {
            let written = write_text(text, spot, true);
            format!("{}{}", written.head, written.block)
        };
        assert_eq!(block("a\n  b\n", Spot::Value(0)), "|\n    a\n      b");
        assert_eq!(block("a\nb", Spot::Value(4)), "|-\n        a\n        b");
        assert_eq!(block("a\n\nb\n\n", Spot::Item(4)), "|+\n      a\n\n      b\n");
        assert_eq!(block("  a\nb", Spot::Value(0)), "|4-\n      a\n    b");
        assert_eq!(block("  a\nb", Spot::Item(4)), "\"  a\\nb\"");
        assert_eq!(block("a \nb", Spot::Value(0)), "\"a \\nb\"");
        assert_eq!(block("a\nb", Spot::Flow), "\"a\\nb\"");
    }

    #[test]
    fn other_values_have_their_own_forms() {
        let head = |value: Value| write(&value, Spot::Flow, true).head;
        assert_eq!(head(Value::Float(1e21)), "1e+21");
        assert_eq!(head(Value::Float(1.0)), "1.0");
        assert_eq!(head(Value::Float(f64::NEG_INFINITY)), "-.inf");
        assert_eq!(head(Value::text(vec![0xff, 0xfe])), "!!binary //4=");
        assert_eq!(head(Value::Bool(false)), "false");
    }
}
