//! How the values of a row are written and read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use strata_engine::{ErrorClass, ProviderError};
use strata_resource::{FieldRule, FieldType, Spec, Value};
use strata_secret::SecretString;

use crate::api::Params;
use crate::datacenter::family::text_of;
use crate::execute::Work;

/// Parts of a text, `key=value` with commas between, and what they are called in a spec.
pub(crate) type Parts = &'static [(&'static str, &'static str, FieldType)];

/// How the remote writes a field that is more than one value.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// A list is one text with commas between; its order means nothing.
    Usual,
    /// Each item of a list is a parameter of its own, and is kept as it is.
    Array,
    /// A text in base64, or a map whose entries are items with a name and a value in base64.
    Encoded,
    /// A map of secrets, as lines `name=value` in base64.
    Lines,
    /// It is made of parts, or is a list of such items; each item is a parameter of its own.
    Parts(Parts),
}

pub(super) fn read(field: &FieldRule, form: Form, value: &serde_json::Value) -> Option<Value> {
    let items = || match value {
        serde_json::Value::Array(items) => items.iter().filter_map(text_of).collect(),
        other => vec![text_of(other).unwrap_or_default()],
    };
    if field.write_only {
        return None;
    }
    Some(match (field.kind, form) {
        (FieldType::List, Form::Array) => Value::List(items().into_iter().map(Value::Text).collect()),
        (FieldType::List, Form::Parts(parts)) => {
            Value::List(items().iter().map(|item| item_of(item, parts)).collect())
        }
        (FieldType::Map, Form::Encoded) => {
            Value::Map(items().iter().filter_map(|item| named(item)).collect())
        }
        (_, Form::Encoded) => Value::Text(decoded(&text_of(value)?)?),
        // Some answers take it apart themselves.
        (FieldType::Map, Form::Parts(parts)) => match value.as_object() {
            Some(taken_apart) => {
                let pairs =
                    taken_apart.iter().filter_map(|(key, value)| Some((key.as_str(), text_of(value)?)));
                item_of_pairs(pairs, parts)
            }
            None => item_of(&text_of(value)?, parts),
        },
        // Texts with commas between; their order means nothing.
        (FieldType::List, Form::Usual) => {
            let texts = items();
            let mut texts: Vec<&str> = texts
                .iter()
                .flat_map(|item| item.split([',', ' ', ';']))
                .filter(|text| !text.is_empty())
                .collect();
            texts.sort_unstable();
            Value::List(texts.into_iter().map(Value::text).collect())
        }
        (FieldType::Int, _) => Value::Int(text_of(value)?.parse().ok()?),
        (FieldType::Bool, _) => Value::Bool((text_of(value)? == "1") != field.inverted),
        // Proxmox ends some texts with a line break that nobody sent.
        _ => {
            let text = text_of(value)?.trim_end_matches('\n').to_owned();
            Value::Text(Some(text).filter(|text| !text.is_empty())?)
        }
    })
}

pub(super) fn put(
    params: &mut Params,
    field: &FieldRule,
    form: Form,
    value: &Value,
    work: &Work<'_>,
) -> Result<(), ProviderError> {
    let key = field.remote;
    match (value, form) {
        (Value::Map(entries), Form::Lines) => {
            let mut lines = String::new();
            for (name, value) in entries {
                lines.push_str(name);
                lines.push('=');
                match value {
                    Value::Secret(secret) => match secret.plain() {
                        Some(plain) => lines.push_str(plain.expose()),
                        None => return Err(work.internal("a secret itself is not at hand, only its digest")),
                    },
                    other => lines.push_str(other.as_text().unwrap_or_default()),
                }
                lines.push('\n');
            }
            let lines = SecretString::from(lines);
            params.set_secret(key, &BASE64.encode(lines.expose()));
        }
        (Value::Map(entries), Form::Encoded) => {
            for (name, value) in entries {
                push_named(params, key, name, value, work)?;
            }
        }
        (Value::Text(text), Form::Encoded) => params.set(key, BASE64.encode(text)),
        (Value::Secret(secret), _) => match secret.plain() {
            Some(plain) => params.set_secret(key, plain.expose()),
            None => return Err(work.internal("a secret itself is not at hand, only its digest")),
        },
        (Value::Bool(on), _) => params.set(key, u8::from(*on != field.inverted)),
        (Value::Int(int), _) => params.set(key, int),
        (Value::Text(text), _) => params.set(key, text),
        (Value::List(items), Form::Array) => {
            for item in items.iter().filter_map(Value::as_text) {
                params.push(key, item);
            }
        }
        (Value::List(items), Form::Parts(parts)) => {
            for item in items {
                params.push(key, item_text(item, parts));
            }
        }
        (Value::Map(_), Form::Parts(parts)) => params.set(key, item_text(value, parts)),
        (Value::List(items), Form::Usual) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_text).collect();
            params.set(key, texts.join(","));
        }
        _ => {
            let message = format!("`{}`: its `{}` cannot be sent", work.operation.address, field.path);
            return Err(ProviderError::new(ErrorClass::BadInput, message).field(field.path));
        }
    }
    Ok(())
}

