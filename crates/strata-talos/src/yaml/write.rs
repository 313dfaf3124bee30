//! Writes a tree with four spaces of indentation, quoting what another reader could mistake.
//!
//! The choice of quotes is that of Talos' own tools, because the image factory names a schematic by the digest of exactly
//! this text.

use std::fmt::Write as _;

use zeroize::Zeroizing;

use super::scalar::{Plain, is_date, is_old_syntax, resolve};
use crate::tree::Value;

const INDENT: usize = 4;

/// One document.
pub(crate) fn write(value: &Value) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::new());
    top(&mut out, value);
    out
}

/// Several documents, `---` between them.
pub(crate) fn write_all<'v>(values: impl IntoIterator<Item = &'v Value>) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::new());
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.push_str("---\n");
        }
        top(&mut out, value);
    }
    out
}

fn top(out: &mut String, value: &Value) {
    match value {
        Value::Map(map) if !map.is_empty() => block(out, value, 0),
        Value::List(items) if !items.is_empty() => block(out, value, 0),
        other => {
            scalar(out, other, 0);
            out.push('\n');
        }
    }
}

/// A mapping or list that is not empty, each line indented; the first line's indentation is already there where it
/// follows a `- `.
fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Map(map) => {
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                write_key(out, key);
                out.push(':');
                entry(out, value, indent);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push('-');
                match item {
                    Value::Map(map) if !map.is_empty() => {
                        out.push(' ');
                        block(out, item, indent + 2);
                    }
                    Value::List(items) if !items.is_empty() => {
                        out.push(' ');
                        block(out, item, indent + 2);
                    }
                    other => {
                        out.push(' ');
                        scalar(out, other, indent + 2);
                        out.push('\n');
                    }
                }
            }
        }
        _ => {}
    }
}

