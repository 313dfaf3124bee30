//! Which type a plain YAML scalar has, as the YAML library of `sops` decides it.
//!
//! That library stands between YAML 1.1 and 1.2: `yes` is text, `017` is fifteen, `2026-01-02` is a time. A file
//! that was made by `sops` only passes its MAC if we decide the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::time;
use crate::value::Value;

/// A scalar could not be given the type that its tag asks for, or the number is too large.
#[derive(Debug, PartialEq)]
pub(crate) struct Unresolvable;

/// The value of an unquoted scalar without a tag.
pub(crate) fn resolve_plain(text: &str) -> Result<Value, Unresolvable> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return Ok(Value::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Ok(Value::Float(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => return Ok(Value::Float(f64::NEG_INFINITY)),
        _ => {}
    }
    match text.as_bytes()[0] {
        b'.' => Ok(point_float(text).map_or_else(|| Value::text(text), Value::Float)),
        b'0'..=b'9' | b'+' | b'-' => {
            if let Some(time) = time::parse_yaml_timestamp(text) {
                return Ok(Value::Time(time));
            }
            number(text)
        }
        _ => Ok(Value::text(text)),
    }
}

/// The value of a scalar with a tag of YAML's own, such as `!!str`.
pub(crate) fn resolve_tagged(tag: &str, text: &str) -> Result<Value, Unresolvable> {
    match tag {
        "str" => Ok(Value::text(text)),
        "binary" => {
            let compact: String = text.chars().filter(|c| *c != '\n' && *c != '\r').collect();
            STANDARD.decode(compact).map(Value::text).map_err(|_| Unresolvable)
        }
        // These hold for a quoted scalar too.
        "int" | "float" | "bool" | "null" | "timestamp" => {
            let value = resolve_plain(text)?;
            match (tag, value) {
                ("int", value @ Value::Int(_))
                | ("float", value @ Value::Float(_))
                | ("bool", value @ Value::Bool(_))
                | ("null", value @ Value::Null)
                | ("timestamp", value @ Value::Time(_)) => Ok(value),
                ("float", Value::Int(number)) => Ok(Value::Float(number as f64)),
                _ => Err(Unresolvable),
            }
        }
        _ => Ok(Value::text(text)),
    }
}

/// Starts with a point: a float as Go reads it, where an underscore may stand between two digits, or text.
fn point_float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let separates = |index: usize| digit(index - 1) && digit(index + 1);
    let good = (1..bytes.len()).all(|index| bytes[index] != b'_' || separates(index));
    if good { float(&text.replace('_', "")) } else { None }
}

fn number(text: &str) -> Result<Value, Unresolvable> {
    let plain = text.replace('_', "");
    if let Some(number) = integer(&plain) {
        return match i64::try_from(number) {
            Ok(number) => Ok(Value::Int(number)),
            // It is a number for the library, but one that `sops` has no type for.
            Err(_) if number > 0 && u64::try_from(number).is_ok() => Err(Unresolvable),
            Err(_) => Ok(float(&plain).map_or_else(|| Value::text(text), Value::Float)),
        };
    }
    Ok(float(&plain).map_or_else(|| Value::text(text), Value::Float))
}

fn float(plain: &str) -> Option<f64> {
    is_decimal(plain).then(|| plain.parse::<f64>().ok()).flatten().filter(|number| number.is_finite())
}

/// An integer in base 2, 8, 10 or 16; a leading zero means base 8.
fn integer(plain: &str) -> Option<i128> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(rest) = lower.strip_prefix("0x") {
        (16, rest)
    } else if let Some(rest) = lower.strip_prefix("0b") {
        (2, rest)
    } else if let Some(rest) = lower.strip_prefix("0o") {
        (8, rest)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, lower.as_str())
    };
    if digits.is_empty() || !digits.bytes().all(|byte| (byte as char).is_digit(radix)) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = digits(rest);
    rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if whole == 0 && length == 0 {
            return false;
        }
        rest = &fraction[length..];
    } else if whole == 0 {
        return false;
    }
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return rest.is_empty() };
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty() && digits(exponent) == exponent.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_have_the_types_that_sops_gives_them() {
        // Each was encrypted with `sops` 3.13.3 and has the type in its `type:` field.
        for (text, value) in [
            ("0x10", Value::Int(16)),
            ("0o17", Value::Int(15)),
            ("017", Value::Int(15)),
            ("1_000", Value::Int(1000)),
            ("0b101", Value::Int(5)),
            ("-0", Value::Int(0)),
            ("+5", Value::Int(5)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("089", Value::Float(89.0)),
            ("1e3", Value::Float(1000.0)),
            ("1.", Value::Float(1.0)),
            (".5", Value::Float(0.5)),
            (".5_0", Value::Float(0.5)),
            ("._5", Value::text("._5")),
            ("-.5_0", Value::Float(-0.5)),
            ("0_x1", Value::Int(1)),
            ("08", Value::Float(8.0)),
            ("0O17", Value::Int(15)),
            ("-9223372036854775809", Value::Float(-9.223372036854776e18)),
            ("1e-400", Value::Float(0.0)),
            ("1_e3", Value::Float(1000.0)),
            ("0x1p4", Value::text("0x1p4")),
            ("0b12", Value::text("0b12")),
            ("nULL", Value::text("nULL")),
            ("+.inf", Value::Float(f64::INFINITY)),
            ("yes", Value::text("yes")),
            ("y", Value::text("y")),
            ("1e400", Value::text("1e400")),
            ("12:30:45", Value::text("12:30:45")),
            ("1.2.3", Value::text("1.2.3")),
            ("0x", Value::text("0x")),
            ("-", Value::text("-")),
            ("True", Value::Bool(true)),
            ("~", Value::Null),
            ("", Value::Null),
            ("2026-01-02", Value::Time("2026-01-02T00:00:00Z".to_owned())),
        ] {
            assert!(resolve_plain(text) == Ok(value), "{text}");
        }
        assert!(resolve_plain("18446744073709551615").is_err());
        assert!(matches!(resolve_plain(".nan"), Ok(Value::Float(number)) if number.is_nan()));
    }

    #[test]
    fn a_tag_decides_or_is_refused() {
        assert!(resolve_tagged("str", "5") == Ok(Value::text("5")));
        assert!(resolve_tagged("float", "5") == Ok(Value::Float(5.0)));
        assert!(resolve_tagged("binary", "aGk=") == Ok(Value::text("hi")));
        assert!(resolve_tagged("int", "five").is_err());
        assert!(resolve_tagged("binary", "?").is_err());
    }
}
