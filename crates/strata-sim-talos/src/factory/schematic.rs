//! The identity of a schematic: the SHA-256 of its canonical text.

use serde_json::Value;
use sha2::{Digest, Sha256};

use strata_sim_core::yaml;

/// The fields in the order in which the canonical text has them; those that are empty are left out.
const FIELDS: &[(&str, &[&str])] = &[
    ("overlay", &["image", "name", "options"]),
    (
        "customization",
        &[
            "embeddedMachineConfiguration",
            "extraKernelArgs",
            "meta",
            "systemExtensions",
            "bootloader",
            "secureboot",
            "diskImage",
        ],
    ),
];

/// Identity and canonical text of a schematic.
pub fn id(text: &str) -> Result<(String, String), String> {
    let documents = yaml::documents(text)?;
    let empty = Value::Object(serde_json::Map::new());
    let document = documents.first().unwrap_or(&empty);
    let map = document.as_object().ok_or("a schematic is a mapping")?;
    for (key, value) in map {
        let Some((_, known)) = FIELDS.iter().find(|(name, _)| name == key) else {
            return Err(format!(
                "yaml: unmarshal errors:\n  field {key} not found in type schematic.Schematic"
            ));
        };
        let inner = value.as_object().into_iter().flat_map(|map| map.keys());
        if let Some(unknown) = inner.into_iter().find(|inner| !known.contains(&inner.as_str())) {
            return Err(format!(
                "yaml: unmarshal errors:\n  field {unknown} not found in type schematic.{key}"
            ));
        }
    }
    let mut canonical = String::new();
    for (name, order) in FIELDS {
        let section = map.get(*name).and_then(Value::as_object);
        let kept: Vec<(&str, &Value)> = order
            .iter()
            .filter_map(|key| section?.get(*key).filter(|value| !is_empty(value)).map(|value| (*key, value)))
            .collect();
        match (kept.is_empty(), *name) {
            (true, "customization") => canonical.push_str("customization: {}\n"),
            (true, _) => {}
            (false, _) => {
                canonical.push_str(&format!("{name}:\n"));
                for (key, value) in kept {
                    write(&mut canonical, 1, key, value);
                }
            }
        }
    }
    Ok((hex::encode(Sha256::digest(canonical.as_bytes())), canonical))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}

fn write(out: &mut String, depth: usize, key: &str, value: &Value) {
    let space = "    ".repeat(depth);
    match value {
        Value::Object(map) => {
            out.push_str(&format!("{space}{key}:\n"));
            for (inner, value) in map.iter().filter(|(_, value)| !is_empty(value)) {
                write(out, depth + 1, inner, value);
            }
        }
        Value::Array(list) => {
            out.push_str(&format!("{space}{key}:\n"));
            for item in list {
                match item {
                    Value::Object(map) => {
                        for (n, (inner, value)) in map.iter().enumerate() {
                            let mark = if n == 0 { "- " } else { "  " };
                            out.push_str(&format!("{space}    {mark}{inner}: {}\n", scalar(value)));
                        }
                    }
                    item => out.push_str(&format!("{space}    - {}\n", scalar(item))),
                }
            }
        }
        Value::String(text) if text.contains('\n') => {
            let chomp = if text.ends_with('\n') { "" } else { "-" };
            out.push_str(&format!("{space}{key}: |{chomp}\n"));
            for line in text.lines() {
                let line = if line.is_empty() { String::new() } else { format!("{space}    {line}") };
                out.push_str(&format!("{line}\n"));
            }
        }
        value => out.push_str(&format!("{space}{key}: {}\n", scalar(value))),
    }
}

fn scalar(value: &Value) -> String {
    let Value::String(text) = value else { return value.to_string() };
    let special =
        ['-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`'];
    let risky = text.is_empty()
        || text.contains(": ")
        || text.contains(" #")
        || text.ends_with(':')
        || text.trim() != text
        || (text.starts_with(special)
            && !(text.starts_with('-') && text.len() > 1 && !text.starts_with("- ")));
    let reads_as_text = yaml::documents(text).is_ok_and(|docs| docs == [value.clone()]);
    match (risky, reads_as_text) {
        (false, true) => text.clone(),
        // What would read as something else gets double quotes, what would not read at all single ones.
        (false, false) => format!("{text:?}"),
        (true, _) => format!("'{}'", text.replace('\'', "''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_schematics_have_known_identities() {
        let plain = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba";
        assert_eq!(id("customization: {}").unwrap().0, plain);
        assert_eq!(id("").unwrap().0, plain);
        let agent =
            "customization:\n  systemExtensions:\n    officialExtensions: [siderolabs/qemu-guest-agent]\n";
        assert_eq!(id(agent).unwrap().0, "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515");
        assert!(id("nonsense: 1").unwrap_err().contains("nonsense"));
    }
}
