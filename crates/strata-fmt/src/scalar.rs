//! How one scalar is written: without quotes where every reader sees the same text, in double quotes where they need no escapes.

use saphyr_parser::ScalarStyle;
use strata_yaml::go::{self, Fits};
use strata_yaml::{Scalar as Core, ScalarKind};

use crate::tree::Scalar;

/// In one line; `None` where it takes several.
pub(crate) fn line(text: &str, scalar: &Scalar, in_flow: bool, tagged: bool) -> Option<String> {
    let written = &text[scalar.at.start..scalar.at.end];
    if written.contains('\n') || matches!(scalar.style, ScalarStyle::Literal | ScalarStyle::Folded) {
        return None;
    }
    let value = scalar.text.as_str();
    Some(match scalar.style {
        ScalarStyle::Plain => written.to_owned(),
        _ if !tagged && can_be_plain(value, in_flow) => value.to_owned(),
        ScalarStyle::SingleQuoted if fits_double_quotes(value) => format!("\"{value}\""),
        _ => written.to_owned(),
    })
}

/// Without quotes it is the same text to readers of YAML 1.1, of 1.2 and to Go's.
fn can_be_plain(value: &str, in_flow: bool) -> bool {
    let fits = Fits::of(value);
    (if in_flow { fits.flow } else { fits.plain }) && is_a_word(value)
}

/// No number, date, word or sign with a meaning of its own.
fn is_a_word(value: &str) -> bool {
    let begins = value.starts_with(|first: char| first.is_alphabetic() || matches!(first, '/' | '_' | '$'));
    let is_address = value.matches('.').count() >= 3 && value.starts_with(|c: char| c.is_ascii_digit());
    (begins || is_address)
        && Core::plain(value).kind() == ScalarKind::Text
        && !go::is_null(value)
        && go::boolean(value).is_none()
        && go::old_boolean(value).is_none()
        && go::special_float(value).is_none()
        && go::number(value).is_none()
        && !go::is_base_60(value)
        && !value.contains("{{")
}

fn fits_double_quotes(value: &str) -> bool {
    Fits::of(value).single_quotes && !value.contains(['"', '\\'])
}
