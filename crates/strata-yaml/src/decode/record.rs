//! Mappings with known keys, as structs; `record!` declares both at once.

use strata_diagnostics::{Diagnostic, Span, nearest};

use crate::reference::Source;
use crate::shape::{FieldSpec, RecordSpec, Rules, Shape, words_list};
use crate::{Context, Decode, Entry, FieldSpans, Mapping, Node, Spanned};

/// A struct that `record!` declared.
pub trait Record: Sized {
    fn spec() -> &'static RecordSpec;

    /// The fields, for a record that takes this one's keys as its own.
    fn fields(into: &mut Vec<FieldSpec>);

    fn take(fields: &mut Fields<'_, '_, '_>) -> Option<Self>;
}

/// The entries of the mapping that is being read.
pub struct Fields<'n, 'c, 'd> {
    mapping: &'n Mapping,
    owner: Option<Spanned<String>>,
    places: FieldSpans,
    /// The mapping is short for one field: what is said of the field is said of the record.
    short: bool,
    cx: &'c mut Context<'d>,
}

impl<'n> Fields<'n, '_, '_> {
    pub fn places(&self) -> FieldSpans {
        self.places.clone()
    }

    /// The value of a key; its absence is reported unless the type allows it.
    pub fn field<T: Decode>(&mut self, key: &'static str, rules: Rules, doc: &[&str]) -> Option<T> {
        match self.entry(key, &rules) {
            Some(entry) => self.read(key, rules, entry).or_else(T::absent),
            None => T::absent().or_else(|| {
                self.missing(key, doc);
                None
            }),
        }
    }

    /// The value of a key, or what stands for its absence.
    pub fn field_or<T: Decode>(&mut self, key: &'static str, rules: Rules, default: T) -> Option<T> {
        match self.entry(key, &rules) {
            Some(entry) => self.read(key, rules, entry).or(Some(default)),
            None => Some(default),
        }
    }

    fn read<T: Decode>(&mut self, key: &'static str, rules: Rules, entry: &Entry) -> Option<T> {
        let owner = if self.short { self.owner.clone() } else { Some(entry.key.clone()) };
        self.cx.within(key, rules, |cx| cx.owned(owner, |cx| T::decode(&entry.value, cx)))
    }

    fn entry(&mut self, key: &str, rules: &Rules) -> Option<&'n Entry> {
        let mut found: Option<&'n Entry> = None;
        for entry in &self.mapping.entries {
            if entry.key.value != key && !rules.aliases.contains(&entry.key.value.as_str()) {
                continue;
            }
            match &found {
                None => found = Some(entry),
                Some(first) => {
                    let message = format!("`{}` and `{}` are two names of one thing", first.key, entry.key);
                    let problem = Diagnostic::error("duplicate-key", message).at(entry.key.span);
                    self.cx.push(problem.also(first.key.span, "first here").hint("keep one of them"));
                }
            }
        }
        // In an overlay, nothing takes the key away.
        let partial = self.cx.is_partial();
        found.filter(|entry| !(partial && entry.value.is_null()))
    }

    fn missing(&mut self, key: &'static str, doc: &[&str]) {
        if self.cx.is_partial() {
            return;
        }
        // A typo of this key is one mistake, and has been reported.
        if self.mapping.keys().any(|written| nearest(written, [key]).is_some()) {
            return;
        }
        let message = match &self.owner {
            Some(owner) => format!("`{owner}` has no `{key}`"),
            None => format!("`{key}` is missing"),
        };
        let hint = (!doc.is_empty()).then(|| format!("`{key}`: {}", join_doc(doc)));
        self.cx.push(Diagnostic::error("missing-key", message).at(self.places.owner()).maybe_hint(hint));
    }
}

