//! Checks values against their description and words each violation as the API does.

use serde_json::{Map, Value};

use super::args::{Arg, Args, split_list};
use super::param::{Format, Kind, Param};

/// Violations by parameter name (with dots for parts of a property string).
pub type Errors = Map<String, Value>;

fn add(errors: &mut Errors, path: &str, text: String) {
    match errors.get_mut(path) {
        // The API joins with a backslash and an n, not with a newline.
        Some(Value::String(old)) => {
            old.push_str("\\n");
            old.push_str(&text);
        }
        _ => {
            errors.insert(path.to_owned(), Value::String(text));
        }
    }
}

/// Whether a text is a number in the API's sense.
pub fn is_number(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some((a, b)) => (digits(a) && (b.is_empty() || digits(b))) || (a.is_empty() && digits(b)),
    };
    mantissa_ok && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// Whether a text is an integer in the API's sense.
pub fn is_integer(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
}

/// Everything wrong with these arguments; empty if they fit. Arrays given for list parameters are joined, single
/// values given for array parameters become arrays.
pub fn check_args(params: &[Param], find: impl Fn(&str) -> Option<usize>, args: &mut Args) -> Errors {
    for (name, arg) in &mut args.0 {
        let Some(param) = find(name).map(|i| &params[i]) else { continue };
        match (&param.kind, &param.format, &*arg) {
            (Kind::Text, Some(Format::Each(_)), Arg::List(items)) => {
                let joined: Vec<&str> = items.iter().filter_map(Arg::as_text).collect();
                *arg = Arg::Text(joined.join(","));
            }
            (Kind::Array(_), _, Arg::Text(t)) if !t.is_empty() => *arg = Arg::List(vec![arg.clone()]),
            _ => {}
        }
    }
    let mut errors = Errors::new();
    for param in params {
        check_value(param, args.get(&param.name), &param.name, &mut errors);
    }
    for name in args.0.keys() {
        match find(name).map(|i| &params[i]) {
            Some(param) => {
                if let Some(other) = param.requires
                    && args.has(name)
                    && !args.has(other)
                {
                    add(&mut errors, other, format!("missing property required by '{name}'"));
                }
            }
            None => add(
                &mut errors,
                name,
                "property is not defined in schema and the schema does not allow additional properties"
                    .to_owned(),
            ),
        }
    }
    errors
}

/// Checks one value (or its absence) and notes what is wrong.
pub fn check_value(param: &Param, value: Option<&Arg>, path: &str, errors: &mut Errors) {
    let Some(value) = value else {
        if !param.optional {
            add(errors, path, "property is missing and it is not optional".to_owned());
        }
        return;
    };
    if let Kind::Array(item) = &param.kind {
        match value {
            Arg::List(items) => {
                for (i, element) in items.iter().enumerate() {
                    check_value(item, Some(element), &format!("{path}[{i}]"), errors);
                }
            }
            _ => add(errors, path, "type check ('array') failed".to_owned()),
        }
        return;
    }
    let type_name = match param.kind {
        Kind::Text => "string",
        Kind::Int => "integer",
        Kind::Number => "number",
        Kind::Bool => "boolean",
        Kind::Array(_) => "array",
    };
    let got = |what: &str| format!("type check ('{type_name}') failed - got {what}");
    let value = match value {
        Arg::Text(text) => text.as_str(),
        Arg::Bool(_) if matches!(param.kind, Kind::Bool) => return,
        Arg::Bool(_) => return add(errors, path, got("JSON::PP::Boolean")),
        Arg::List(_) => return add(errors, path, got("ARRAY")),
        Arg::Map => return add(errors, path, got("HASH")),
        Arg::Null => return,
    };
    let fits = match param.kind {
        Kind::Bool => value == "1" || value == "0",
        Kind::Int => is_integer(value),
        Kind::Number => is_number(value),
        Kind::Text | Kind::Array(_) => true,
    };
    if !fits {
        return add(errors, path, got(&format!("'{value}'")));
    }
    check_scalar(param, value, path, errors);
}

fn check_scalar(param: &Param, value: &str, path: &str, errors: &mut Errors) {
    if let Some(format) = &param.format
        && let Err(text) = check_format(format, value, path)
    {
        return add(errors, path, format!("invalid format - {text}"));
    }
    if let Some(pattern) = &param.pattern
        && !pattern.matches(value)
    {
        return add(errors, path, "value does not match the regex pattern".to_owned());
    }
    let length = value.chars().count();
    if let Some(max) = param.max_len
        && length > max
    {
        return add(errors, path, format!("value may only be {max} characters long"));
    }
    if let Some(min) = param.min_len
        && length < min
    {
        return add(errors, path, format!("value must be at least {min} characters long"));
    }
    if is_number(value) {
        let n: f64 = value.parse().unwrap_or_default();
        if let Some(max) = param.max
            && n > max
        {
            return add(errors, path, format!("value must have a maximum value of {max}"));
        }
        if let Some(min) = param.min
            && n < min
        {
            return add(errors, path, format!("value must have a minimum value of {min}"));
        }
    }
    if !param.values.is_empty() && !param.values.contains(&value) {
        let all = param.values.join(", ");
        add(errors, path, format!("value '{value}' does not have a value in the enumeration '{all}'"));
    }
}

fn check_format(format: &Format, value: &str, path: &str) -> Result<(), String> {
    match format {
        Format::One(check) => check(value),
        Format::Each(check) => split_list(value).try_for_each(check),
        Format::Opt(check) if value.is_empty() || value == "0" => {
            let _ = check;
            Ok(())
        }
        Format::Opt(check) => check(value),
        Format::Properties(schema) => schema().parse(value, path).map(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::param::{flag, int, text};

    fn errors_of(params: &[Param], args: &[(&str, &str)]) -> Errors {
        let mut args: Args = args.iter().copied().collect();
        check_args(params, |n| params.iter().position(|p| p.name == n), &mut args)
    }

    #[test]
    fn every_violation_has_the_words_of_the_api() {
        let params = [
            int("vmid").format(crate::api::format::vmid),
            int("cores").min(1.0).opt(),
            flag("onboot").opt(),
            text("bios").one_of(&["seabios", "ovmf"]).opt(),
            flag("force").needs("archive").opt(),
            text("archive").opt(),
        ];
        let found = errors_of(
            &params,
            &[
                ("vmid", "99"),
                ("cores", "0"),
                ("onboot", "yes"),
                ("bios", "efi"),
                ("foo", "1"),
                ("force", "1"),
            ],
        );
        let text = |k: &str| found[k].as_str().unwrap_or_default();
        assert_eq!(text("vmid"), "invalid format - value does not look like a valid VM ID\n");
        assert_eq!(text("cores"), "value must have a minimum value of 1");
        assert_eq!(text("onboot"), "type check ('boolean') failed - got 'yes'");
        assert_eq!(text("bios"), "value 'efi' does not have a value in the enumeration 'seabios, ovmf'");
        assert_eq!(
            text("foo"),
            "property is not defined in schema and the schema does not allow additional properties"
        );
        assert_eq!(text("archive"), "missing property required by 'force'");
        assert_eq!(errors_of(&params, &[])["vmid"], "property is missing and it is not optional");
    }

    #[test]
    fn numbers_are_what_perl_takes_for_numbers() {
        for yes in ["1", "-1.5", "+.5", "1.", "1e3", "1.5E-2"] {
            assert!(is_number(yes), "{yes}");
        }
        for no in ["", ".", "1.5.2", "e3", "0x1", "1 ", "abc"] {
            assert!(!is_number(no), "{no}");
        }
    }
}
