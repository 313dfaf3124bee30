//! YAML as JSON values: for machine configurations, manifests and patches that clients send.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Deeper nesting is refused.
const MOST_DEPTH: usize = 128;
/// More values than this in one text are refused, those that aliases repeat included.
const MOST_VALUES: usize = 500_000;

/// The documents of a text, in their order; empty ones are left out.
pub fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| format!("yaml: {error}"))?;
        reader.take(event).map_err(|why| format!("yaml: line {}: {why}", span.start.line()))?;
    }
    Ok(reader.documents)
}

/// A value as people write it: one entry a line, indented.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    write_into(value, 0, &mut out);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out.trim_start().to_owned()
}

/// After a key or a dash: what fits stays on the line, the rest goes below.
fn write_into(value: &Value, depth: usize, out: &mut String) {
    let indent = "    ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&format!("\n{indent}{}:", scalar(key)));
                write_into(value, depth + 1, out);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                let mut entry = String::new();
                write_into(value, depth + 1, &mut entry);
                // The first key of a map stands behind the dash, the others below it.
                let entry = entry.trim_start();
                out.push_str(&format!("\n{indent}-   {entry}"));
            }
        }
        Value::Object(_) => out.push_str(" {}"),
        Value::Array(_) => out.push_str(" []"),
        Value::String(text) => out.push_str(&format!(" {}", scalar(text))),
        other => out.push_str(&format!(" {other}")),
    }
}

/// A text that means itself without quotes, or with them.
fn scalar(text: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-+()@".contains(&byte);
    let begins =
        text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'_');
    let words = text.split(' ').all(|word| !word.is_empty() && word.bytes().all(safe));
    if begins && words && plain(text) == Value::String(text.to_owned()) {
        return text.to_owned();
    }
    Value::String(text.to_owned()).to_string()
}

/// A collection that is not complete yet.
enum Open {
    List(Vec<Value>),
    /// What is complete, the key of the value to come, and what `<<` brings in.
    Map(Map<String, Value>, Option<String>, Vec<Value>),
}

#[derive(Default)]
struct Reader {
    documents: Vec<Value>,
    open: Vec<(Open, usize)>,
    anchors: HashMap<usize, Value>,
    values: usize,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(_) => self.anchors.clear(),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                self.put(value, anchor)?;
            }
            Event::SequenceStart(anchor, _) => self.begin(Open::List(Vec::new()), anchor)?,
            Event::MappingStart(anchor, _) => self.begin(Open::Map(Map::new(), None, Vec::new()), anchor)?,
            Event::SequenceEnd | Event::MappingEnd => {
                let Some((open, anchor)) = self.open.pop() else { return Ok(()) };
                let value = match open {
                    Open::List(list) => Value::Array(list),
                    Open::Map(mut map, _, merged) => {
                        for source in merged {
                            merge(&mut map, source)?;
                        }
                        Value::Object(map)
                    }
                };
                self.put(value, anchor)?;
            }
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned().ok_or("unknown anchor")?;
                self.values += count(&value);
                self.put(value, 0)?;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, anchor: usize) -> Result<(), String> {
        if self.open.len() >= MOST_DEPTH {
            return Err("nested too deeply".to_owned());
        }
        self.open.push((open, anchor));
        Ok(())
    }

    fn put(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err("too many values".to_owned());
        }
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => {
                if !value.is_null() {
                    self.documents.push(value);
                }
            }
            Some((Open::List(list), _)) => list.push(value),
            Some((Open::Map(map, key, merged), _)) => match key.take() {
                None => *key = Some(as_key(value)?),
                Some(name) if name == "<<" => merged.push(value),
                Some(name) => {
                    if map.insert(name.clone(), value).is_some() {
                        return Err(format!("mapping key {name:?} already defined"));
                    }
                }
            },
        }
        Ok(())
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

fn as_key(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Ok("null".to_owned()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Array(_) | Value::Object(_) => Err("a key must be a scalar".to_owned()),
    }
}

/// What `<<` brings in never replaces what is there.
fn merge(map: &mut Map<String, Value>, from: Value) -> Result<(), String> {
    let sources = match from {
        Value::Object(source) => vec![source],
        Value::Array(list) => list.into_iter().filter_map(|v| v.as_object().cloned()).collect(),
        _ => return Err("map merge requires map or sequence of maps as the value".to_owned()),
    };
    for (key, value) in sources.into_iter().flatten() {
        map.entry(key).or_insert(value);
    }
    Ok(())
}

/// What a scalar without quotes means.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::Number(number.into());
    }
    if let Some(digits) = text.strip_prefix("0x")
        && let Ok(number) = i64::from_str_radix(digits, 16)
    {
        return Value::Number(number.into());
    }
    if let Some(digits) = text.strip_prefix("0o")
        && let Ok(number) = i64::from_str_radix(digits, 8)
    {
        return Value::Number(number.into());
    }
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.bytes().any(|b| b.is_ascii_digit());
    match text.parse::<f64>().ok().filter(|_| numeric).and_then(Number::from_f64) {
        Some(number) => Value::Number(number),
        None => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_become_values() {
        let text = "a: 1\nb: [x, \"2\", 3.5, ~]\n---\n---\nkind: |\n  two\n  lines\non: true\n";
        let read = documents(text).unwrap();
        assert_eq!(
            read,
            [json!({"a": 1, "b": ["x", "2", 3.5, null]}), json!({"kind": "two\nlines\n", "on": true})]
        );
    }

    #[test]
    fn anchors_are_repeated_and_merged() {
        let read = documents("x: &a {k: v, l: 1}\ny: *a\nz: {<<: *a, l: 2}\n").unwrap();
        assert_eq!(read[0]["y"], json!({"k": "v", "l": 1}));
        assert_eq!(read[0]["z"], json!({"k": "v", "l": 2}));
    }

    #[test]
    fn what_is_written_reads_the_same() {
        let value = json!({
            "a": {"b": [1, "2", {"c": "x: y", "d": []}, ["p", {"q": {}}]], "e": "yes", "f": null}, "g": "Talos (v1.13.9)",
            "0x10": "- no", "h": ["192.0.2.1/24", "::1/128"], "i": "two\nlines", "j": "", "k": "1.5", "l": true,
        });
        assert_eq!(documents(&write(&value)).unwrap(), [value]);
        assert_eq!(write(&json!([{"a": 1, "b": 2}])), "-   a: 1\n    b: 2\n");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(documents("a: b: c").is_err());
        assert!(documents("a: 1\na: 2").unwrap_err().contains("already defined"));
    }
}