/// Reads a mapping as a record and reports the keys that it does not know.
pub fn decode_record<T: Record>(node: &Node, cx: &mut Context<'_>) -> Option<T> {
    let spec = T::spec();
    let expanded = spec.shorthand.filter(|key| is_shorthand(node, spec, key)).map(|key| {
        let entry = Entry { key: Spanned::new(key.to_owned(), node.span), value: node.clone() };
        Mapping { entries: vec![entry] }
    });
    let Some(mapping) = expanded.as_ref().or_else(|| node.as_mapping()) else {
        cx.wrong_type(node, &Shape::Record(T::spec));
        return None;
    };
    let owner = cx.owner().cloned();
    let places = FieldSpans::of(mapping, spec, owner.as_ref().map_or_else(|| head(node), |owner| owner.span));
    unknown_keys(mapping, spec, owner.as_ref(), cx);
    let grouped = groups(mapping, spec, owner.as_ref(), places.owner(), cx);
    let taken = T::take(&mut Fields { mapping, owner, places, short: expanded.is_some(), cx });
    taken.filter(|_| grouped)
}

/// Whether the node stands for one field of the record instead of the whole.
fn is_shorthand(node: &Node, spec: &RecordSpec, key: &str) -> bool {
    if node.as_scalar().is_some() {
        return true;
    }
    if node.as_list().is_some() {
        return matches!(spec.field(key).map(|field| &field.shape), Some(Shape::List(_)));
    }
    let Some([entry]) = node.as_mapping().map(|mapping| mapping.entries.as_slice()) else { return false };
    let name = entry.key.value.as_str();
    Source::KEYS.contains(&name) && !spec.keys().any(|known| known == name)
}

/// The first thing of a value: a place to point at for what the whole lacks.
fn head(node: &Node) -> Span {
    match node.as_mapping().and_then(|mapping| mapping.entries.first()) {
        Some(entry) => entry.key.span,
        None => node.span,
    }
}

fn unknown_keys(mapping: &Mapping, spec: &RecordSpec, owner: Option<&Spanned<String>>, cx: &mut Context<'_>) {
    if spec.open {
        return;
    }
    for entry in &mapping.entries {
        let key = entry.key.value.as_str();
        if spec.keys().any(|known| known == key) || (spec.document && key.starts_with("x-")) {
            continue;
        }
        let shown = crate::shorten(key);
        let message = match owner {
            Some(owner) => format!("`{}` has no key `{shown}`", crate::shorten(owner)),
            None => format!("unknown key `{shown}`"),
        };
        let meant = nearest(key, spec.keys()).map(|meant| format!("did you mean `{meant}`?"));
        let problem = Diagnostic::error("unknown-key", message).at(entry.key.span).maybe_hint(meant);
        cx.push(problem.note(allowed(spec)));
    }
}

/// The keys in words; of a long list, the first.
fn allowed(spec: &RecordSpec) -> String {
    const SHOWN: usize = 16;
    let keys: Vec<&str> = spec.fields.iter().map(|field| field.key).collect();
    if keys.len() <= SHOWN + 2 {
        return format!("allowed here: {}", keys.join(", "));
    }
    format!("allowed here: {} and {} more", keys[..SHOWN].join(", "), keys.len() - SHOWN)
}

/// Checks the keys of which one, or one at most, may be there.
fn groups(
    mapping: &Mapping,
    spec: &RecordSpec,
    owner: Option<&Spanned<String>>,
    at: Span,
    cx: &mut Context<'_>,
) -> bool {
    let mut fits = true;
    let all = spec
        .exactly_one
        .iter()
        .map(|keys| (keys, true))
        .chain(spec.at_most_one.iter().map(|keys| (keys, false)));
    for (keys, one_needed) in all {
        let present: Vec<&Entry> =
            mapping.entries.iter().filter(|entry| keys.contains(&entry.key.value.as_str())).collect();
        match present.as_slice() {
            [] if one_needed && !cx.is_partial() => {
                let what = owner.map_or_else(|| "this".to_owned(), |owner| format!("`{owner}`"));
                let message = format!("{what} needs {}", words_list(keys));
                cx.push(Diagnostic::error("missing-key", message).at(at));
                fits = false;
            }
            [first, second, ..] => {
                let message = format!("`{}` and `{}` cannot stand together", first.key, second.key);
                let problem = Diagnostic::error("conflicting-keys", message).at(second.key.span);
                cx.push(
                    problem
                        .also(first.key.span, "the other one")
                        .hint(format!("keep one of {}", words_list(keys))),
                );
                fits = false;
            }
            _ => {}
        }
    }
    fits
}

/// The lines of a doc comment as one text.
#[doc(hidden)]
pub fn join_doc(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}
