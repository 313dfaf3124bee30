//! Diagnostics for programs: one JSON object each, with the places as lines and columns.

use serde_json::{Map, Value, json};

use crate::{Diagnostic, Label, SourceMap};

/// The diagnostic for programs, with lines and columns.
pub fn to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Value {
    let mut object = Map::new();
    object.insert("severity".into(), diagnostic.severity.as_str().into());
    object.insert("code".into(), diagnostic.code.into());
    object.insert("message".into(), diagnostic.message.clone().into());
    if let Some(label) = &diagnostic.primary {
        place(&mut object, label, sources);
    }
    if let Some(hint) = &diagnostic.hint {
        object.insert("hint".into(), hint.clone().into());
    }
    if !diagnostic.notes.is_empty() {
        object.insert("notes".into(), json!(diagnostic.notes));
    }
    if !diagnostic.secondary.is_empty() {
        let related = diagnostic.secondary.iter().map(|label| {
            let mut related = Map::new();
            place(&mut related, label, sources);
            Value::Object(related)
        });
        object.insert("related".into(), related.collect());
    }
    Value::Object(object)
}

fn place(object: &mut Map<String, Value>, label: &Label, sources: &SourceMap) {
    let at = sources.location(label.span);
    object.insert("file".into(), at.file.into());
    object.insert("line".into(), at.line.into());
    object.insert("column".into(), at.column.into());
    object.insert("endLine".into(), at.end_line.into());
    object.insert("endColumn".into(), at.end_column.into());
    if !label.text.is_empty() {
        object.insert("label".into(), label.text.clone().into());
    }
}
