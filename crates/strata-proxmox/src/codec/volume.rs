//! Volumes with options: how a new one is asked for, and what is read of one that is there.

use strata_resource::{FieldPath, Spec, Value};

use super::encode::{CodecError, Edit, apply_parts};
use super::property::PropertyString;
use super::rule::Property;
use super::size::{from_size_text, to_gib};

/// What a volume without a size is asked for with; the server knows better (EFI variables, TPM state).
const FIXED_SIZE: &str = "1";

/// `local:110/vm-110-disk-0.qcow2` is on `local`.
pub(crate) fn storage_of(volume: &str) -> Option<&str> {
    volume.split_once(':').map(|(storage, _)| storage).filter(|storage| !storage.starts_with('/'))
}

/// The size that a volume's text gives, in bytes.
pub(crate) fn volume_size(text: &str) -> Option<i64> {
    PropertyString::parse(text, "file").get("size").and_then(from_size_text)
}

/// The text of a volume: a live one with the spec's options, or a new one.
pub(super) fn encode(
    edit: &Edit<'_>,
    path: &FieldPath,
    map: &Spec,
    property: &'static Property,
    live: Option<&str>,
) -> Result<String, CodecError> {
    let mut text = match live {
        Some(live) => PropertyString::parse(live, property.default_key),
        None => new_volume(path, map, property)?,
    };
    // A volume that the spec names itself is attached in place of another.
    if let Some(volume) = map.get("volume").and_then(Value::as_text)
        && text.get(property.default_key) != Some(volume)
    {
        text.set(property.default_key, volume);
        text.remove("size");
    }
    apply_parts(edit, path, Some(map), property.parts, &mut text)?;
    Ok(text.to_string())
}

fn new_volume(
    path: &FieldPath,
    map: &Spec,
    property: &'static Property,
) -> Result<PropertyString, CodecError> {
    let text = |field: &str| map.get(field).and_then(Value::as_text);
    let mut new = PropertyString::new(property.default_key);
    if let Some(volume) = text("volume") {
        new.set(property.default_key, volume);
        return Ok(new);
    }
    let Some(storage) = text("storage") else {
        return Err(CodecError::new(&path.child("storage"), "it must name a storage"));
    };
    let size = map.get("size").and_then(Value::as_int);
    match text("import") {
        Some(source) => {
            // The size comes from the image; it is grown afterwards.
            new.set(property.default_key, format!("{storage}:0"));
            new.set("import-from", source);
        }
        None => {
            let size = size.map_or_else(|| FIXED_SIZE.to_owned(), to_gib);
            new.set(property.default_key, format!("{storage}:{size}"));
        }
    }
    if let Some(format) = text("format") {
        new.set("format", format);
    }
    Ok(new)
}

pub(super) fn decode(text: &str, property: &'static Property) -> Spec {
    let text = PropertyString::parse(text, property.default_key);
    let mut spec = Spec::new();
    // Old configurations name the part.
    let volume = ["file", "volume"].into_iter().find_map(|key| text.get(key)).unwrap_or_default();
    if let Some(storage) = storage_of(volume) {
        spec.insert("storage".to_owned(), Value::text(storage));
    }
    spec.insert("volume".to_owned(), Value::text(volume));
    if let Some(size) = text.get("size").and_then(from_size_text) {
        spec.insert("size".to_owned(), Value::Int(size));
    }
    for part in property.parts {
        if let Some(value) = part.read(&text) {
            spec.insert(part.field.to_owned(), value);
        }
    }
    spec
}
