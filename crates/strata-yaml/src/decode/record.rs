//! Mappings with known keys, as structs; `record!` declares both at once.

use std::sync::Arc;

use strata_diagnostics::{Diagnostic, Span, nearest};

use crate::reference::Source;
use crate::shape::{FieldSpec, RecordSpec, Rules, Shape, words_list};
use crate::{Context, Decode, Entry, Mapping, Node, Spanned};

/// A struct that `record!` declared.
pub trait Record: Sized {
    fn spec() -> &'static RecordSpec;

    /// The fields, for a record that takes this one's keys as its own.
    fn fields(into: &mut Vec<FieldSpec>);

    fn take(fields: &mut Fields<'_, '_, '_>) -> Option<Self>;
}

/// Where each part of a record was written. Two records that say the same are equal wherever they were written.
#[derive(Debug, Clone)]
pub struct Places {
    owner: Span,
    fields: Arc<[(&'static str, Span, Span)]>,
}

impl Places {
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

impl PartialEq for Places {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The entries of the mapping that is being read.
pub struct Fields<'n, 'c, 'd> {
    mapping: &'n Mapping,
    owner: Option<Spanned<String>>,
    places: Places,
    /// The mapping is short for one field: what is said of the field is said of the record.
    short: bool,
    cx: &'c mut Context<'d>,
}

impl Fields<'_, '_, '_> {
    pub fn places(&self) -> Places {
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

    fn read<T: Decode>(&mut self, key: &'static str, rules: Rules, entry: Entry) -> Option<T> {
        let Entry { key: name, value } = entry;
        let owner = if self.short { self.owner.clone() } else { Some(name) };
        self.cx.within(key, rules, |cx| cx.owned(owner, |cx| T::decode(&value, cx)))
    }

    fn entry(&mut self, key: &str, rules: &Rules) -> Option<Entry> {
        let mut found = None;
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
        found.filter(|entry| !(partial && entry.value.is_null())).cloned()
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
        self.cx.push(Diagnostic::error("missing-key", message).at(self.places.owner).maybe_hint(hint));
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
    let places = places(mapping, spec, owner.as_ref().map_or_else(|| head(node), |owner| owner.span));
    unknown_keys(mapping, spec, owner.as_ref(), cx);
    let grouped = groups(mapping, spec, owner.as_ref(), places.owner, cx);
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

fn places(mapping: &Mapping, spec: &RecordSpec, owner: Span) -> Places {
    let known = |entry: &Entry| {
        let written = entry.key.value.as_str();
        let field = spec
            .fields
            .iter()
            .find(|field| field.key == written || field.rules.aliases.contains(&written))?;
        Some((field.key, entry.key.span, entry.value.span))
    };
    Places { owner, fields: mapping.entries.iter().filter_map(known).collect() }
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

/// Declares a struct, its decoder and its description in one table.
///
/// ```text
/// record! {
///     /// What it is.
///     pub struct Disk [shorthand("size")] {
///         /// What the field means; this text is in the schema and in messages.
///         "size" size: Size;
///         "ssd" ssd: bool = false;
///         "queues" queues: Option<u8> [range(0, 64)];
///         ..hardware: Hardware;
///     }
/// }
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident $([ $($option:ident $(( $($argument:expr),* ))?),* ])? {
            $(
                $(#[doc = $field_doc:literal])*
                $($key:literal)? $(..)? $field:ident : $type:ty
                    $([ $($rule:ident $(( $($value:expr),* ))?),* ])? $(= $default:expr)?
            );* $(;)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $field_doc])* pub $field: $type, )*
            /// Where the record and its fields were written.
            pub places: $crate::Places,
        }

        impl $crate::Record for $name {
            fn spec() -> &'static $crate::RecordSpec {
                static SPEC: ::std::sync::LazyLock<$crate::RecordSpec> = ::std::sync::LazyLock::new(|| {
                    let doc = $crate::join_doc(&[$($doc),*]);
                    let mut spec = $crate::RecordSpec::new(stringify!($name), doc)
                        $($( .$option($( $($argument),* )?) )*)?;
                    <$name as $crate::Record>::fields(&mut spec.fields);
                    spec
                });
                &SPEC
            }

            fn fields(into: &mut ::std::vec::Vec<$crate::FieldSpec>) {
                $(
                    $crate::record_field!(
                        spec into ($($key)?) $type,
                        ($crate::join_doc(&[$($field_doc),*])),
                        ($crate::Rules::default() $($( .$rule($( $($value),* )?) )*)?),
                        ($($default)?)
                    );
                )*
            }

            fn take(fields: &mut $crate::Fields<'_, '_, '_>) -> ::std::option::Option<Self> {
                $(
                    let $field: ::std::option::Option<$type> = $crate::record_field!(
                        take fields ($($key)?) $type,
                        ([$($field_doc),*]),
                        ($crate::Rules::default() $($( .$rule($( $($value),* )?) )*)?),
                        ($($default)?)
                    );
                )*
                ::std::option::Option::Some(Self { $( $field: $field?, )* places: fields.places() })
            }
        }

        impl $crate::Decode for $name {
            fn shape() -> $crate::Shape {
                $crate::Shape::Record(<$name as $crate::Record>::spec)
            }

            fn decode(node: &$crate::Node, cx: &mut $crate::Context<'_>) -> ::std::option::Option<Self> {
                $crate::decode_record(node, cx)
            }
        }
    };
}

/// One field of a record, for [`record!`] only: its description, or its value.
#[doc(hidden)]
#[macro_export]
macro_rules! record_field {
    (spec $into:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ()) => {
        $into.push($crate::FieldSpec {
            key: $key,
            doc: $doc,
            required: <$type as $crate::Decode>::absent().is_none(),
            shape: <$type as $crate::Decode>::shape(),
            rules: $rules,
        })
    };
    (spec $into:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ($default:expr)) => {
        $into.push($crate::FieldSpec {
            key: $key,
            doc: $doc,
            required: false,
            shape: <$type as $crate::Decode>::shape(),
            rules: $rules.unless_given(stringify!($default)),
        })
    };
    (spec $into:ident () $type:ty, ($doc:expr), ($rules:expr), ()) => {
        <$type as $crate::Record>::fields($into)
    };
    (take $fields:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ()) => {
        $fields.field::<$type>($key, $rules, &$doc)
    };
    (take $fields:ident ($key:literal) $type:ty, ($doc:expr), ($rules:expr), ($default:expr)) => {
        $fields.field_or::<$type>($key, $rules, $default)
    };
    (take $fields:ident () $type:ty, ($doc:expr), ($rules:expr), ()) => {
        <$type as $crate::Record>::take($fields)
    };
}

/// The lines of a doc comment as one text.
#[doc(hidden)]
pub fn join_doc(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}
