//! What a value may look like. One description drives the decoder's messages, the JSON Schema and the reference.

use crate::Mapping;

/// What is accepted in one place.
#[derive(Debug, Clone)]
pub enum Shape {
    Bool,
    /// From the least to the most that the type can hold; the rules may ask for less.
    Integer(i64, i64),
    Number,
    Text(TextShape),
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// Any scalar, kept as it is.
    Scalar,
    /// Anything at all.
    Any,
    /// A mapping with anything in it.
    AnyMapping,
    List(Box<Shape>),
    /// A mapping with keys of the user's choice.
    Map(TextShape, Box<Shape>),
    Record(fn() -> &'static RecordSpec),
    /// The same with nothing required, down to the leaves: an overlay.
    Partial(Box<Shape>),
    /// The first that fits; the decoder tells them apart by the kind of node.
    AnyOf(Vec<Shape>),
    /// The value itself or `{secret: …}`, `{env: …}`, `{file: …}`.
    Reference(Box<Shape>),
}

/// Text, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextShape {
    /// In words, with the article: `an address with its prefix, such as 192.0.2.10/24`.
    pub what: &'static str,
    /// An anchored regular expression for editors. It may accept a little more than the decoder, never less.
    pub pattern: Option<&'static str>,
}

impl TextShape {
    pub const ANY: Self = Self { what: "text", pattern: None };
}

/// What a record's field asks of its value beyond the type.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    pub range: Option<(i64, i64)>,
    pub text: Option<TextRule>,
    /// What the keys of a mapping with names of the user's choice look like.
    pub keys: Option<TextRule>,
    /// Holds a secret: it may be referred to and is never shown.
    pub secret: bool,
    /// Other spellings of the key.
    pub aliases: &'static [&'static str],
    pub default: Option<&'static str>,
    /// `{env}` in it stands for the name of the environment; the other words in braces that it may hold.
    pub env: Option<&'static [&'static str]>,
    /// What the value is to somebody who walks a tree by its shape.
    pub label: Option<&'static str>,
}

/// A test for text, and its description.
#[derive(Debug, Clone, Copy)]
pub struct TextRule {
    pub shape: TextShape,
    pub accepts: fn(&str) -> bool,
}

impl Rules {
    #[must_use]
    pub fn range(mut self, least: i64, most: i64) -> Self {
        self.range = Some((least, most));
        self
    }

    #[must_use]
    pub fn text(mut self, rule: TextRule) -> Self {
        self.text = Some(rule);
        self
    }

    #[must_use]
    pub fn keys(mut self, rule: TextRule) -> Self {
        self.keys = Some(rule);
        self
    }

    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    #[must_use]
    pub fn aliases(mut self, keys: &'static [&'static str]) -> Self {
        self.aliases = keys;
        self
    }

    /// `{env}` in its text, and in the keys of a mapping, is the name of the environment.
    #[must_use]
    pub fn env(mut self) -> Self {
        self.env = Some(&[]);
        self
    }

    /// The same in a pattern that has words of its own.
    #[must_use]
    pub fn env_beside(mut self, words: &'static [&'static str]) -> Self {
        self.env = Some(words);
        self
    }

    #[must_use]
    pub fn label(mut self, label: &'static str) -> Self {
        self.label = Some(label);
        self
    }

    /// What the reference and the schema say applies when the key is absent; the value itself is in the code.
    #[must_use]
    pub fn unless_given(mut self, text: &'static str) -> Self {
        self.default = Some(text);
        self
    }
}

#[derive(Debug, Clone)]
pub struct FieldSpec {
    pub key: &'static str,
    pub doc: String,
    pub required: bool,
    pub shape: Shape,
    pub rules: Rules,
}