fn push_named(
    params: &mut Params,
    key: &str,
    name: &str,
    value: &Value,
    work: &Work<'_>,
) -> Result<(), ProviderError> {
    let item = |text: &str| format!("name={name},value={}", BASE64.encode(text));
    match value {
        Value::Secret(secret) => match secret.plain() {
            Some(plain) => params.push_secret(key, item(plain.expose())),
            None => return Err(work.internal("a secret itself is not at hand, only its digest")),
        },
        other => params.push(key, item(other.as_text().unwrap_or_default())),
    }
    Ok(())
}

fn decoded(text: &str) -> Option<String> {
    String::from_utf8(BASE64.decode(text).ok()?).ok()
}

/// `name=NAME,value=VALUE`, its value in base64.
fn named(item: &str) -> Option<(String, Value)> {
    let part = |key: &str| item.split(',').find_map(|part| part.strip_prefix(key));
    Some((part("name=")?.to_owned(), Value::Text(decoded(part("value=")?)?)))
}

fn item_of(text: &str, parts: Parts) -> Value {
    // The first part may stand without its name.
    let unnamed = parts.first().map_or("", |(key, ..)| *key);
    let pairs = text.split(',').filter(|part| !part.is_empty());
    let pairs = pairs.map(|part| part.split_once('=').unwrap_or((unnamed, part)));
    item_of_pairs(pairs.map(|(key, value)| (key, value.to_owned())), parts)
}

fn item_of_pairs<'a>(pairs: impl Iterator<Item = (&'a str, String)>, parts: Parts) -> Value {
    let mut item = Spec::new();
    for (key, value) in pairs {
        let Some((_, field, kind)) = parts.iter().find(|(known, ..)| *known == key) else { continue };
        let typed = match kind {
            FieldType::Int => value.parse().ok().map(Value::Int),
            FieldType::Bool => Some(Value::Bool(value == "1")),
            _ => None,
        };
        item.insert((*field).to_owned(), typed.unwrap_or(Value::Text(value)));
    }
    Value::Map(item)
}

fn item_text(item: &Value, parts: Parts) -> String {
    let Some(item) = item.as_map() else { return String::new() };
    let parts = parts.iter().filter_map(|(key, field, _)| match item.get(*field)? {
        Value::Bool(on) => Some(format!("{key}={}", u8::from(*on))),
        Value::Int(int) => Some(format!("{key}={int}")),
        Value::Text(text) => Some(format!("{key}={text}")),
        _ => None,
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_reads_back_as_written() {
        const DEVICE: Parts = &[
            ("node", "node", FieldType::Text),
            ("id", "id", FieldType::Text),
            ("iommugroup", "iommu_group", FieldType::Int),
        ];
        let text = "node=pve,id=10de:1234,iommugroup=1";
        assert_eq!(item_text(&item_of(text, DEVICE), DEVICE), text);
        assert_eq!(item_text(&item_of("id=1234:5678,node=pve", DEVICE), DEVICE), "node=pve,id=1234:5678");
        assert_eq!(item_text(&item_of("pve,id=1234:5678", DEVICE), DEVICE), "node=pve,id=1234:5678");
    }
}
