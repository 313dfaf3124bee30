//! What an unquoted text means, by the rules that Talos' YAML library goes by.

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
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Plain::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Plain::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return Plain::Text;
    }
    let digits = text.replace('_', "");
    integer(&digits).map(Plain::Int).or_else(|| float(&digits).map(Plain::Float)).unwrap_or(Plain::Text)
}

/// Decimal, `0x`, `0o`, `0b`, and a leading zero for octal.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ if digits.len() > 1 && digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    let number = if negative { -number } else { number };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

/// Digits with at most one point and an optional exponent.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fits = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    fits.then(|| text.parse().ok()).flatten()
}

/// Words that a reader of YAML 1.1 takes for a boolean, and numbers in base 60: quoted, so that every reader sees text.
pub(crate) fn is_old_syntax(text: &str) -> bool {
    const WORDS: [&str; 18] = [
        "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
        "=", "<<",
    ];
    WORDS.contains(&text) || is_base_60(text)
}

/// Digits, then parts of one or two digits after colons, the last one perhaps with a fraction.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else { return false };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixty = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit())
            && part.len() <= 2
            && part.parse::<u8>().is_ok_and(|n| n < 60)
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && rest.split(':').all(sixty)
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
