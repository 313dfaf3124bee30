//! Writing a scalar into YAML: the style that `sops` would choose, as long as it reads back as the same value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::resolve::resolve_plain;
use crate::value::{Value, scientific_from};

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
        let text = scientific_from(number, 6);
        // `sops` writes 1.0 as `1`, and so turns it into an integer. The type matters more than that.
        if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
    }
}

pub(crate) fn write_text(text: &str, spot: Spot, blocks: bool) -> Written {
    let shape = Shape::of(text);
    if text.contains('\n') {
        return match content_column(spot).filter(|_| blocks && shape.fits_block) {
            Some(column) if !text.starts_with([' ', '\n']) => literal(text, column, ""),
            // The hint counts from the column of the mapping. In a list `sops` gets it wrong, so quote there.
            Some(column) if spot == Spot::Value(column.saturating_sub(STEP)) => {
                literal(text, column, &STEP.to_string())
            }
            _ => Written::inline(double_quoted(text)),
        };
    }
    let plain_fits = if spot == Spot::Flow { shape.fits_flow } else { shape.fits_plain };
    let is_text = resolve_plain(text).is_ok_and(|value| value == Value::text(text))
        && !is_sexagesimal(text)
        && !is_old_bool(text)
        && text != "<<";
    Written::inline(match (is_text, plain_fits, shape.fits_single_quotes) {
        (true, true, _) => text.to_owned(),
        (true, false, true) => format!("'{}'", text.replace('\'', "''")),
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
    let chomp = match text.strip_suffix('\n') {
        None => "-",
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => "+",
        Some(_) => "",
    };
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let indent = " ".repeat(column);
    let block = lines
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n{indent}{line}") })
        .collect();
    Written { head: format!("|{hint}{chomp}"), block }
}

pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\x1b' => quoted.push_str("\\e"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            other if is_printable(other) => quoted.push(other),
            other if (other as u32) <= 0xff => quoted.push_str(&format!("\\x{:02X}", other as u32)),
            other if (other as u32) <= 0xffff => quoted.push_str(&format!("\\u{:04X}", other as u32)),
            other => quoted.push_str(&format!("\\U{:08X}", other as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// What can stand unescaped. Characters beyond the first plane cannot, for the library of `sops`.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// What the characters of a text allow.
struct Shape {
    fits_plain: bool,
    fits_flow: bool,
    fits_single_quotes: bool,
    fits_block: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let blank = |character: Option<char>| character.is_none_or(|c| c == ' ' || c == '\t');
        let dashes = text.starts_with("---") || text.starts_with("...");
        let (mut block_indicator, mut flow_indicator) =
            (dashes || text.is_empty(), dashes || text.is_empty());
        let (mut special, mut tab) = (false, false);
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let blank_follows = blank(characters.peek().copied());
            match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => {
                    (block_indicator, flow_indicator) = (true, true);
                }
                (_, ':') | (None, '?') => {
                    flow_indicator = true;
                    block_indicator |= blank_follows;
                }
                (None, '-') if blank_follows => (block_indicator, flow_indicator) = (true, true),
                (Some(_), ',' | '?' | '[' | ']' | '{' | '}') => flow_indicator = true,
                (Some(before), '#') if before == ' ' || before == '\t' || before == '\n' => {
                    (block_indicator, flow_indicator) = (true, true);
                }
                _ => {}
            }
            tab |= character == '\t';
            // Line separators of Unicode are line breaks to some libraries and not to others.
            special |=
                character != '\t' && !is_printable(character) || matches!(character, '\u{2028}' | '\u{2029}');
            previous = Some(character);
        }
        let edges = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let one_line = !text.contains('\n');
        let space_before_break = text.contains(" \n");
        let plain = !edges && one_line && !tab && !special;
        Shape {
            fits_plain: plain && !block_indicator,
            fits_flow: plain && !flow_indicator,
            fits_single_quotes: one_line && !tab && !special,
            fits_block: !text.is_empty() && !text.ends_with(' ') && !space_before_break && !special,
        }
    }
}

/// YAML 1.1 takes these for truth values.
fn is_old_bool(text: &str) -> bool {
    #[rustfmt::skip]
    let words = [
        "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
    ];
    words.contains(&text)
}

/// YAML 1.1 takes `1:30` for a number in base 60.
fn is_sexagesimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = digits.split(':');
    let first = parts.next().unwrap_or_default();
    let head = first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let sixty = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => (b'0'..=b'5').contains(ten) && one.is_ascii_digit(),
        _ => false,
    };
    let (whole, fraction) = last.split_once('.').unwrap_or((last, ""));
    head && middle.iter().all(|part| sixty(part))
        && sixty(whole)
        && fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
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
