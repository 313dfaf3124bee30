//! Writes a tree with four spaces of indentation, quoting what another reader could mistake.
//!
//! The choice of quotes is that of Talos' own tools, because the image factory names a schematic by the digest of exactly
//! this text.

use std::fmt::Write as _;

use strata_yaml::go::{self, Fits};
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
    go::float_text(number)
}

fn write_key(out: &mut String, key: &str) {
    if key.contains('\n') { go::double_quoted(key, out) } else { write_line(out, key) }
}

fn write_text(out: &mut String, text: &str, indent: usize) {
    if !text.contains('\n') {
        return write_line(out, text);
    }
    // A reader could take the first line's own spaces for indentation.
    let indented = text.trim_start_matches('\n').starts_with(' ');
    let words = text.chars().any(|c| !c.is_whitespace());
    if Fits::of(text).block && words && !indented {
        literal(out, text, indent);
    } else {
        go::double_quoted(text, out);
    }
}

/// A text without line breaks.
fn write_line(out: &mut String, text: &str) {
    let fits = Fits::of(text);
    if is_old_syntax(text) {
        go::single_quoted(text, out);
    } else if !is_plain_word(text) {
        go::double_quoted(text, out);
    } else if fits.plain {
        out.push_str(text);
    } else if fits.single_quotes {
        go::single_quoted(text, out);
    } else {
        go::double_quoted(text, out);
    }
}

/// Whether the text without quotes is text for every reader.
fn is_plain_word(text: &str) -> bool {
    resolve(text) == Plain::Text && !is_date(text)
}

fn literal(out: &mut String, text: &str, indent: usize) {
    out.push('|');
    out.push_str(go::block_header(text));
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
    }
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
