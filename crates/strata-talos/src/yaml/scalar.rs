//! What an unquoted text means, by the rules that Talos' YAML library goes by.

use strata_yaml::go;
use zeroize::Zeroizing;

/// A scalar as it stands in the file.
#[derive(Clone)]
pub(crate) struct Scalar {
    pub(crate) text: Zeroizing<String>,
    /// Without quotes: the text decides what it is.
    pub(crate) plain: bool,
}

/// What a plain text resolves to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text,
}

impl Scalar {
    pub(crate) fn is_null(&self) -> bool {
        self.plain && resolve(&self.text) == Plain::Null
    }

    pub(crate) fn resolve(&self) -> Plain {
        if self.plain { resolve(&self.text) } else { Plain::Text }
    }
}

/// The meaning of an unquoted text.
pub(crate) fn resolve(text: &str) -> Plain {
    if go::is_null(text) {
        return Plain::Null;
    }
    if let Some(truth) = go::boolean(text) {
        return Plain::Bool(truth);
    }
    if let Some(float) = go::special_float(text) {
        return Plain::Float(float);
    }
    match go::number(text) {
        Some(go::Number::Int(number)) => Plain::Int(number),
        Some(go::Number::Float(number)) => Plain::Float(number),
        None => Plain::Text,
    }
}

/// Words that a reader of YAML 1.1 takes for a boolean, and numbers in base 60: quoted, so that every reader sees text.
pub(crate) fn is_old_syntax(text: &str) -> bool {
    matches!(text, "=" | "<<") || go::old_boolean(text).is_some() || go::is_base_60(text)
}

/// A date, which a reader may turn into a point in time.
pub(crate) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..4)
        && bytes.get(4) == Some(&b'-')
        && bytes
            .get(5..)
            .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit) && rest.contains(&b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_resolves_as_the_other_side_does() {
        for (text, meaning) in [
            ("~", Plain::Null),
            ("", Plain::Null),
            ("TRUE", Plain::Bool(true)),
            ("yes", Plain::Text),
            ("12", Plain::Int(12)),
            ("-3", Plain::Int(-3)),
            ("1_000", Plain::Int(1000)),
            ("0644", Plain::Int(0o644)),
            ("0o644", Plain::Int(0o644)),
            ("0xff", Plain::Int(255)),
            ("0b11", Plain::Int(3)),
            ("18446744073709551615", Plain::Int(u64::MAX.into())),
            ("1.5", Plain::Float(1.5)),
            ("1e3", Plain::Float(1000.0)),
            (".5", Plain::Float(0.5)),
            ("089", Plain::Float(89.0)),
            ("1.2.3", Plain::Text),
            ("192.0.2.1", Plain::Text),
            ("10m", Plain::Text),
            ("-", Plain::Text),
            ("+-1", Plain::Text),
            ("v1", Plain::Text),
        ] {
            assert_eq!(resolve(text), meaning, "{text}");
        }
    }

    #[test]
    fn what_another_reader_would_mistake_is_known() {
        for text in ["yes", "off", "1:30", "190:20:30.15", "<<"] {
            assert!(is_old_syntax(text), "{text}");
        }
        for text in ["yesterday", "::1", "a:1", "1:", "1:+5", "1:60", "192.0.2.1:80", "docker.io"] {
            assert!(!is_old_syntax(text), "{text}");
        }
        assert!(
            is_date("2026-11-15")
                && is_date("2026-11-15T10:00:00Z")
                && !is_date("2026-ab")
                && !is_date("20261115")
        );
    }
}
