//! Where each part of a record was written.

use std::sync::Arc;

use strata_diagnostics::Span;

use crate::{Entry, Mapping, RecordSpec};

/// Where each part of a record was written. Two records that say the same are equal wherever they were written.
#[derive(Debug, Clone)]
pub struct FieldSpans {
    owner: Span,
    fields: Arc<[(&'static str, Span, Span)]>,
}

impl FieldSpans {
    /// Of the entries that the record knows.
    pub(crate) fn of(mapping: &Mapping, spec: &RecordSpec, owner: Span) -> Self {
        let known = |entry: &Entry| {
            let written = entry.key.value.as_str();
            let field = spec
                .fields
                .iter()
                .find(|field| field.key == written || field.rules.aliases.contains(&written))?;
            Some((field.key, entry.key.span, entry.value.span))
        };
        Self { owner, fields: mapping.entries.iter().filter_map(known).collect() }
    }

    /// For a record that was not read from a file of its own shape.
    pub fn only(owner: Span) -> Self {
        Self { owner, fields: Arc::new([]) }
    }

    /// The key that names the record, or the record where nothing names it.
    pub fn owner(&self) -> Span {
        self.owner
    }

    /// The value of a field; the owner where the field is absent.
    pub fn value(&self, key: &str) -> Span {
        self.find(key).map_or(self.owner, |place| place.2)
    }

    /// The key of a field; the owner where the field is absent.
    pub fn key(&self, key: &str) -> Span {
        self.find(key).map_or(self.owner, |place| place.1)
    }

    /// Whether the field was written at all.
    pub fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    fn find(&self, key: &str) -> Option<&(&'static str, Span, Span)> {
        self.fields.iter().find(|place| place.0 == key)
    }
}

impl PartialEq for FieldSpans {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
