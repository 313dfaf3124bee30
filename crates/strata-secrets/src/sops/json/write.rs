//! Values and metadata as JSON text.

use crate::sops::metadata::Meta;
use crate::value::Value;

pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Time(time) => quoted(time),
        Value::Text(bytes) => quoted(&String::from_utf8_lossy(bytes)),
    }
}

/// JSON has no word for what is not finite; such a number only comes from another format.
fn float(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    let plain = format!("{number:?}");
    // A float that looks like an integer would be read as one.
    if plain.contains(['.', 'e', 'E']) { plain } else { format!("{plain}.0") }
}

pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", control as u32)),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// On one line.
pub(super) fn meta_line(meta: &Meta) -> String {
    match meta {
        Meta::Mapping(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(key, value)| format!("{}: {}", quoted(key), meta_line(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Meta::List(items) => format!("[{}]", items.iter().map(meta_line).collect::<Vec<_>>().join(", ")),
        Meta::Scalar(text) => quoted(text),
        Meta::Number(number) => number.to_string(),
        Meta::Bool(value) => value.to_string(),
        Meta::Null => "null".to_owned(),
    }
}

/// On lines, each a step further in than the one around it.
pub(super) fn meta_lines(meta: &Meta, indent: &str, step: &str) -> String {
    let inner = format!("{indent}{step}");
    let lines = |parts: Vec<String>, open: char, close: char| {
        format!("{open}\n{inner}{}\n{indent}{close}", parts.join(&format!(",\n{inner}")))
    };
    match meta {
        Meta::Mapping(fields) if !fields.is_empty() => {
            let part = |(key, value): &(String, Meta)| {
                format!("{}: {}", quoted(key), meta_lines(value, &inner, step))
            };
            lines(fields.iter().map(part).collect(), '{', '}')
        }
        Meta::List(items) if !items.is_empty() => {
            lines(items.iter().map(|item| meta_lines(item, &inner, step)).collect(), '[', ']')
        }
        other => meta_line(other),
    }
}