/// A mapping with known keys.
#[derive(Debug, Clone)]
pub struct RecordSpec {
    /// The name of its definition in the schema.
    pub name: &'static str,
    pub doc: String,
    pub fields: Vec<FieldSpec>,
    /// A whole file: keys that begin with `x-` are the user's own, for anchors.
    pub document: bool,
    /// Other keys are left alone.
    pub open: bool,
    /// A value that is no mapping stands for this field alone.
    pub shorthand: Option<&'static str>,
    /// Of each group exactly one key is present.
    pub exactly_one: Vec<&'static [&'static str]>,
    /// Of each group at most one key is present.
    pub at_most_one: Vec<&'static [&'static str]>,
    /// Keys through which others can be given: those are missed only where none of these is written.
    pub lenders: &'static [&'static str],
}

impl RecordSpec {
    pub fn new(name: &'static str, doc: String) -> Self {
        Self {
            name,
            doc,
            fields: Vec::new(),
            document: false,
            open: false,
            shorthand: None,
            exactly_one: Vec::new(),
            at_most_one: Vec::new(),
            lenders: &[],
        }
    }

    #[must_use]
    pub fn document(mut self) -> Self {
        self.document = true;
        self
    }

    #[must_use]
    pub fn open(mut self) -> Self {
        self.open = true;
        self
    }

    #[must_use]
    pub fn shorthand(mut self, key: &'static str) -> Self {
        self.shorthand = Some(key);
        self
    }

    #[must_use]
    pub fn exactly_one(mut self, keys: &'static [&'static str]) -> Self {
        self.exactly_one.push(keys);
        self
    }

    #[must_use]
    pub fn at_most_one(mut self, keys: &'static [&'static str]) -> Self {
        self.at_most_one.push(keys);
        self
    }

    /// What is required may also come through one of these keys; the schema cannot see it there.
    #[must_use]
    pub fn lenders(mut self, keys: &'static [&'static str]) -> Self {
        self.lenders = keys;
        self
    }

    /// Every key that may be written, other spellings included.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.fields
            .iter()
            .flat_map(|field| std::iter::once(field.key).chain(field.rules.aliases.iter().copied()))
    }

    pub fn field(&self, key: &str) -> Option<&FieldSpec> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// How many keys of a mapping it does not have.
    pub fn strange_keys(&self, mapping: &Mapping) -> usize {
        mapping.keys().filter(|key| self.field_or_alias(key).is_none()).count()
    }

    /// The field that a key stands for, in any of its spellings.
    pub fn field_or_alias(&self, key: &str) -> Option<&FieldSpec> {
        self.fields.iter().find(|field| field.key == key || field.rules.aliases.contains(&key))
    }
}

impl Shape {
    /// In words, with the article and the rules: `a whole number from 1 to 128`.
    pub fn describe(&self, rules: &Rules) -> String {
        match self {
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Integer(..) => match rules.range {
                Some((least, i64::MAX)) => format!("a whole number from {least}"),
                Some((least, most)) => format!("a whole number from {least} to {most}"),
                None => "a whole number".to_owned(),
            },
            Self::Number => "a number".to_owned(),
            Self::Text(shape) => rules.text.map_or(*shape, |rule| rule.shape).what.to_owned(),
            Self::Choice(words) => words_list(words),
            Self::Scalar => "text, a number, `true` or `false`".to_owned(),
            Self::Any => "anything".to_owned(),
            Self::AnyMapping => "a mapping".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Map(..) => "a mapping".to_owned(),
            Self::Record(spec) => match spec().shorthand.and_then(|key| spec().field(key)) {
                Some(field) => format!("a mapping, or {}", field.shape.describe(&field.rules)),
                None => "a mapping".to_owned(),
            },
            Self::AnyOf(shapes) => {
                let parts: Vec<String> = shapes.iter().map(|shape| shape.describe(rules)).collect();
                parts.join(", or ")
            }
            Self::Reference(shape) | Self::Partial(shape) => shape.describe(rules),
        }
    }
}

/// `a`, `b` or `c`.
pub(crate) fn words_list(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [one] => format!("`{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", first.join(", "))
        }
    }
}
