//! The reference: one table for each record, from the same description that decodes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::shape::{FieldSpec, RecordSpec, Rules, Shape};
use crate::{Decode, Record};

/// Every record that a document of type `T` can hold, as Markdown, the document itself first.
pub fn reference<T: Decode + Record>() -> String {
    let mut text = String::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![T::spec()];
    while let Some(spec) = waiting.pop() {
        if !seen.insert(spec.name) {
            continue;
        }
        table(spec, &mut text);
        let mut below = Vec::new();
        spec.fields.iter().for_each(|field| records(&field.shape, &mut below));
        waiting.extend(below.into_iter().rev());
    }
    text
}

fn table(spec: &RecordSpec, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(text, "## {}\n\n{}\n\n| key | takes | meaning |\n|---|---|---|\n", spec.name, spec.doc);
    for field in &spec.fields {
        let mut key = format!("`{}`", field.key);
        for alias in field.rules.aliases {
            let _ = write!(key, ", `{alias}`");
        }
        if field.required {
            key.push_str(" (required)");
        }
        let _ = writeln!(
            text,
            "| {key} | {} | {} |",
            escape(&takes(&field.shape, &field.rules)),
            escape(&meaning(field))
        );
    }
    if let Some(key) = spec.shorthand {
        let _ = write!(text, "\nA value that is no mapping stands for `{key}`.\n");
    }
    text.push('\n');
}

fn meaning(field: &FieldSpec) -> String {
    let mut text = field.doc.clone();
    if let Some(default) = field.rules.default {
        let _ = write!(text, "; otherwise `{default}`");
    }
    if field.rules.env.is_some() {
        text.push_str("; `{env}` is the environment");
    }
    text
}

fn takes(shape: &Shape, rules: &Rules) -> String {
    match shape {
        Shape::List(item) => format!("a list: {}", takes(item, rules)),
        Shape::Map(_, value) => format!("by name: {}", takes(value, rules)),
        Shape::Record(spec) => {
            let spec = spec();
            let link = format!("[{}](#{})", spec.name, spec.name.to_lowercase());
            match spec.shorthand.and_then(|key| spec.field(key)) {
                Some(field) => format!("{link}, or {}", takes(&field.shape, &field.rules)),
                None => link,
            }
        }
        Shape::AnyOf(shapes) => {
            let parts: Vec<String> = shapes.iter().map(|shape| takes(shape, rules)).collect();
            parts.join(", or ")
        }
        Shape::Reference(shape) => format!("{}, or a reference", takes(shape, rules)),
        Shape::Partial(shape) => format!("any part of {}", takes(shape, rules)),
        other => other.describe(rules),
    }
}

fn records(shape: &Shape, into: &mut Vec<&'static RecordSpec>) {
    match shape {
        Shape::Record(spec) => into.push(spec()),
        Shape::List(shape) | Shape::Map(_, shape) | Shape::Reference(shape) | Shape::Partial(shape) => {
            records(shape, into);
        }
        Shape::AnyOf(shapes) => shapes.iter().for_each(|shape| records(shape, into)),
        _ => {}
    }
}

/// A `|` would end the cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}
