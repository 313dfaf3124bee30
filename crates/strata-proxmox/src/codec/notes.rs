//! The description of a guest: what people wrote, and the mark.

use strata_resource::{FieldPath, Mark, Spec, Value};

use super::encode::{Edit, KeyChange};

pub(super) fn decode(text: &str, spec: &mut Spec) {
    let (mark, notes) = Mark::split_from_notes(text);
    if let Some(mark) = mark {
        spec.insert("mark".to_owned(), Value::Text(mark.to_string()));
    }
    if !notes.is_empty() {
        spec.insert("notes".to_owned(), Value::Text(notes));
    }
}

/// The description with the spec's mark and notes; what the spec does not say stays as it is.
pub(super) fn encode(edit: &Edit<'_>, live: Option<&str>) -> KeyChange {
    let (live_mark, live_notes) = Mark::split_from_notes(live.unwrap_or_default());
    let said = |field: &str| edit.spec.get(field).and_then(Value::as_text);
    let removed = |field: &str| edit.removed.contains(&FieldPath::dotted(field));
    let mark = match said("mark") {
        Some(line) => Some(line.to_owned()),
        None if removed("mark") => None,
        None => live_mark.map(|mark| mark.to_string()),
    };
    let notes = match said("notes") {
        Some(notes) => notes.to_owned(),
        None if removed("notes") => String::new(),
        None => live_notes,
    };
    let text = match mark.as_deref().map(|line| (Mark::parse(line), line)) {
        Some((Some(mark), _)) => mark.join_to_notes(&notes),
        Some((None, line)) => format!("{notes}\n\n{line}").trim().to_owned(),
        None => notes,
    };
    match (text.is_empty(), live) {
        (true, None) => KeyChange::Keep,
        (true, Some(_)) => KeyChange::Delete,
        (false, Some(live)) if live.trim_end() == text => KeyChange::Keep,
        (false, _) => KeyChange::set(text),
    }
}
