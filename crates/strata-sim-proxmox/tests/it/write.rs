//! Writes the table of a call from the schema, as lines to paste.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use serde_json::Value;

use crate::published::Published;

/// `text("x").opt()` and so on. A format is named in a comment: which check it is must be chosen by a person.
fn line(name: &str, said: &Value) -> String {
    let (stem, series) = match name.strip_suffix("[n]") {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let quoted = if series { format!("format!(\"{stem}{{n}}\")") } else { format!("\"{stem}\"") };
    let mut made = kind(&quoted, said);
    // Some limits are texts in the schema.
    let number = |key: &str| said[key].as_f64().or_else(|| said[key].as_str()?.parse().ok());
    let mut add = |method: &str, value: Option<String>| {
        if let Some(value) = value {
            made += &format!(".{method}({value})");
        }
    };
    add("min", number("minimum").map(|n| format!("{n:?}")));
    add("max", number("maximum").map(|n| format!("{n:?}")));
    add("min_len", number("minLength").map(|n| n.to_string()));
    add("max_len", number("maxLength").map(|n| n.to_string()));
    add("needs", said["requires"].as_str().map(|other| format!("{other:?}")));
    let values: Vec<String> = said["enum"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|v| format!("{v:?}"))
        .collect();
    add("one_of", (!values.is_empty()).then(|| format!("&[{}]", values.join(", "))));
    if said["optional"] == 1 {
        made += ".opt()";
    }
    made + "," + &remark(said)
}

fn kind(quoted: &str, said: &Value) -> String {
    match said["type"].as_str().unwrap_or("string") {
        "integer" => format!("int({quoted})"),
        "number" => format!("number({quoted})"),
        "boolean" => format!("flag({quoted})"),
        "array" => format!("array({quoted}, {})", kind("\"item\"", &said["items"])),
        _ => format!("text({quoted})"),
    }
}

/// What a line cannot say by itself.
fn remark(said: &Value) -> String {
    let mut words = Vec::new();
    match &said["format"] {
        Value::String(name) => words.push(format!("format {name}")),
        Value::Object(_) => words.push("a property string, below".to_owned()),
        _ => {}
    }
    if let Some(pattern) = said["pattern"].as_str() {
        words.push(format!("pattern {pattern}"));
    }
    if words.is_empty() { String::new() } else { format!(" // {}", words.join("; ")) }
}

fn table(parameters: &BTreeMap<String, Value>, indent: &str) -> String {
    let mut out = String::new();
    let mut below = String::new();
    for (name, said) in parameters {
        if let Some(target) = said["alias"].as_str() {
            let call = match said["keyAlias"].as_str() {
                Some(key) => format!(".key_alias({name:?}, {target:?}, {key:?})"),
                None => format!(".alias({name:?}, {target:?})"),
            };
            below += &format!("{indent}{call}\n");
            continue;
        }
        out += &format!("{indent}{}\n", line(name, said));
        if said["default_key"] == 1 {
            below += &format!("{indent}.default_key({name:?})\n");
        }
        if let Some(keys) = said["format"].as_object() {
            let keys = keys.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            below += &format!("{indent}// {name}\n{}", table(&keys, &format!("{indent}    ")));
        }
    }
    out + &below
}

#[test]
#[ignore = "writes a table for whoever adds an endpoint: just sim-table METHOD PATH"]
fn write() {
    let wanted = std::env::var("STRATA_SHOW").expect("STRATA_SHOW is `METHOD PATH`");
    let (method, path) = wanted.split_once(' ').expect("STRATA_SHOW is `METHOD PATH`");
    let published = Published::load().unwrap_or_else(|why| panic!("{why}"));
    let Some(parameters) = published.call(method, path) else {
        let near: Vec<String> = published
            .calls()
            .filter(|(_, other)| other.starts_with(path))
            .map(|(m, p)| format!("{m} {p}"))
            .collect();
        panic!("the schema has no {method} {path}; it has\n{}", near.join("\n"));
    };
    println!("{}", table(parameters, ""));
}

#[test]
fn a_line_says_what_the_schema_says() {
    let said = serde_json::json!({"type": "integer", "minimum": 1, "maximum": 4094, "optional": 1});
    assert_eq!(line("tag", &said), r#"int("tag").min(1.0).max(4094.0).opt(),"#);
    let said = serde_json::json!({"type": "string", "enum": ["a", "b"], "requires": "tag"});
    assert_eq!(line("mode", &said), r#"text("mode").needs("tag").one_of(&["a", "b"]),"#);
    let said = serde_json::json!({"type": "string", "format": "pve-node", "optional": 1});
    assert_eq!(line("node", &said), r#"text("node").opt(), // format pve-node"#);
}
