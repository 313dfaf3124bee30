//! The compact description of one parameter: its kind, limits, format; written by endpoint families as tables.

use std::borrow::Cow;
use std::sync::OnceLock;

use regex_lite::Regex;

use super::property::Properties;

/// A format check gives the text after `invalid format - `, with its final newline.
pub type FormatCheck = fn(&str) -> Result<(), String>;

#[derive(Clone, Debug)]
pub enum Kind {
    Text,
    Int,
    Number,
    Bool,
    Array(Box<Param>),
}

#[derive(Clone)]
pub enum Format {
    One(FormatCheck),
    /// Every part of a list; such a parameter also takes an array and joins it.
    Each(FormatCheck),
    /// Checked unless empty (or "0", which the API also holds for empty).
    Opt(FormatCheck),
    Properties(fn() -> &'static Properties),
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Format")
    }
}

/// A regular expression that is compiled when it is first needed.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: &'static str,
    compiled: std::sync::Arc<OnceLock<Regex>>,
}

impl Pattern {
    pub fn new(source: &'static str) -> Self {
        Self { source, compiled: std::sync::Arc::default() }
    }

    pub fn matches(&self, value: &str) -> bool {
        self.compiled
            .get_or_init(|| {
                Regex::new(&format!("^(?:{})$", self.source)).expect("patterns are constants of this crate")
            })
            .is_match(value)
    }
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub optional: bool,
    pub requires: Option<&'static str>,
    pub format: Option<Format>,
    pub pattern: Option<Pattern>,
    pub min_len: Option<usize>,
    pub max_len: Option<usize>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub values: Cow<'static, [&'static str]>,
}

fn param(name: impl Into<Cow<'static, str>>, kind: Kind) -> Param {
    Param {
        name: name.into(),
        kind,
        optional: false,
        requires: None,
        format: None,
        pattern: None,
        min_len: None,
        max_len: None,
        min: None,
        max: None,
        values: Cow::Borrowed(&[]),
    }
}

pub fn text(name: impl Into<Cow<'static, str>>) -> Param {
    param(name, Kind::Text)
}

pub fn int(name: impl Into<Cow<'static, str>>) -> Param {
    param(name, Kind::Int)
}

pub fn number(name: impl Into<Cow<'static, str>>) -> Param {
    param(name, Kind::Number)
}

pub fn flag(name: impl Into<Cow<'static, str>>) -> Param {
    param(name, Kind::Bool)
}

/// An array of values, each described by `item`.
pub fn array(name: impl Into<Cow<'static, str>>, item: Param) -> Param {
    param(name, Kind::Array(Box::new(item)))
}

impl Param {
    #[must_use]
    pub fn opt(mut self) -> Self {
        self.optional = true;
        self
    }

    #[must_use]
    pub fn needs(mut self, other: &'static str) -> Self {
        self.requires = Some(other);
        self
    }

    #[must_use]
    pub fn format(mut self, check: FormatCheck) -> Self {
        self.format = Some(Format::One(check));
        self
    }

    #[must_use]
    pub fn each(mut self, check: FormatCheck) -> Self {
        self.format = Some(Format::Each(check));
        self
    }

    #[must_use]
    pub fn unless_empty(mut self, check: FormatCheck) -> Self {
        self.format = Some(Format::Opt(check));
        self
    }

    #[must_use]
    pub fn properties(mut self, schema: fn() -> &'static Properties) -> Self {
        self.format = Some(Format::Properties(schema));
        self
    }

    #[must_use]
    pub fn pattern(mut self, source: &'static str) -> Self {
        self.pattern = Some(Pattern::new(source));
        self
    }

    #[must_use]
    pub fn max_len(mut self, max: usize) -> Self {
        self.max_len = Some(max);
        self
    }

    #[must_use]
    pub fn min_len(mut self, min: usize) -> Self {
        self.min_len = Some(min);
        self
    }

    #[must_use]
    pub fn min(mut self, min: f64) -> Self {
        self.min = Some(min);
        self
    }

    #[must_use]
    pub fn max(mut self, max: f64) -> Self {
        self.max = Some(max);
        self
    }

    #[must_use]
    pub fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.values = Cow::Borrowed(values);
        self
    }
}

/// Parameters that many endpoints share.
pub mod usual {
    use super::super::format;
    use super::{Param, int, text};

    pub fn node() -> Param {
        text("node").format(format::node)
    }

    pub fn vmid() -> Param {
        vmid_as("vmid")
    }

    pub fn vmid_as(name: &'static str) -> Param {
        int(name).format(format::vmid).min(100.0).max(999_999_999.0)
    }

    pub fn storage() -> Param {
        text("storage").format(format::storage_id)
    }

    pub fn digest() -> Param {
        text("digest").max_len(64).opt()
    }

    /// `delete`: a list of options to unset.
    pub fn delete() -> Param {
        text("delete").each(format::configid).opt()
    }

    pub fn pool() -> Param {
        text("pool").format(format::pool_id)
    }
}
