//! What Go's YAML libraries make of unquoted text, and how they write text: the rules of Talos, Kubernetes and `sops`.
//!
//! Those libraries stand between YAML 1.1 and 1.2: `yes` is text for some and true for others, `017` is fifteen for all.

mod text;

pub use text::{Fits, block_header, double_quoted, is_base_60, single_quoted};

/// A number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// From the smallest signed to the largest unsigned number of 64 bits.
    Int(i128),
    /// Finite.
    Float(f64),
}

pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The words that YAML 1.1 has for true and false besides.
pub fn old_boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// The floats that have no digits.
pub fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The number that a text is.
pub fn number(text: &str) -> Option<Number> {
    match text.as_bytes().first()? {
        b'.' if !separates_digits(text) => None,
        b'.' => float(&text.replace('_', "")).map(Number::Float),
        b'0'..=b'9' | b'+' | b'-' => {
            let digits = text.replace('_', "");
            integer(&digits).map(Number::Int).or_else(|| float(&digits).map(Number::Float))
        }
        _ => None,
    }
}

/// Behind a point, an underscore may stand between two digits only.
fn separates_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    (1..bytes.len()).all(|index| bytes[index] != b'_' || digit(index - 1) && digit(index + 1))
}

/// Base 2, 8, 10 or 16; a leading zero means base 8.
fn integer(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x', ..] => (16, &unsigned[2..]),
        [b'0', b'o', ..] => (8, &unsigned[2..]),
        [b'0', b'b', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned.as_str()),
    };
    if !digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    let number = if text.starts_with('-') { -number } else { number };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, if it fits 64 bits.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_decimal = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    is_decimal.then(|| text.parse::<f64>().ok()).flatten().filter(|number| number.is_finite())
}

/// A finite float as Go writes it into YAML: the shortest digits that give the same number, with an exponent from seven digits on.
pub fn float_text(number: f64) -> String {
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_go_takes_for_numbers() {
        for (text, is) in [
            ("12", 12),
            ("-3", -3),
            ("+5", 5),
            ("1_000", 1000),
            ("0644", 0o644),
            ("0o644", 0o644),
            ("0O17", 15),
            ("0xff", 255),
            ("0_x1", 1),
            ("0b11", 3),
            ("-0", 0),
            ("18446744073709551615", u64::MAX.into()),
            ("-9223372036854775808", i64::MIN.into()),
        ] {
            assert_eq!(number(text), Some(Number::Int(is)), "{text}");
        }
        for (text, is) in [
            ("1.5", 1.5),
            ("1.", 1.0),
            ("1e3", 1000.0),
            ("1_e3", 1000.0),
            (".5", 0.5),
            (".5_0", 0.5),
            ("-.5_0", -0.5),
            ("089", 89.0),
            ("1e-400", 0.0),
            ("-9223372036854775809", -9.223372036854776e18),
        ] {
            assert_eq!(number(text), Some(Number::Float(is)), "{text}");
        }
        for text in [
            "", "-", "+", ".", "+-1", "0x", "0x1p4", "0b12", "1.2.3", "10m", "v1", "12:30", "._5", "1e400",
            "e5",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (number, written) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (1.0, "1"),
            (1e21, "1e+21"),
            (1_234_567.5, "1.2345675e+06"),
            (123_456.5, "123456.5"),
            (0.00001, "1e-05"),
        ] {
            assert_eq!(float_text(number), written);
        }
    }
}