/// What follows the colon of a key.
fn entry(out: &mut String, value: &Value, indent: usize) {
    // Below a list item, which is indented by two, the next step leads back to a multiple of four.
    let below = (indent + INDENT) / INDENT * INDENT;
    match value {
        Value::Map(map) if !map.is_empty() => {
            out.push('\n');
            block(out, value, below);
        }
        Value::List(items) if !items.is_empty() => {
            out.push('\n');
            block(out, value, below);
        }
        other => {
            out.push(' ');
            scalar(out, other, below);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(number) => put(out, format_args!("{number}")),
        Value::Octal(number) => put(out, format_args!("0o{number:o}")),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => write_text(out, text, indent),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
    }
}

fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing into a string does not fail");
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').expect("`{:e}` always writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a decimal exponent");
    if number == 0.0 || (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn write_key(out: &mut String, key: &str) {
    let traits = Traits::of(key);
    if is_old_syntax(key) {
        single_quoted(out, key);
    } else if key.is_empty() || traits.multiline || !is_plain_word(key) {
        double_quoted(out, key);
    } else if traits.plain {
        out.push_str(key);
    } else if traits.single_quoted {
        single_quoted(out, key);
    } else {
        double_quoted(out, key);
    }
}

fn write_text(out: &mut String, text: &str, indent: usize) {
    let traits = Traits::of(text);
    if text.contains('\n') {
        let words = text.chars().any(|c| !c.is_whitespace());
        if traits.block && words { literal(out, text, indent) } else { double_quoted(out, text) }
    } else if is_old_syntax(text) {
        single_quoted(out, text);
    } else if !is_plain_word(text) {
        double_quoted(out, text);
    } else if traits.plain {
        out.push_str(text);
    } else if traits.single_quoted {
        single_quoted(out, text);
    } else {
        double_quoted(out, text);
    }
}

/// Whether the text without quotes is text for every reader.
fn is_plain_word(text: &str) -> bool {
    resolve(text) == Plain::Text && !is_date(text)
}

/// Which styles can hold a text.
struct Traits {
    plain: bool,
    single_quoted: bool,
    block: bool,
    multiline: bool,
}

impl Traits {
    fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut multiline, mut special, mut tabs) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let ends = characters.peek().is_none_or(|next| is_blank(*next));
            let starts = previous.is_none_or(is_blank);
            indicators |= match c {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if previous.is_none() =>
                {
                    true
                }
                '?' | '-' if previous.is_none() => ends,
                ':' => ends,
                '#' => starts,
                _ => false,
            };
            tabs |= c == '\t';
            multiline |= is_break(c);
            special |= c != '\t' && !is_break(c) && !is_printable(c);
            break_space |= c == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(c) && previous == Some(' ');
            previous = Some(c);
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c == ' ' || is_break(c));
        let at_edges = edge(text.chars().next()) || edge(previous);
        Self {
            plain: !(indicators || multiline || special || tabs || break_space || space_break || at_edges),
            single_quoted: !(special || tabs || multiline),
            // A reader could take the first line's own spaces for indentation, and make one break of another.
            block: !(special
                || space_break
                || previous == Some(' ')
                || text.trim_start_matches('\n').starts_with(' ')
                || text.contains(|c| c != '\n' && is_break(c))),
            multiline,
        }
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t' || is_break(c)
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn literal(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    match text.strip_suffix('\n') {
        None => out.push('-'),
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => out.push('+'),
        Some(_) => {}
    }
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
}

fn single_quoted(out: &mut String, text: &str) {
    out.push('\'');
    for c in text.chars() {
        out.push(c);
        if c == '\'' {
            out.push(c);
        }
    }
    out.push('\'');
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x100 => put(out, format_args!("\\x{:02X}", c as u32)),
            c if (c as u32) < 0x1_0000 => put(out, format_args!("\\u{:04X}", c as u32)),
            c => put(out, format_args!("\\U{:08X}", c as u32)),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::tree;
    use crate::yaml::{NodeKind, read};

    #[test]
    fn looks_as_people_write_it() {
        let value = tree! {
            "a" => "text",
            "list" => vec![
                Value::from("one"),
                tree! { "x" => 1, "then" => tree! { "z" => true } },
                Value::List(vec![Value::from("nested"), Value::List(Vec::new())]),
            ],
            "empty" => Value::Map(Default::default()),
            "pem" => "-----BEGIN-----\nabc\n-----END-----\n",
            "mode" => Value::Octal(0o644),
            "keep" => "a\n\n",
            "strip" => "a\nb",
            "half" => Value::Float(0.5),
            "whole" => Value::Float(2.0),
            "large" => Value::Float(1_234_567.5),
            "small" => Value::Float(0.00001),
        };
        let expected = "a: text\nlist:\n    - one\n    - x: 1\n      then:\n        z: true\n    - - nested\n      - []\n\
                        empty: {}\npem: |\n    -----BEGIN-----\n    abc\n    -----END-----\nmode: 0o644\n\
                        keep: |+\n    a\n\nstrip: |-\n    a\n    b\n\
                        half: 0.5\nwhole: 2\nlarge: 1.2345675e+06\nsmall: 1e-05\n";
        assert_eq!(write(&value).as_str(), expected);
        assert_eq!(write_all([&tree! {"a" => 1}, &tree! {"b" => 2}]).as_str(), "a: 1\n---\nb: 2\n");
    }

    #[test]
    fn quotes_what_could_be_mistaken() {
        for (text, written) in [
            ("", "\"\""),
            ("yes", "'yes'"),
            ("true", "\"true\""),
            ("1.10", "\"1.10\""),
            ("1:30", "'1:30'"),
            ("2026-11-15", "\"2026-11-15\""),
            ("a: b", "'a: b'"),
            ("it's #1", "'it''s #1'"),
            ("#1", "'#1'"),
            ("-console", "-console"),
            ("- a", "'- a'"),
            ("console=ttyS0,115200", "console=ttyS0,115200"),
            ("a b ", "'a b '"),
            ("tab\t", "\"tab\\t\""),
            ("ü", "ü"),
            ("\u{7}😀", "\"\\a\\U0001F600\""),
        ] {
            assert_eq!(write(&tree! {"k" => text}).as_str(), format!("k: {written}\n"), "{text:?}");
        }
    }

    fn texts(node: &crate::yaml::Node) -> Vec<String> {
        match &node.kind {
            NodeKind::Scalar(scalar) => {
                assert!(scalar.resolve() == Plain::Text, "{}", scalar.text.as_str());
                vec![scalar.text.to_string()]
            }
            NodeKind::List(items) => items.iter().flat_map(texts).collect(),
            NodeKind::Map(entries) => {
                entries.iter().flat_map(|(k, v)| [k.clone()].into_iter().chain(texts(v))).collect()
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn any_text_comes_back(key in "[ -~\n\t]{1,12}", text in "[ -~\n\rü\u{85}\u{2028}\t#:'-]{0,24}", other in "\\PC{0,16}") {
            let value = tree! { key.as_str() => tree! { "deep" => vec![
                Value::text(text.clone()), Value::text(other.clone()), tree! { "k" => text.clone() },
            ] } };
            let written = write(&value);
            let documents = read(&written).map_err(|error| TestCaseError::fail(format!("{error}\n{}", *written)))?;
            prop_assert_eq!(texts(&documents[0]), vec![key, "deep".into(), text.clone(), other, "k".into(), text], "{}", *written);
        }
    }
}
