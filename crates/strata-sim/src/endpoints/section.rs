//! What the configuration files made of sections have in common: typed reading, and the digest of a file.

use std::fmt::Write as _;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::api::Param;
use crate::api::param::Kind;
use crate::world::seed::sha1_hex;

/// An option as JSON: numbers and booleans are numbers there, everything else is text.
pub fn typed(params: &[Param], key: &str, value: &str) -> Value {
    let kind = params.iter().find(|p| p.name == key).map(|p| &p.kind);
    match kind {
        Some(Kind::Int | Kind::Bool | Kind::Number) => number(value),
        Some(Kind::Array(_)) => Value::Array(value.lines().map(|line| json!(line)).collect()),
        _ => json!(value),
    }
}

/// A number where it is one, else the text itself.
pub fn number(value: &str) -> Value {
    if let Ok(whole) = value.parse::<i64>() {
        return json!(whole);
    }
    value.parse::<f64>().map_or_else(|_| json!(value), |n| json!(n))
}

/// All options of a section.
pub fn typed_all(params: &[Param], props: &IndexMap<String, String>) -> Map<String, Value> {
    props.iter().map(|(k, v)| (k.clone(), typed(params, k, v))).collect()
}

/// The digest of a file with these sections: kind, id, options.
pub fn digest<'s>(
    sections: impl IntoIterator<Item = (&'s str, &'s str, &'s IndexMap<String, String>)>,
) -> String {
    let mut text = String::new();
    for (kind, id, props) in sections {
        let _ = writeln!(text, "{kind}: {id}");
        for (key, value) in props {
            let _ = writeln!(text, "\t{key} {value}");
        }
        text.push('\n');
    }
    sha1_hex(&text)
}
