//! Which type a plain YAML scalar has, as the YAML library of `sops` decides it.
//!
//! That library stands between YAML 1.1 and 1.2: `yes` is text, `017` is fifteen, `2026-01-02` is a time. A file
//! that was made by `sops` only passes its MAC if we decide the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use strata_yaml::go;

use crate::time;
use crate::value::Value;

/// A scalar could not be given the type that its tag asks for, or the number is too large.
#[derive(Debug, PartialEq)]
pub(crate) struct Unresolvable;

/// The value of an unquoted scalar without a tag.
pub(crate) fn resolve_plain(text: &str) -> Result<Value, Unresolvable> {
    if go::is_null(text) {
        return Ok(Value::Null);
    }
    if let Some(truth) = go::boolean(text) {
        return Ok(Value::Bool(truth));
    }
    if let Some(float) = go::special_float(text) {
        return Ok(Value::Float(float));
    }
    if let Some(time) = time::parse_yaml_timestamp(text) {
        return Ok(Value::Time(time));
    }
    match go::number(text) {
        // It is a number for the library, but perhaps one that `sops` has no type for.
        Some(go::Number::Int(number)) => i64::try_from(number).map(Value::Int).map_err(|_| Unresolvable),
        Some(go::Number::Float(number)) => Ok(Value::Float(number)),
        None => Ok(Value::text(text)),
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
